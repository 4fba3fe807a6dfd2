//! The names that code binds to values.

use super::brackets::{closing, split_at_commas};
use crate::floors::tokens::{Token, What};

/// A binding that a `let`, `if let`, `while let` or `for` makes.
pub struct Binding {
    pub name: String,
    /// The type that is written behind it.
    pub kind: Option<std::ops::Range<usize>>,
    /// Where the expression ends that it is bound to.
    pub end: usize,
    /// Whether it is bound to what the expression holds.
    pub got_out: bool,
}

/// The bindings that start with the keyword at `at`, if they bind plain names.
pub fn bindings(tokens: &[Token], at: usize) -> Vec<Binding> {
    let tuple = tuple(tokens, at).unwrap_or_default();
    tuple.into_iter().chain(binding(tokens, at)).collect()
}

/// Those of `let (a, b) = (x, y)`.
fn tuple(tokens: &[Token], at: usize) -> Option<Vec<Binding>> {
    let open = at + 1;
    if !tokens.get(at)?.is_word("let") || !tokens.get(open)?.is_mark('(') {
        return None;
    }
    let close = closing(tokens, open);
    let values = close + 2;
    if !tokens.get(close + 1)?.is_mark('=') || !tokens.get(values)?.is_mark('(') {
        return None;
    }
    let names = split_at_commas(&tokens[open + 1..close]).into_iter();
    let parts = split_at_commas(&tokens[values + 1..closing(tokens, values)]).into_iter();
    let mut end = values;
    let bindings = names.zip(parts).filter_map(|(name, part)| {
        // Each part stands behind a bracket or a comma.
        end += 1 + part.len();
        let plain = name.iter().find(|t| !t.is_word("mut"))?;
        Some(Binding {
            name: plain.word()?.to_owned(),
            kind: None,
            end,
            got_out: false,
        })
    });
    Some(bindings.collect())
}

fn binding(tokens: &[Token], at: usize) -> Option<Binding> {
    let is_loop = tokens.get(at)?.is_word("for");
    if !is_loop && !tokens[at].is_word("let") {
        return None;
    }
    let conditional = at > 0
        && ["if", "while"]
            .iter()
            .any(|word| tokens[at - 1].is_word(word));
    let chained = at > 1 && tokens[at - 1].is_mark('&') && tokens[at - 2].is_mark('&');
    let mut name_at = at + 1;
    let wrapped = ["Some", "Ok"]
        .iter()
        .any(|word| tokens.get(name_at).is_some_and(|t| t.is_word(word)));
    name_at += if wrapped { 2 } else { 0 };
    while tokens
        .get(name_at)
        .is_some_and(|t| t.is_mark('&') || t.is_word("mut") || t.is_word("ref"))
    {
        name_at += 1;
    }
    let name = tokens.get(name_at)?.word()?.to_owned();
    let mut behind = name_at + if wrapped { 2 } else { 1 };
    let mut kind = None;
    if tokens.get(behind)?.is_mark(':') {
        let length = tokens[behind..]
            .iter()
            .position(|t| t.is_mark('=') || t.is_mark(';'))?;
        kind = Some(behind + 1..behind + length);
        behind += length;
    }
    let plain = tokens.get(behind)?;
    let begins = if is_loop {
        plain.is_word("in")
    } else {
        plain.is_mark('=')
    };
    let end = end_of_expression(tokens, behind, is_loop || conditional || chained, wrapped);
    begins.then_some(Binding {
        name,
        kind,
        end,
        got_out: is_loop || wrapped,
    })
}

/// Where the expression behind `at` ends: at a `;`, and as told at a brace or at `else`.
fn end_of_expression(tokens: &[Token], mut at: usize, at_brace: bool, at_else: bool) -> usize {
    while let Some(token) = tokens.get(at) {
        match &token.what {
            What::Mark(';' | '}') => return at,
            What::Mark('{') if at_brace => return at,
            What::Mark('&') if at_brace && tokens.get(at + 1).is_some_and(|t| t.is_mark('&')) => {
                return at;
            }
            What::Word(word) if at_else && word == "else" => return at,
            What::Mark('(' | '[' | '{') => at = closing(tokens, at),
            _ => {}
        }
        at += 1;
    }
    at
}
