//! Which lines are tests.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::floors::tokens::{Token, tokens as cut};

/// Whether the whole file is: by the convention that modules of tests are called `tests`, and those that
/// cargo finds in `tests`, `examples` and `benches`.
pub fn is_test_file(file: &Path) -> bool {
    let names = ["tests", "examples", "benches", "tests.rs"];
    file.iter()
        .any(|part| names.iter().any(|name| part == *name))
}

/// The lines of all items marked `#[cfg(test)]`.
pub fn test_lines(source: &str) -> Vec<RangeInclusive<usize>> {
    let tokens = cut(source);
    let mark = cut("#[cfg(test)]");
    let mut ranges = Vec::new();
    for at in 0..tokens.len().saturating_sub(mark.len()) {
        let here = &tokens[at..at + mark.len()];
        if here.iter().zip(&mark).all(|(a, b)| a.what == b.what)
            && let Some(end) = end_of_item(&tokens[at + mark.len()..])
        {
            ranges.push(tokens[at].line..=end);
        }
    }
    ranges
}

/// The line on which the item that `tokens` begin with ends: at a `;` outside of brackets, or where its
/// braces close.
fn end_of_item(tokens: &[Token]) -> Option<usize> {
    let mut brackets = 0_usize;
    let mut braces = 0_usize;
    for token in tokens {
        if token.is_mark('(') || token.is_mark('[') {
            brackets += 1;
        } else if token.is_mark(')') || token.is_mark(']') {
            brackets = brackets.saturating_sub(1);
        } else if token.is_mark('{') {
            braces += 1;
        } else if token.is_mark('}') {
            braces = braces.saturating_sub(1);
        }
        let ended = token.is_mark('}') || token.is_mark(';');
        if ended && brackets == 0 && braces == 0 {
            return Some(token.line);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_marked_as_tests_are_found_to_their_end() {
        let source = "fn a() {}\n#[cfg(test)]\nfn b(x: [u8; 4]) {\n    if x { '}' }\n}\nfn c() {}\n\
                      #[cfg(test)]\nmod tests;\nfn d() {}\n// #[cfg(test)]\nfn e() {}\n";
        assert_eq!(test_lines(source), [2..=5, 7..=8]);
    }

    #[test]
    fn folders_and_modules_of_tests_are_test_files() {
        assert!(is_test_file(Path::new("crates/a/tests/b.rs")));
        assert!(is_test_file(Path::new("crates/a/src/log/tests/mod.rs")));
        assert!(is_test_file(Path::new("crates/a/src/well/tests.rs")));
        assert!(!is_test_file(Path::new("crates/a/src/tests_of_keys.rs")));
    }
}
