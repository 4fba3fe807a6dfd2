//! The items of a module, an `impl` or a trait: what each is, what it is called, and where it stands.
//!
//! Items that only tests or models are built with are left out, so nothing that reads items sees them.

use std::ops::Range;

use super::brackets::closing;
use crate::floors::tokens::{Token, What};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A struct, enum or union.
    Type,
    Trait,
    Alias,
    Function,
    Constant,
    Macro,
    Module,
    Use,
    Implementation,
    /// A macro call or an `extern` block.
    Other,
}

#[derive(Debug)]
pub struct Item {
    pub kind: Kind,
    /// Empty for what has no name of its own.
    pub name: String,
    /// Whether it begins with `pub`, however restricted.
    pub public: bool,
    /// From its keyword to its last token.
    pub tokens: Range<usize>,
    /// What stands between its braces; `None` without braces.
    pub body: Option<Range<usize>>,
}

/// The items in `tokens[range]`, which begins where an item may begin.
pub fn items(tokens: &[Token], range: Range<usize>) -> Vec<Item> {
    let mut items = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let (start, for_tests) = behind_attributes(tokens, at);
        let (keyword, public) = behind_visibility(tokens, start);
        if keyword >= range.end {
            break;
        }
        let item = item(tokens, keyword, public);
        // At least one token further, whatever the source looks like.
        at = item.tokens.end.max(at + 1);
        if !for_tests {
            items.push(item);
        }
    }
    items
}

/// The place behind the attributes at `at`, and whether one of them takes the item out of the product.
fn behind_attributes(tokens: &[Token], mut at: usize) -> (usize, bool) {
    let mut for_tests = false;
    while tokens.get(at).is_some_and(|t| t.is_mark('#')) {
        let open = at + 1 + usize::from(tokens.get(at + 1).is_some_and(|t| t.is_mark('!')));
        let close = closing(tokens, open);
        for_tests |= is_cfg_of_tests(&tokens[open.min(close)..close]);
        at = close + 1;
    }
    (at, for_tests)
}

/// Whether `[cfg(...` demands `test`, or one of the model checkers, of the build.
fn is_cfg_of_tests(attribute: &[Token]) -> bool {
    if !attribute.get(1).is_some_and(|t| t.is_word("cfg")) {
        return false;
    }
    let mut at = 2;
    while let Some(token) = attribute.get(at) {
        match token.word() {
            Some("not") => at = closing(attribute, at + 1),
            Some("test" | "loom" | "shuttle") => return true,
            _ => {}
        }
        at += 1;
    }
    false
}

fn behind_visibility(tokens: &[Token], at: usize) -> (usize, bool) {
    if !tokens.get(at).is_some_and(|t| t.is_word("pub")) {
        return (at, false);
    }
    match tokens.get(at + 1) {
        Some(token) if token.is_mark('(') => (closing(tokens, at + 1) + 1, true),
        _ => (at + 1, true),
    }
}

fn item(tokens: &[Token], start: usize, public: bool) -> Item {
    let (kind, name_at) = kind_and_name(tokens, start);
    let (end, body) = end_of_item(tokens, start, kind);
    let name = tokens.get(name_at).and_then(Token::word).unwrap_or("");
    let named = !matches!(kind, Kind::Use | Kind::Implementation | Kind::Other);
    Item {
        kind,
        name: if named {
            name.to_owned()
        } else {
            String::new()
        },
        public,
        tokens: start..end,
        body,
    }
}

/// What begins at `at`, and where its name would stand.
fn kind_and_name(tokens: &[Token], mut at: usize) -> (Kind, usize) {
    loop {
        let next = tokens.get(at + 1).and_then(Token::word);
        let kind = match tokens.get(at).and_then(Token::word) {
            Some("struct" | "enum") => Kind::Type,
            // A contextual keyword: `union!` or `union(..)` is a call.
            Some("union") if next.is_some() => Kind::Type,
            Some("trait") => Kind::Trait,
            Some("type") => Kind::Alias,
            Some("fn") => Kind::Function,
            Some("mod") => Kind::Module,
            Some("use") => Kind::Use,
            Some("impl") => Kind::Implementation,
            Some("macro_rules") => return (Kind::Macro, at + 2),
            Some("const" | "unsafe" | "async" | "extern" | "default" | "auto")
                if matches!(
                    next,
                    Some("fn" | "unsafe" | "async" | "extern" | "impl" | "trait")
                ) =>
            {
                at += 1;
                continue;
            }
            Some("static") if next == Some("mut") => return (Kind::Constant, at + 2),
            Some("const" | "static") => Kind::Constant,
            _ => Kind::Other,
        };
        return (kind, at + 1);
    }
}

/// The place behind the item that starts at `start`, and what its braces hold.
fn end_of_item(tokens: &[Token], start: usize, kind: Kind) -> (usize, Option<Range<usize>>) {
    let ends_at_semicolon = matches!(kind, Kind::Constant | Kind::Use | Kind::Alias);
    let mut at = start;
    while let Some(token) = tokens.get(at) {
        match token.what {
            What::Mark(';') => return (at + 1, None),
            // The brace of whatever stands around: the item has no end of its own.
            What::Mark('}') => return (at, None),
            What::Mark('{') if !ends_at_semicolon => {
                let close = closing(tokens, at);
                return ((close + 1).min(tokens.len()), Some(at + 1..close));
            }
            What::Mark('(' | '[' | '{') => at = closing(tokens, at),
            _ => {}
        }
        at += 1;
    }
    (tokens.len(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::tokens::tokens;

    fn names(source: &str) -> Vec<(Kind, String)> {
        let tokens = tokens(source);
        let items = items(&tokens, 0..tokens.len());
        items.into_iter().map(|i| (i.kind, i.name)).collect()
    }

    #[test]
    fn items_of_every_kind_are_cut() {
        let source = "//! Doc.\n#![forbid(unsafe_code)]\nuse a::{b, c};\npub(crate) const N: [u8; 2] = [{ 1 }, 2];\n\
             pub const unsafe fn f() -> [u8; 4] { [0; 4] }\nstruct S(u8);\nenum E { A, B }\nmod m;\n\
             impl S { fn g() {} }\nmacro_rules! k { () => {} }\nid! { x }\ntype T = u8;\nunsafe trait U {}";
        let found = names(source);
        let kinds: Vec<_> = found.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(
            kinds,
            [
                Kind::Use,
                Kind::Constant,
                Kind::Function,
                Kind::Type,
                Kind::Type,
                Kind::Module,
                Kind::Implementation,
                Kind::Macro,
                Kind::Other,
                Kind::Alias,
                Kind::Trait
            ]
        );
        let named: Vec<_> = found.iter().map(|(_, n)| n.as_str()).collect();
        assert_eq!(named, ["", "N", "f", "S", "E", "m", "", "k", "", "T", "U"]);
    }

    #[test]
    fn items_of_tests_and_of_models_are_left_out() {
        let source = "#[cfg(test)] mod tests { fn a() {} }\n#[cfg(all(test, shuttle))] mod models;\n\
             #[cfg(loom)] mod loomed;\n#[cfg(not(loom))] mod native;\n#[derive(Debug)]\n#[cfg(unix)] struct S;";
        assert_eq!(
            names(source),
            [
                (Kind::Module, "native".to_owned()),
                (Kind::Type, "S".to_owned())
            ]
        );
    }
}
