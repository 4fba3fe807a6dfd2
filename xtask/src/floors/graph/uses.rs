//! The paths that `use` declarations bring in.

use std::ops::Range;

use super::brackets::{closing, split_at_commas};
use crate::floors::tokens::{Token, What};

/// One leaf of a `use` tree.
#[derive(Debug, PartialEq)]
pub struct Leaf {
    pub path: Vec<String>,
    /// The name it has here; `*` for a glob, `_` for a trait without a name.
    pub name: String,
}

/// All `use` declarations in `tokens[range]`, those in functions too: where each begins and ends.
pub fn declarations(tokens: &[Token], range: Range<usize>) -> Vec<Range<usize>> {
    let begins = range.filter(|&at| {
        // `impl Trait + use<'a>` captures lifetimes and imports nothing.
        tokens[at].is_word("use") && !tokens.get(at + 1).is_some_and(|t| t.is_mark('<'))
    });
    begins
        .map(|at| {
            let ahead = tokens[at..].iter().position(|t| t.is_mark(';'));
            at..ahead.map_or(tokens.len(), |ahead| at + ahead)
        })
        .collect()
}

/// The leaves of the tree behind the keyword that `declaration` begins with.
pub fn leaves(declaration: &[Token]) -> Vec<Leaf> {
    let mut found = Vec::new();
    branch(declaration.get(1..).unwrap_or_default(), &[], &mut found);
    found
}

fn branch(tokens: &[Token], base: &[String], found: &mut Vec<Leaf>) {
    let mut path = base.to_vec();
    for (at, token) in tokens.iter().enumerate() {
        match &token.what {
            What::Word(word) if word == "as" => {
                let name = tokens.get(at + 1).and_then(Token::word).unwrap_or("_");
                let name = name.to_owned();
                found.push(Leaf { path, name });
                return;
            }
            // A group: `self` in it is the path so far.
            What::Word(word) if word == "self" && !path.is_empty() => {}
            What::Word(word) => path.push(word.clone()),
            What::Mark('*') => {
                let name = "*".to_owned();
                found.push(Leaf { path, name });
                return;
            }
            What::Mark('{') => {
                for part in split_at_commas(&tokens[at + 1..closing(tokens, at)]) {
                    branch(part, &path, found);
                }
                return;
            }
            _ => {}
        }
    }
    if let Some(name) = path.last().cloned() {
        found.push(Leaf { path, name });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::tokens::tokens;

    fn of(source: &str) -> Vec<String> {
        let tokens = tokens(source);
        let leaves = leaves(&tokens[declarations(&tokens, 0..tokens.len())[0].clone()]);
        leaves
            .into_iter()
            .map(|l| format!("{} = {}", l.name, l.path.join("::")))
            .collect()
    }

    #[test]
    fn groups_renames_and_globs_are_leaves() {
        assert_eq!(
            of("use crate::{log::{self, Tail, open::{Log as L}}, tree::*, super::gc as _};"),
            [
                "log = crate::log",
                "Tail = crate::log::Tail",
                "L = crate::log::open::Log",
                "* = crate::tree",
                "_ = crate::super::gc"
            ]
        );
        assert_eq!(
            of("use self::check::check;"),
            ["check = self::check::check"]
        );
    }

    #[test]
    fn captured_lifetimes_are_no_import() {
        let tokens = tokens("fn f<'a>() -> impl Sized + use<'a> { use crate::a; }");
        assert_eq!(declarations(&tokens, 0..tokens.len()).len(), 1);
    }
}
