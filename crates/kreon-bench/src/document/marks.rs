//! The two lines of a document between which tables are written.

use anyhow::{Context, bail, ensure};

/// How the line above begins; behind it stands what is wanted.
const BEGIN: &str = "<!-- results: ";
/// The line below.
const END: &str = "<!-- end of results -->";

/// `text` with new content between each pair of marks; `write` makes it of what the first mark says.
///
/// # Errors
/// If a mark has no counterpart, and those of `write`; both name the line.
pub fn rewritten(
    text: &str,
    write: &mut dyn FnMut(&str) -> anyhow::Result<String>,
) -> anyhow::Result<String> {
    let mut out = String::new();
    let mut open: Option<usize> = None;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(wanted) = wanted(line) {
            ensure!(open.is_none(), "line {number}: the table above has no end");
            let content = write(wanted).with_context(|| format!("line {number}"))?;
            out += &format!("{line}\n\n{}\n\n", content.trim());
            open = Some(number);
        } else if line.trim() == END {
            ensure!(open.take().is_some(), "line {number}: no table ends here");
            out += &format!("{line}\n");
        } else if open.is_none() {
            out += &format!("{line}\n");
        }
    }
    match open {
        Some(number) => bail!("line {number}: the table has no end: {END}"),
        None => Ok(out),
    }
}

/// What a mark asks for.
fn wanted(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix(BEGIN)?;
    Some(rest.strip_suffix("-->")?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# Title\n\n<!-- results: rates of small -->\nold\n\n| old |\n<!-- end of results -->\n\nEnd.\n";

    #[test]
    fn only_what_stands_between_the_marks_is_written_anew() {
        let new = rewritten(DOCUMENT, &mut |wanted| Ok(format!("new: {wanted}\n"))).unwrap();
        let expected = "# Title\n\n<!-- results: rates of small -->\n\nnew: rates of small\n\n<!-- end of results -->\n\nEnd.\n";
        assert_eq!(new, expected);
    }

    #[test]
    fn a_document_written_twice_is_the_same() {
        let mut write = |wanted: &str| Ok(format!("new: {wanted}\n"));
        let once = rewritten(DOCUMENT, &mut write).unwrap();
        assert_eq!(rewritten(&once, &mut write).unwrap(), once);
    }

    #[test]
    fn marks_without_a_counterpart_are_errors() {
        let mut write = |_: &str| Ok(String::new());
        for (text, line) in [
            ("<!-- results: rates of a -->\n", "line 1"),
            ("x\n<!-- end of results -->\n", "line 2"),
            (
                "<!-- results: rates of a -->\n<!-- results: rates of b -->\n",
                "line 2",
            ),
        ] {
            let error = rewritten(text, &mut write).unwrap_err().to_string();
            assert!(error.contains(line), "{error}");
        }
    }
}
