//! Rust in documents is an excerpt of a file that is compiled: of a test of the guide, or of an example.

use std::fs;
use std::path::{Path, PathBuf};

use crate::documents::{files, root};

/// The pieces of a language in a document: the number of their first lines, and the lines.
fn pieces<'a>(text: &'a str, language: &str) -> Vec<(usize, Vec<&'a str>)> {
    let mut pieces = Vec::new();
    let mut open: Option<(usize, Vec<&str>)> = None;
    let mut is_inside = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(told) = line.strip_prefix("```") {
            match is_inside {
                true => pieces.extend(open.take()),
                false => open = (told == language).then(|| (number + 2, Vec::new())),
            }
            is_inside = !is_inside;
        } else if let Some((_, lines)) = &mut open {
            lines.push(line);
        }
    }
    assert!(!is_inside, "a piece has no end");
    pieces
}

/// Whether the lines stand in `text` one behind the other, all of them indented by the same blanks.
fn is_excerpt(piece: &[&str], text: &str) -> bool {
    let lines: Vec<_> = text.lines().collect();
    lines.windows(piece.len()).any(|window| {
        let indent = window[0].len() - window[0].trim_start().len();
        window.iter().zip(piece).all(|(line, wanted)| {
            let line = match line.trim().is_empty() {
                true => Some(""),
                false => line
                    .get(indent..)
                    .filter(|_| line[..indent].trim().is_empty()),
            };
            line == Some(*wanted)
        })
    })
}

fn sources() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = files(&here.join("tests/guide"), ".rs");
    sources.extend(files(&here.join("examples"), ".rs"));
    sources
}

#[test]
fn all_rust_of_the_guide_is_compiled() {
    let texts: Vec<_> = sources()
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let mut documents = files(&root().join("docs/guide"), ".md");
    documents.push(root().join("README.md"));
    let mut count = 0;
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for (line, piece) in pieces(&text, "rust") {
            let place = format!("{}:{line}", document.display());
            assert!(!piece.is_empty(), "{place} is empty");
            let is_compiled = texts.iter().any(|text| is_excerpt(&piece, text));
            assert!(
                is_compiled,
                "{place} stands in no test or example:\n{}",
                piece.join("\n")
            );
            count += 1;
        }
    }
    assert!(count >= 20, "{count} pieces");
}

#[test]
fn an_excerpt_is_found_at_any_indentation_and_no_other_text_is() {
    let text = "fn f() {\n    a();\n\n    if b {\n        c();\n    }\n}\n";
    assert!(is_excerpt(&["a();", "", "if b {", "    c();", "}"], text));
    assert!(is_excerpt(&["c();"], text));
    assert!(!is_excerpt(&["a();", "if b {"], text));
    assert!(!is_excerpt(&["if b {", "c();"], text));
    let document = "x\n```sh\na\n```\n```rust\nb\nc\n```\n";
    assert_eq!(pieces(document, "rust"), [(6, vec!["b", "c"])]);
}
