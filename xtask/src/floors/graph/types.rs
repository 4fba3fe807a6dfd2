//! What the name of a type says about the methods that its values have.

use std::collections::BTreeMap;

use super::brackets::{behind_angles, closing, split_at_commas};
use super::files::File;
use super::items::Kind;
use super::names::{ItemId, Names, Target};
use crate::floors::tokens::{Token, What};

/// What is known of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// It has the methods of this type of the crate.
    Of(ItemId),
    /// It holds such a value, which has to be got out: an option, a lock, a list.
    Holds(ItemId),
    /// Its type is of another crate, or a trait: no inherent method of this crate is called on it.
    Foreign,
    Unknown,
}

/// What dereferences to its first argument.
const POINTERS: &[&str] = &[
    "Arc",
    "Rc",
    "Box",
    "Pin",
    "Ref",
    "RefMut",
    "MutexGuard",
    "RwLockReadGuard",
    "RwLockWriteGuard",
    "Guard",
    "LazyLock",
    "ManuallyDrop",
    "Cow",
    "CachePadded",
];

/// What has to be asked for its first argument.
const HOLDERS: &[&str] = &[
    "Option",
    "Result",
    "Mutex",
    "RwLock",
    "OnceLock",
    "OnceCell",
    "RefCell",
    "Cell",
    "ArcSwap",
    "ArcSwapOption",
    "Vec",
    "VecDeque",
    "Weak",
];

/// The module that a type is named in, and what `Self` means there.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub names: &'a Names,
    pub module: &'a [String],
    pub own: Option<&'a ItemId>,
}

/// What the type written in `tokens` says of its values.
pub fn value_of(place: Place<'_>, tokens: &[Token]) -> Value {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match &token.what {
            What::Mark('&' | '*') => at += 1,
            What::Word(word) if word == "mut" || word == "const" => at += 1,
            What::Mark('[') => {
                let close = closing(tokens, at);
                return held(value_of(place, &tokens[at + 1..close]));
            }
            What::Word(word) if word == "Self" => {
                return place
                    .own
                    .map_or(Value::Unknown, |own| Value::Of(own.clone()));
            }
            What::Word(word) if word == "dyn" || word == "impl" => return Value::Foreign,
            What::Word(_) => return value_of_path(place, tokens, at),
            _ => return Value::Foreign,
        }
    }
    Value::Unknown
}

fn value_of_path(place: Place<'_>, tokens: &[Token], at: usize) -> Value {
    let (path, end) = path_at(tokens, at);
    let argument = || {
        let close = behind_angles(tokens, end).saturating_sub(1);
        let arguments = tokens.get(end + 1..close).unwrap_or_default();
        // A lifetime leaves no token behind, but the comma after it.
        let mut written = split_at_commas(arguments)
            .into_iter()
            .filter(|a| !a.is_empty());
        written
            .next()
            .map_or(Value::Unknown, |first| value_of(place, first))
    };
    for target in place.names.resolve(place.module, &path) {
        match target {
            Target::Item(id) if id.kind == Kind::Type => return Value::Of(id),
            Target::Item(id) if id.kind == Kind::Alias => return Value::Unknown,
            _ => {}
        }
    }
    let name = path.last().map_or("", String::as_str);
    if POINTERS.contains(&name) {
        return argument();
    }
    if HOLDERS.contains(&name) {
        return held(argument());
    }
    // One letter is a parameter, which may stand for a type of this crate.
    if name.len() == 1 {
        Value::Unknown
    } else {
        Value::Foreign
    }
}

fn held(value: Value) -> Value {
    match value {
        Value::Of(id) | Value::Holds(id) => Value::Holds(id),
        other => other,
    }
}

/// The path that starts at `at`, without the arguments of its types, and the place behind it.
pub fn path_at(tokens: &[Token], at: usize) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    let mut at = at;
    while let Some(word) = tokens.get(at).and_then(Token::word) {
        path.push(word.to_owned());
        at += 1;
        if !is_separator(tokens.get(at)) {
            break;
        }
        if tokens.get(at + 1).is_some_and(|t| t.is_mark('<')) {
            at = behind_angles(tokens, at + 1);
            if !is_separator(tokens.get(at)) {
                break;
            }
        }
        at += 1;
    }
    (path, at)
}

pub fn is_separator(token: Option<&Token>) -> bool {
    token.is_some_and(|t| t.what == What::PathSeparator)
}

/// A field of a struct.
pub struct Field<'a> {
    pub name: String,
    pub public: bool,
    pub kind: &'a [Token],
}

/// The fields of the struct in `tokens`, from its keyword on; none for an enum.
pub fn fields(tokens: &[Token]) -> Vec<Field<'_>> {
    let is_struct = tokens.first().is_some_and(|t| t.is_word("struct"));
    let mut at = 2;
    if tokens.get(at).is_some_and(|t| t.is_mark('<')) {
        at = behind_angles(tokens, at);
    }
    let ahead = tokens.iter().skip(at);
    let ahead = ahead.take_while(|t| !t.is_mark('{') && !t.is_mark('(') && !t.is_mark(';'));
    let open = at + ahead.count();
    if !is_struct || open + 1 >= tokens.len() {
        return Vec::new();
    }
    let parts = split_at_commas(&tokens[open + 1..closing(tokens, open)]).into_iter();
    parts
        .enumerate()
        .map(|(at, part)| field(part, at))
        .collect()
}

/// A field as it stands between commas; the place is the name of one without.
fn field(mut tokens: &[Token], place: usize) -> Field<'_> {
    while tokens.first().is_some_and(|t| t.is_mark('#')) {
        tokens = tokens.get(closing(tokens, 1) + 1..).unwrap_or_default();
    }
    let public = tokens.first().is_some_and(|t| t.is_word("pub"));
    if public {
        let restricted = tokens.get(1).is_some_and(|t| t.is_mark('('));
        let behind = if restricted {
            closing(tokens, 1) + 1
        } else {
            1
        };
        tokens = tokens.get(behind..).unwrap_or_default();
    }
    let named = tokens.get(1).is_some_and(|t| t.is_mark(':'));
    let name = tokens.first().and_then(Token::word).filter(|_| named);
    Field {
        name: name.map_or_else(|| place.to_string(), str::to_owned),
        public,
        kind: if named { &tokens[2..] } else { tokens },
    }
}

/// What the fields of the crate's structs hold.
pub type FieldValues = BTreeMap<(ItemId, String), Value>;

pub fn field_values(names: &Names, files: &[File]) -> FieldValues {
    let mut values = BTreeMap::new();
    for (at, file) in files.iter().enumerate() {
        for module in &file.modules {
            for item in module.items.iter().filter(|item| item.kind == Kind::Type) {
                let own = ItemId {
                    file: at,
                    kind: Kind::Type,
                    name: item.name.clone(),
                };
                let place = Place {
                    names,
                    module: &module.path,
                    own: Some(&own),
                };
                for field in fields(&file.tokens[item.tokens.clone()]) {
                    let value = value_of(place, field.kind);
                    values.insert((own.clone(), field.name), value);
                }
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::graph::files::in_memory;
    use crate::floors::tokens::tokens;

    #[test]
    fn types_tell_whose_methods_their_values_have() {
        let files = in_memory(&[("lib.rs", "struct Log; trait Source {} type Short = Log;")]);
        let names = Names::new("house", &files);
        let place = Place {
            names: &names,
            module: &[],
            own: None,
        };
        let value = |text: &str| match value_of(place, &tokens(text)) {
            Value::Of(id) => format!("of {}", id.name),
            Value::Holds(id) => format!("holds {}", id.name),
            Value::Foreign => "foreign".to_owned(),
            Value::Unknown => "unknown".to_owned(),
        };
        assert_eq!(value("&'a mut Log"), "of Log");
        assert_eq!(value("std::sync::Arc<crate::Log>"), "of Log");
        assert_eq!(value("MutexGuard<'_, Log>"), "of Log");
        assert_eq!(value("Box<[Mutex<Option<Arc<Log>>>]>"), "holds Log");
        assert_eq!(value("&dyn Source"), "foreign");
        assert_eq!(value("HashMap<u8, Log>"), "foreign");
        assert_eq!(value("Short"), "unknown");
    }

    #[test]
    fn fields_are_told_with_and_without_names() {
        let found = |source: &str| -> Vec<(String, bool)> {
            let tokens = tokens(source);
            let fields = fields(&tokens).into_iter();
            fields.map(|f| (f.name, f.public)).collect()
        };
        let named = "struct S<'a, T: Fn(u8)> where T: A { #[x] pub(in crate::a) b: &'a T, c: HashMap<u8, u8> }";
        assert_eq!(
            found(named),
            [("b".to_owned(), true), ("c".to_owned(), false)]
        );
        assert_eq!(found("struct P(pub u8, [u8; 2]);").len(), 2);
        assert!(found("enum E { A(u8), B }").is_empty());
        assert!(found("struct U;").is_empty());
    }
}
