//! The part of a file that is not tests.

use crate::coverage::test_code::test_lines;
use crate::floors::graph::files::File;
use crate::floors::graph::items::Kind;
use crate::floors::sources::{Function, functions};
use crate::floors::tokens::Token;

/// The tokens of the file's items, but for modules, which have items of their own.
pub fn tokens_of(file: &File) -> impl Iterator<Item = &[Token]> {
    let items = file.modules.iter().flat_map(|module| &module.items);
    let items = items.filter(|item| item.kind != Kind::Module);
    items.map(|item| &file.tokens[item.tokens.clone()])
}

/// The lines outside of items that are marked as tests, comments and empty lines included.
pub fn lines(file: &File) -> usize {
    let tests = test_lines(&file.text);
    let all = 1..=file.text.lines().count();
    all.filter(|line| !tests.iter().any(|test| test.contains(line)))
        .count()
}

/// The functions outside of such items.
pub fn functions_of(file: &File) -> impl Iterator<Item = Function> {
    let tests = test_lines(&file.text);
    let all = functions(&file.text).into_iter();
    all.filter(move |function| !tests.iter().any(|test| test.contains(&function.line)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::graph::files::in_memory;

    #[test]
    fn what_is_marked_as_a_test_does_not_count() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\nfn c(x: [u8; 4]) {\n}\n";
        let files = in_memory(&[("lib.rs", text)]);
        assert_eq!(lines(&files[0]), 2);
        let names: Vec<_> = functions_of(&files[0]).map(|f| f.name).collect();
        assert_eq!(names, ["a"]);
        assert_eq!(tokens_of(&files[0]).count(), 1);
    }
}
