//! Links of documents: to files, to headings of documents, and to tests.

use std::fs;
use std::path::Path;

use crate::documents::{all, root};

#[derive(Debug, PartialEq)]
struct Link<'a> {
    /// Relative to the document; empty for the document itself.
    file: &'a str,
    /// A heading.
    anchor: Option<&'a str>,
    /// A test of the file: `[text](file "name")`.
    test: Option<&'a str>,
}

/// The links of a text to places of the repository. Code is none.
fn links(text: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        // Of what is between back quotes only every second part is text.
        let pairs = line.match_indices("](").map(|(at, _)| at);
        for at in pairs.filter(|at| line[..*at].matches('`').count().is_multiple_of(2)) {
            let Some((target, _)) = line[at + 2..].split_once(')') else {
                continue;
            };
            let (target, test) = match target.split_once(" \"") {
                Some((target, title)) => (target, title.strip_suffix('"')),
                None => (target, None),
            };
            if target.contains("://") {
                continue;
            }
            let (file, anchor) = match target.split_once('#') {
                Some((file, anchor)) => (file, Some(anchor)),
                None => (target, None),
            };
            links.push(Link { file, anchor, test });
        }
    }
    links
}

/// The anchors of the headings of a document, as code hosts make them.
fn anchors(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut anchors: Vec<String> = Vec::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if is_code || !line.starts_with('#') {
            continue;
        }
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => letter.is_alphanumeric().then_some(letter),
        });
        let anchor: String = kept.collect();
        let same = anchors.iter().filter(|other| **other == anchor).count();
        anchors.push(match same {
            0 => anchor,
            _ => format!("{anchor}-{same}"),
        });
    }
    anchors
}

fn check(document: &Path, link: &Link<'_>) -> Result<(), String> {
    let target = match link.file {
        "" => document.to_owned(),
        file => document.parent().unwrap().join(file),
    };
    if !target.exists() {
        return Err("there is no such file".to_owned());
    }
    let is_document = target.extension().is_some_and(|end| end == "md");
    if let Some(anchor) = link.anchor.filter(|_| is_document) {
        let text = fs::read_to_string(&target).unwrap();
        if !anchors(&text).iter().any(|known| known == anchor) {
            return Err(format!("it has no heading {anchor}"));
        }
    }
    if let Some(test) = link.test {
        let text = fs::read_to_string(&target).unwrap();
        let is_there = text
            .split(&format!("fn {test}("))
            .next()
            .filter(|before| before.len() < text.len())
            .is_some_and(|before| before.trim_end().ends_with(']'));
        if !is_there {
            return Err(format!("it has no test {test}"));
        }
    }
    Ok(())
}

#[test]
fn every_link_of_the_documents_leads_to_a_file_a_heading_or_a_test() {
    let (mut count, mut broken) = (0, Vec::new());
    for document in all() {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            count += 1;
            if let Err(reason) = check(&document, &link) {
                let name = document.strip_prefix(root()).unwrap_or(&document);
                broken.push(format!("{}: {link:?}: {reason}", name.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(count > 150, "{count} links");
}

/// The cells of our column of the table of features.
fn own_cells(text: &str) -> Vec<(&str, &str)> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| {
        let mut cells = row.split('|').skip(1).map(str::trim);
        Some((cells.next()?, cells.next()?))
    });
    cells.filter(|(feature, _)| *feature != "feature").collect()
}

#[test]
fn each_feature_that_the_store_has_is_linked_to_a_proof() {
    let text = fs::read_to_string(root().join("docs/features.md")).unwrap();
    let table = text.split("\n## ").next().unwrap();
    let cells = own_cells(table);
    assert!(cells.len() >= 25, "{} features", cells.len());
    for (feature, cell) in cells {
        let has_proof = !links(cell).is_empty();
        assert!(
            has_proof || cell.starts_with("no") || cell.starts_with("not yet"),
            "{feature}: {cell}"
        );
    }
}

#[test]
fn links_anchors_and_names_of_tests_are_read_as_code_hosts_do() {
    let text = "[a](b.md#c-d) `[x](y)` [t](../u.rs \"name\") [w](https://w)\n```\n[q](r)\n```\n";
    let expected = [
        Link {
            file: "b.md",
            anchor: Some("c-d"),
            test: None,
        },
        Link {
            file: "../u.rs",
            anchor: None,
            test: Some("name"),
        },
    ];
    assert_eq!(links(text), expected);
    let headings = "# A `b_c`, d!\n## E\n```\n# no\n```\n## E\n";
    assert_eq!(anchors(headings), ["a-b_c-d", "e", "e-1"]);
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guide/links.rs");
    let to = |file, test| Link {
        file,
        anchor: None,
        test,
    };
    let own = "links_anchors_and_names_of_tests_are_read_as_code_hosts_do";
    assert_eq!(check(&here, &to("links.rs", Some(own))), Ok(()));
    assert!(check(&here, &to("links.rs", Some("own_cells"))).is_err());
    assert!(check(&here, &to("links.rs", Some("nothing"))).is_err());
    assert!(check(&here, &to("elsewhere.rs", None)).is_err());
}
