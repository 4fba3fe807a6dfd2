//! How densely the product asserts what must hold.

use super::product::{lines, tokens_of};
use crate::floors::graph::Source;
use crate::floors::tokens::Token;

const ASSERTS: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
];

pub fn print(crates: &[Source]) {
    println!("== asserts outside tests, and per 1,000 lines");
    for source in crates {
        let asserts: usize = source.files.iter().flat_map(tokens_of).map(asserts).sum();
        let lines: usize = source.files.iter().map(lines).sum();
        let density = asserts as f64 * 1000.0 / lines.max(1) as f64;
        println!("{}: {asserts}, {density:.1}", source.name);
    }
}

fn asserts(tokens: &[Token]) -> usize {
    let calls = tokens.windows(2).filter(|pair| {
        pair[1].is_mark('!') && pair[0].word().is_some_and(|word| ASSERTS.contains(&word))
    });
    calls.count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::tokens::tokens;

    #[test]
    fn asserts_of_every_kind_count() {
        let source = tokens("assert!(a); debug_assert_ne!(b, c); assert_eq(d); // assert!(e)");
        assert_eq!(asserts(&source), 2);
    }
}
