//! What a file names and calls: the edges of the graph.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::bindings::{Binding, bindings};
use super::files::{File, Module};
use super::items::{Item, Kind};
use super::methods::Methods;
use super::names::{ItemId, Names, Target};
use super::receivers::{Receivers, got_out};
use super::signatures::{implementation, parameters};
use super::types::{FieldValues, Place, Value, is_separator, path_at, value_of};
use super::uses::{declarations, leaves};
use crate::floors::tokens::Token;

/// All that is known of a crate before its code is read.
pub struct Known<'a> {
    pub names: &'a Names,
    pub methods: &'a Methods,
    pub fields: &'a FieldValues,
}

/// The files that a file depends on, and the lines where it does.
pub type Edges = BTreeMap<usize, BTreeSet<usize>>;

/// The files that the code of `file` depends on, itself perhaps among them.
pub fn edges_of(known: &Known<'_>, file: &File) -> Edges {
    let mut walker = Walker {
        known,
        tokens: &file.tokens,
        found: Edges::new(),
    };
    for module in &file.modules {
        for item in &module.items {
            walker.item(module, item);
        }
    }
    walker.found
}

struct Walker<'a> {
    known: &'a Known<'a>,
    tokens: &'a [Token],
    found: Edges,
}

impl<'a> Walker<'a> {
    fn item(&mut self, module: &'a Module, item: &Item) {
        let place = Place {
            names: self.known.names,
            module: &module.path,
            own: None,
        };
        match item.kind {
            // A re-export is no use: the name counts where it is used.
            Kind::Use if !item.public => self.imports(place, item.tokens.clone()),
            Kind::Use | Kind::Module => {}
            Kind::Implementation => {
                let block = implementation(place, self.tokens, item);
                let body = item
                    .body
                    .clone()
                    .unwrap_or(item.tokens.end..item.tokens.end);
                self.code(place, item.tokens.start..body.start);
                let own = Place {
                    own: block.own.as_ref(),
                    ..place
                };
                for item in &block.items {
                    self.code(own, item.tokens.clone());
                }
            }
            _ => self.code(place, item.tokens.clone()),
        }
    }

    /// The token at `at` names or calls what stands in `file`.
    fn add(&mut self, file: usize, at: usize) {
        let line = self.tokens[at].line;
        self.found.entry(file).or_default().insert(line);
    }

    fn imports(&mut self, place: Place<'_>, range: Range<usize>) {
        for declaration in declarations(self.tokens, range) {
            let at = declaration.start;
            for leaf in leaves(&self.tokens[declaration]) {
                if leaf.name != "*" {
                    self.add_targets(place, &leaf.path, at);
                }
            }
        }
    }

    fn add_targets(&mut self, place: Place<'_>, path: &[String], at: usize) {
        for target in place.names.resolve(place.module, path) {
            if let Target::Item(id) = target {
                self.add(id.file, at);
            }
        }
    }

    fn code(&mut self, place: Place<'_>, range: Range<usize>) {
        self.imports(place, range.clone());
        let mut receivers = Receivers {
            place,
            methods: self.known.methods,
            fields: self.known.fields,
            locals: BTreeMap::new(),
        };
        let mut open: Vec<Binding> = Vec::new();
        let mut at = range.start;
        while at < range.end {
            for bound in open.extract_if(.., |bound| bound.end <= at) {
                self.bind(&mut receivers, bound);
            }
            let token = &self.tokens[at];
            if token.is_word("fn") {
                self.bind_parameters(&mut receivers, at, range.end);
            }
            open.extend(bindings(self.tokens, at));
            if token.word().is_some() {
                self.word(&receivers, at);
            }
            at = if token.is_word("use") {
                self.behind_use(at)
            } else {
                at + 1
            };
        }
    }

    /// Imports in functions were read before.
    fn behind_use(&self, at: usize) -> usize {
        let found = declarations(self.tokens, at..at + 1);
        found.first().map_or(at + 1, |declaration| declaration.end)
    }

    fn bind(&self, receivers: &mut Receivers<'_>, bound: Binding) {
        let value = match bound.kind {
            Some(kind) => value_of(receivers.place, &self.tokens[kind]),
            None => receivers.value_before(self.tokens, bound.end),
        };
        let value = if bound.got_out { got_out(value) } else { value };
        receivers.locals.insert(bound.name, value);
    }

    fn bind_parameters(&self, receivers: &mut Receivers<'_>, at: usize, end: usize) {
        for parameter in parameters(&self.tokens[at..end]) {
            let value = value_of(receivers.place, parameter.kind);
            receivers.locals.insert(parameter.name.to_owned(), value);
        }
    }

    fn word(&mut self, receivers: &Receivers<'_>, at: usize) {
        let before = at.checked_sub(1).and_then(|at| self.tokens.get(at));
        if is_separator(before) {
            return;
        }
        if before.is_some_and(|t| t.is_mark('.')) {
            // Not the end of a range.
            if at < 2 || !self.tokens[at - 2].is_mark('.') {
                self.method_call(receivers, at);
            }
            return;
        }
        self.path(receivers.place, at);
    }

    fn path(&mut self, place: Place<'_>, at: usize) {
        let (path, end) = path_at(self.tokens, at);
        let (Some(last), Some(first)) = (path.last(), path.first()) else {
            return;
        };
        // A lone word in small letters is a local name or a field, unless it is called.
        let called = |t: &Token| t.is_mark('(') || t.is_mark('!');
        let is_capital = first.starts_with(char::is_uppercase);
        if path.len() == 1 && !is_capital && !self.tokens.get(end).is_some_and(called) {
            return;
        }
        if first == "Self" {
            if let (Some(own), true) = (place.own, path.len() > 1) {
                self.add_methods(own, last, at);
            }
            return;
        }
        self.add_targets(place, &path, at);
        if path.len() > 1 {
            for target in place.names.resolve(place.module, &path[..path.len() - 1]) {
                if let Target::Item(id) = target {
                    self.add_methods(&id, last, at);
                }
            }
        }
    }

    fn add_methods(&mut self, id: &ItemId, name: &str, at: usize) -> bool {
        let found = self.known.methods.of_type(id, name);
        for method in found {
            self.add(method.file, at);
        }
        !found.is_empty()
    }

    fn method_call(&mut self, receivers: &Receivers<'_>, at: usize) {
        let tokens = self.tokens;
        let (Some(name), Some(next)) = (tokens[at].word(), tokens.get(at + 1)) else {
            return;
        };
        let turbofish = is_separator(Some(next));
        if !next.is_mark('(') && !turbofish {
            return;
        }
        let is_known = match receivers.value_before(tokens, at - 1) {
            Value::Of(id) => self.add_methods(&id, name, at),
            Value::Holds(_) | Value::Foreign => true,
            Value::Unknown => false,
        };
        if !is_known {
            let only = self.known.methods.only_file(name, receivers.place.module);
            if let Some(file) = only {
                self.add(file, at);
            }
        }
    }
}
