//! Whose value an expression yields, as far as the types that are written down tell.

use std::collections::BTreeMap;

use super::brackets::opening;
use super::methods::Methods;
use super::names::Target;
use super::types::{FieldValues, Place, Value, is_separator, path_at};
use crate::floors::tokens::{Token, What};

/// What gives the value that something holds.
const OPENING: &[&str] = &[
    "borrow",
    "borrow_mut",
    "expect",
    "get_or_init",
    "load",
    "load_full",
    "lock",
    "read",
    "unwrap",
    "unwrap_or_default",
    "unwrap_or_else",
    "write",
];

/// What gives another thing that holds the value.
const KEEPING: &[&str] = &[
    "as_deref",
    "as_mut",
    "as_ref",
    "clone",
    "cloned",
    "copied",
    "first",
    "get",
    "get_mut",
    "iter",
    "iter_mut",
    "last",
    "map_err",
    "next",
    "ok_or",
    "ok_or_else",
    "pop",
    "take",
    "try_lock",
    "upgrade",
];

/// What is known inside one function, at one place.
pub struct Receivers<'a> {
    pub place: Place<'a>,
    pub methods: &'a Methods,
    pub fields: &'a FieldValues,
    pub locals: BTreeMap<String, Value>,
}

impl Receivers<'_> {
    /// The value of the expression that ends just before `end`.
    pub fn value_before(&self, tokens: &[Token], end: usize) -> Value {
        let Some(last) = end.checked_sub(1).and_then(|at| tokens.get(at)) else {
            return Value::Unknown;
        };
        match &last.what {
            What::Word(word) => self.value_of_word(tokens, end - 1, word),
            What::Mark(')') => self.value_of_call(tokens, end - 1),
            What::Mark('?') => got_out(self.value_before(tokens, end - 1)),
            What::Mark(']') => match opening(tokens, end - 1) {
                Some(open) => match self.value_before(tokens, open) {
                    Value::Holds(id) => Value::Of(id),
                    _ => Value::Unknown,
                },
                None => Value::Unknown,
            },
            What::Mark('}') => self.value_of_literal(tokens, end - 1),
            _ => Value::Unknown,
        }
    }

    fn value_of_word(&self, tokens: &[Token], at: usize, word: &str) -> Value {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        if before.is_some_and(|t| t.is_mark('.')) {
            return match self.value_before(tokens, at - 1) {
                Value::Of(id) => {
                    let field = self.fields.get(&(id, word.to_owned()));
                    field.cloned().unwrap_or(Value::Unknown)
                }
                _ => Value::Unknown,
            };
        }
        if is_separator(before) {
            return Value::Unknown;
        }
        if word == "self" {
            let own = self.place.own.cloned();
            return own.map_or(Value::Unknown, Value::Of);
        }
        self.locals.get(word).cloned().unwrap_or(Value::Unknown)
    }

    /// The value of a call, or of an expression in parentheses, that ends at `close`.
    fn value_of_call(&self, tokens: &[Token], close: usize) -> Value {
        let Some(open) = opening(tokens, close) else {
            return Value::Unknown;
        };
        let called = open.checked_sub(1).and_then(|at| tokens.get(at)?.word());
        let Some(name) = called.filter(|name| !matches!(*name, "in" | "match" | "return" | "if"))
        else {
            return self.value_before(tokens, close);
        };
        if open >= 2 && tokens[open - 2].is_mark('.') {
            return self.value_of_method(self.value_before(tokens, open - 2), name);
        }
        let start = start_of_path(tokens, open - 1);
        self.value_of_function(&path_at(tokens, start).0)
    }

    fn value_of_method(&self, receiver: Value, name: &str) -> Value {
        match receiver {
            Value::Of(id) => match self.methods.of_type(&id, name) {
                [method, ..] => method.result.clone(),
                [] if OPENING.contains(&name) || KEEPING.contains(&name) => Value::Of(id),
                [] => Value::Unknown,
            },
            Value::Holds(id) if OPENING.contains(&name) => Value::Of(id),
            Value::Holds(id) if KEEPING.contains(&name) => Value::Holds(id),
            _ => Value::Unknown,
        }
    }

    fn value_of_function(&self, path: &[String]) -> Value {
        if let [of, name] = path
            && of == "Self"
            && let Some(own) = self.place.own
        {
            let found = self.methods.of_type(own, name).first();
            return found.map_or(Value::Unknown, |method| method.result.clone());
        }
        for target in self.place.names.resolve(self.place.module, path) {
            let Target::Item(id) = target else { continue };
            let name = path.last().map_or("", String::as_str);
            let found = self.methods.of_type(&id, name).first();
            return match found {
                Some(method) => method.result.clone(),
                None => self.methods.result_of(&id),
            };
        }
        // `Arc::new(x)`, `Arc::clone(&x)`, `Box::new(x)`: not worth the look at the argument.
        Value::Unknown
    }

    fn value_of_literal(&self, tokens: &[Token], close: usize) -> Value {
        let path = opening(tokens, close)
            .and_then(|open| open.checked_sub(1))
            .map(|last| {
                let start = start_of_path(tokens, last);
                path_at(tokens, start).0
            });
        let path = path.unwrap_or_default();
        if path == ["Self"] {
            return self.place.own.cloned().map_or(Value::Unknown, Value::Of);
        }
        let targets = self
            .place
            .names
            .resolve(self.place.module, &path)
            .into_iter();
        let mut items = targets.filter_map(|target| match target {
            Target::Item(id) => Some(Value::Of(id)),
            Target::Module(_) => None,
        });
        items.next().unwrap_or(Value::Unknown)
    }
}

/// What is in an option or a result.
pub fn got_out(value: Value) -> Value {
    match value {
        Value::Holds(id) => Value::Of(id),
        other => other,
    }
}

/// Where the path starts that has the word at `last` as its last segment.
fn start_of_path(tokens: &[Token], last: usize) -> usize {
    let mut start = last;
    while start >= 2 && is_separator(tokens.get(start - 1)) && tokens[start - 2].word().is_some() {
        start -= 2;
    }
    start
}
