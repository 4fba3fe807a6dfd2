//! What stands before the body of a function or an `impl`.

use super::brackets::{behind_angles, closing, split_at_commas};
use super::items::{Item, Kind, items};
use super::names::ItemId;
use super::types::{Place, Value, value_of};
use crate::floors::tokens::Token;

/// A parameter by name, and its type as it is written.
pub struct Parameter<'a> {
    pub name: &'a str,
    pub kind: &'a [Token],
}

/// The parameters of the function in `tokens` that have a type and a plain name.
pub fn parameters(tokens: &[Token]) -> Vec<Parameter<'_>> {
    let Some(open) = opening_of_parameters(tokens) else {
        return Vec::new();
    };
    let parts = split_at_commas(&tokens[open + 1..closing(tokens, open)]).into_iter();
    parts
        .filter_map(|part| {
            let plain = part.iter().position(|t| !t.is_word("mut"))?;
            let (name, rest) = part[plain..].split_first()?;
            rest.first().filter(|colon| colon.is_mark(':'))?;
            Some(Parameter {
                name: name.word()?,
                kind: &rest[1..],
            })
        })
        .collect()
}

/// The type that the function in `tokens` returns as it is written; empty for none.
pub fn result(tokens: &[Token]) -> &[Token] {
    let Some(open) = opening_of_parameters(tokens) else {
        return &[];
    };
    let behind = tokens.get(closing(tokens, open) + 1..).unwrap_or_default();
    match behind {
        [dash, angle, rest @ ..] if dash.is_mark('-') && angle.is_mark('>') => {
            let ends = |t: &Token| t.is_mark('{') || t.is_mark(';') || t.is_word("where");
            &rest[..rest.iter().position(ends).unwrap_or(rest.len())]
        }
        _ => &[],
    }
}

fn opening_of_parameters(tokens: &[Token]) -> Option<usize> {
    let behind_name = tokens.iter().position(|t| t.is_word("fn"))? + 2;
    let open = match tokens.get(behind_name)? {
        angle if angle.is_mark('<') => behind_angles(tokens, behind_name),
        _ => behind_name,
    };
    tokens.get(open)?.is_mark('(').then_some(open)
}

/// An `impl` block.
pub struct Implementation {
    /// Whose methods it defines; `None` for a type of another crate.
    pub own: Option<ItemId>,
    /// The last segment of the trait's path; `None` for an inherent one.
    pub of_trait: Option<String>,
    pub items: Vec<Item>,
}

pub fn implementation(place: Place<'_>, tokens: &[Token], item: &Item) -> Implementation {
    let body = item
        .body
        .clone()
        .unwrap_or(item.tokens.end..item.tokens.end);
    let header = &tokens[item.tokens.start..body.start.saturating_sub(1).max(item.tokens.start)];
    let start = header
        .iter()
        .position(|t| t.is_word("impl"))
        .map_or(0, |at| at + 1);
    let start = match header.get(start) {
        Some(token) if token.is_mark('<') => behind_angles(header, start),
        _ => start,
    };
    let header = header.get(start..).unwrap_or_default();
    let end = header.iter().position(|t| t.is_word("where"));
    let header = &header[..end.unwrap_or(header.len())];
    // `for<'a>` binds a lifetime.
    let split = (0..header.len()).find(|&at| {
        header[at].is_word("for") && !header.get(at + 1).is_some_and(|t| t.is_mark('<'))
    });
    let (of_trait, own) = match split {
        Some(at) => (Some(last_of_path(&header[..at])), &header[at + 1..]),
        None => (None, header),
    };
    Implementation {
        own: match value_of(place, own) {
            Value::Of(id) => Some(id),
            _ => None,
        },
        of_trait,
        items: items(tokens, body),
    }
}

fn last_of_path(tokens: &[Token]) -> String {
    let (path, _) = super::types::path_at(tokens, 0);
    path.last().cloned().unwrap_or_default()
}

impl Implementation {
    pub fn functions(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.kind == Kind::Function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::tokens::tokens;

    #[test]
    fn parameters_and_results_are_cut_out() {
        let source = tokens(
            "const fn f<F: Fn(u8) -> u8>(&self, mut log: &Log, (a, b): (u8, u8)) -> Result<Tail> where F: A {",
        );
        let names: Vec<_> = parameters(&source).iter().map(|p| p.name).collect();
        assert_eq!(names, ["log"]);
        assert!(result(&source)[0].is_word("Result"));
        assert_eq!(result(&source).len(), 4);
        assert!(result(&tokens("fn g() {}")).is_empty());
    }
}
