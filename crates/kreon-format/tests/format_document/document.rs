//! The document, parsed into tables and pictures.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const FILES: [&str; 4] = [
    "format.md",
    "format-catalogue.md",
    "format-log.md",
    "format-trees.md",
];

pub type Row = BTreeMap<String, String>;

/// The first table under a heading, and the picture under it, if there is one.
#[derive(Debug, Default)]
pub struct Section {
    pub rows: Vec<Row>,
    pub picture: Vec<String>,
    columns: Vec<String>,
}

pub struct Document {
    pub sections: BTreeMap<String, Section>,
    /// All lines outside tables and pictures.
    pub prose: Vec<String>,
}

impl Document {
    pub fn read() -> Self {
        Self::read_files(&FILES)
    }

    /// The document that consists of these files.
    pub fn read_files(files: &[&str]) -> Self {
        let mut document = Self {
            sections: BTreeMap::new(),
            prose: Vec::new(),
        };
        for file in files {
            let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
            let text = fs::read_to_string(docs.join(file)).unwrap();
            document.take(&text);
        }
        document
    }

    fn take(&mut self, text: &str) {
        let (mut heading, mut is_picture) = (String::new(), false);
        for line in text.lines() {
            if line.starts_with("```") {
                is_picture = !is_picture;
            } else if is_picture {
                self.section(&heading).picture.push(line.to_owned());
            } else if line.starts_with('#') {
                heading = line.trim_start_matches('#').trim().to_owned();
                self.prose.push(line.to_owned());
                let is_new = !self.sections.contains_key(&heading);
                assert!(is_new, "two sections are called {heading:?}");
            } else if line.starts_with('|') {
                self.section(&heading).row(line);
            } else {
                self.prose.push(line.to_owned());
            }
        }
    }

    fn section(&mut self, heading: &str) -> &mut Section {
        self.sections.entry(heading.to_owned()).or_default()
    }

    pub fn at(&self, heading: &str) -> &Section {
        let section = self.sections.get(heading);
        section.unwrap_or_else(|| panic!("the document has no {heading:?}"))
    }

    /// The cells `value` of the section's table, keyed by the cells `name`.
    pub fn cells(&self, heading: &str, name: &str, value: &str) -> BTreeMap<&str, &str> {
        let rows = &self.at(heading).rows;
        let pairs = rows.iter().map(|row| (&row[name][..], &row[value][..]));
        let cells: BTreeMap<_, _> = pairs.collect();
        assert_eq!(cells.len(), rows.len(), "{heading} has a {name} twice");
        cells
    }

    /// Like [`cells`](Self::cells), with numbers as values.
    pub fn numbers(&self, heading: &str, name: &str, value: &str) -> BTreeMap<&str, u64> {
        let cells = self.cells(heading, name, value).into_iter();
        cells.map(|(name, cell)| (name, number(cell))).collect()
    }
}

impl Section {
    fn row(&mut self, line: &str) {
        let cells = line.trim().trim_matches('|').split('|');
        let cells: Vec<_> = cells.map(|cell| cell.trim().to_owned()).collect();
        if self.columns.is_empty() {
            self.columns = cells;
        } else if !cells.iter().all(|cell| cell.starts_with("---")) {
            assert_eq!(cells.len(), self.columns.len(), "{line}");
            self.rows
                .push(self.columns.iter().cloned().zip(cells).collect());
        }
    }

    /// Whether its table describes a structure with fields at fixed offsets.
    pub fn has_offsets(&self) -> bool {
        self.columns.iter().any(|column| column == "offset")
    }
}

/// `512`, `0x1f`, `2^48` or `2^48 - 1`.
pub fn number(text: &str) -> u64 {
    let parse = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{text:?}"));
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).unwrap();
    }
    let Some(power) = text.strip_prefix("2^") else {
        return parse(text);
    };
    match power.split_once(" - ") {
        Some((power, less)) => (1 << parse(power)) - parse(less),
        None => 1 << parse(power),
    }
}

/// All numbers in `text` except those in words such as `CRC-32C` and `L0`.
pub fn numbers_in(text: &str) -> Vec<u64> {
    let text = ["CRC-32C", "UTF-8"]
        .iter()
        .fold(text.to_owned(), |text, word| text.replace(word, ""));
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_number = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit());
    words
        .filter(is_number)
        .map(|word| word.parse().unwrap_or(u64::MAX))
        .collect()
}

const MARGIN: usize = 6;
const BYTE_COLUMNS: usize = 9;
const ROW_BYTES: usize = 8;

/// The picture of a structure with fields at fixed offsets.
pub fn draw(section: &Section) -> Vec<String> {
    let mut picture = vec![heading_of_picture()];
    let (mut line, mut at) = (String::new(), 0);
    for row in &section.rows {
        let name = match row["field"].as_str() {
            "" => "page",
            name => name,
        };
        let Ok(bytes) = row["bytes"].parse::<usize>() else {
            picture.push(cell(
                margin(&row["offset"]),
                &format!("{name} ..."),
                ROW_BYTES,
            ));
            continue;
        };
        let (mut left, start) = (bytes, at);
        while left > 0 {
            let within = at % ROW_BYTES;
            if within == 0 {
                line = margin(&at.to_string());
            }
            let here = left.min(ROW_BYTES - within);
            let is_long = within == 0 && left > ROW_BYTES && at == start;
            let text = if is_long {
                format!("{name}, {bytes} bytes")
            } else {
                name.to_owned()
            };
            line = cell(line, &text, here);
            (at, left) = (at + here, left - here);
            if is_long {
                (at, left) = (start + bytes, 0);
                assert!(at.is_multiple_of(ROW_BYTES), "{name} ends within a row");
            }
            if at.is_multiple_of(ROW_BYTES) {
                picture.push(std::mem::take(&mut line));
            }
        }
    }
    assert!(line.is_empty(), "the last row is not full: {line}");
    picture
}

fn heading_of_picture() -> String {
    let offsets = (0..ROW_BYTES).map(|offset| {
        format!(
            " {:<width$}",
            format!("+{offset}"),
            width = BYTE_COLUMNS - 1
        )
    });
    (" ".repeat(MARGIN + 1) + &offsets.collect::<String>())
        .trim_end()
        .to_owned()
}

fn margin(offset: &str) -> String {
    format!("{offset:>width$} |", width = MARGIN - 1)
}

fn cell(line: String, text: &str, bytes: usize) -> String {
    let width = bytes * BYTE_COLUMNS - 1;
    assert!(text.len() < width, "{text:?} is too long for {bytes} bytes");
    format!("{line} {text:<width$}|", width = width - 1)
}
