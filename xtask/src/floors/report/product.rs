//! The part of a file that is not tests.

use crate::floors::graph::files::File;
use crate::floors::graph::items::Kind;
use crate::floors::tokens::{Token, tokens};

/// The tokens of the file's items, but for modules, which have items of their own.
pub fn tokens_of(file: &File) -> impl Iterator<Item = &[Token]> {
    let items = file.modules.iter().flat_map(|module| &module.items);
    let items = items.filter(|item| item.kind != Kind::Module);
    items.map(|item| &file.tokens[item.tokens.clone()])
}

/// Lines without those of items that are marked as tests, comments and empty lines included.
pub fn lines(file: &File) -> usize {
    let all = file.text.lines().count();
    all.saturating_sub(lines_of_tests(&file.text))
}

fn lines_of_tests(text: &str) -> usize {
    let tokens = tokens(text);
    let mark = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut lines = 0;
    let mut behind = 0;
    for at in 0..tokens.len().saturating_sub(mark.len()) {
        let here = tokens[at..at + mark.len()].iter().zip(mark);
        let is_mark = |(token, wanted): (&Token, &str)| match token.word() {
            Some(word) => word == wanted,
            None => wanted.chars().all(|c| token.is_mark(c)),
        };
        if tokens[at].line > behind && here.into_iter().all(is_mark) {
            behind = end_of_item(&tokens[at + mark.len()..]).unwrap_or(tokens[at].line);
            lines += behind + 1 - tokens[at].line;
        }
    }
    lines
}

/// The line on which the item ends that `tokens` begin with.
fn end_of_item(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0_usize;
    for token in tokens {
        let opens = ['(', '[', '{'].iter().any(|mark| token.is_mark(*mark));
        let closes = [')', ']', '}'].iter().any(|mark| token.is_mark(*mark));
        depth = (depth + usize::from(opens)).saturating_sub(usize::from(closes));
        if depth == 0 && (token.is_mark(';') || token.is_mark('}')) {
            return Some(token.line);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::graph::files::in_memory;

    #[test]
    fn lines_and_tokens_of_tests_do_not_count() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\nfn c(x: [u8; 4]) {\n}\n";
        let files = in_memory(&[("lib.rs", text)]);
        assert_eq!(lines(&files[0]), 2);
        assert_eq!(tokens_of(&files[0]).count(), 1);
    }
}
