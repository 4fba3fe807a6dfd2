//! Which file defines which method of which type.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{File, Module};
use super::items::{Item, Kind, items};
use super::names::{ItemId, Names};
use super::signatures::{implementation, result};
use super::types::{Place, Value, value_of};

#[derive(Debug, Clone)]
pub struct Method {
    pub file: usize,
    /// The module it stands in.
    module: Vec<String>,
    /// A private one is called only below the module it stands in.
    public: bool,
    pub result: Value,
    /// Not a constant of the type.
    is_function: bool,
}

impl Method {
    fn is_visible_from(&self, module: &[String]) -> bool {
        self.public || module.starts_with(&self.module)
    }
}

#[derive(Default)]
pub struct Methods {
    of_types: BTreeMap<ItemId, BTreeMap<String, Vec<Method>>>,
    by_name: BTreeMap<String, Vec<Method>>,
    /// Names that a trait or another crate gives to a method: a call may mean that.
    of_others: BTreeSet<String>,
    /// What a type dereferences to.
    behind: BTreeMap<ItemId, Value>,
    functions: BTreeMap<ItemId, Value>,
}

/// What so many types of the standard library have that the name alone says nothing.
const COMMON: &[&str] = &[
    "add",
    "all",
    "and",
    "any",
    "append",
    "apply",
    "as_mut",
    "as_ref",
    "as_slice",
    "bytes",
    "chain",
    "chars",
    "chunks",
    "clear",
    "clone",
    "cmp",
    "collect",
    "contains",
    "contains_key",
    "copied",
    "count",
    "dec",
    "drain",
    "drop",
    "end",
    "entry",
    "eq",
    "expect",
    "extend",
    "fetch_add",
    "fetch_sub",
    "fill",
    "filter",
    "find",
    "finish",
    "first",
    "flush",
    "fold",
    "from",
    "get",
    "get_mut",
    "inc",
    "insert",
    "into",
    "into_inner",
    "is_empty",
    "is_none",
    "is_some",
    "iter",
    "iter_mut",
    "join",
    "key",
    "kind",
    "keys",
    "last",
    "len",
    "lines",
    "load",
    "lock",
    "map",
    "max",
    "metadata",
    "min",
    "name",
    "new",
    "next",
    "or",
    "parse",
    "path",
    "peek",
    "poll",
    "pop",
    "position",
    "push",
    "range",
    "read",
    "read_at",
    "recv",
    "remove",
    "replace",
    "reserve",
    "resize",
    "retain",
    "rev",
    "seek",
    "send",
    "set",
    "set_len",
    "skip",
    "sort",
    "spawn",
    "split",
    "split_at",
    "start",
    "starts_with",
    "status",
    "step_by",
    "store",
    "sub",
    "sum",
    "swap",
    "sync_all",
    "take",
    "then",
    "trim",
    "truncate",
    "try_lock",
    "unlock",
    "unwrap",
    "update",
    "value",
    "values",
    "wait",
    "wake",
    "with",
    "write",
    "write_all",
    "zip",
];

impl Methods {
    pub fn new(names: &Names, files: &[File]) -> Self {
        let mut methods = Self::default();
        for (at, file) in files.iter().enumerate() {
            for module in &file.modules {
                for item in &module.items {
                    methods.add_item(names, (at, file), module, item);
                }
            }
        }
        methods
    }

    fn add_item(&mut self, names: &Names, file: (usize, &File), module: &Module, item: &Item) {
        let place = Place {
            names,
            module: &module.path,
            own: None,
        };
        match item.kind {
            Kind::Implementation => self.add_implementation(place, file, item),
            Kind::Trait => {
                let body = item.body.clone().unwrap_or(0..0);
                let functions = items(&file.1.tokens, body).into_iter();
                self.of_others.extend(functions.map(|item| item.name));
            }
            Kind::Function => {
                let id = ItemId {
                    file: file.0,
                    kind: Kind::Function,
                    name: item.name.clone(),
                };
                let written = result(&file.1.tokens[item.tokens.clone()]);
                self.functions.insert(id, value_of(place, written));
            }
            _ => {}
        }
    }

    fn add_implementation(&mut self, place: Place<'_>, (at, file): (usize, &File), item: &Item) {
        let block = implementation(place, &file.tokens, item);
        let place = Place {
            own: block.own.as_ref(),
            ..place
        };
        if let Some(of_trait) = &block.of_trait {
            let functions = block.functions().map(|function| function.name.clone());
            self.of_others.extend(functions);
            let target = block.items.iter().find(|item| item.name == "Target");
            if let (Some(own), Some(target), "Deref") = (&block.own, target, of_trait.as_str()) {
                // Behind `type Target =`.
                let written = &file.tokens[target.tokens.start + 3..target.tokens.end];
                self.behind.insert(own.clone(), value_of(place, written));
            }
            return;
        }
        let Some(own) = &block.own else { return };
        let of_type = self.of_types.entry(own.clone()).or_default();
        for item in block.items.iter().filter(|item| !item.name.is_empty()) {
            let method = Method {
                file: at,
                module: place.module.to_vec(),
                public: item.public,
                is_function: item.kind == Kind::Function,
                result: value_of(place, result(&file.tokens[item.tokens.clone()])),
            };
            if method.is_function {
                let named = self.by_name.entry(item.name.clone()).or_default();
                named.push(method.clone());
            }
            of_type.entry(item.name.clone()).or_default().push(method);
        }
    }

    /// What `name` means on a value of the type, or on what that dereferences to.
    pub fn of_type(&self, id: &ItemId, name: &str) -> &[Method] {
        let mut id = id;
        // A type that dereferences to itself does not exist, a chain of three hardly.
        for _ in 0..3 {
            if let Some(found) = self.of_types.get(id).and_then(|of_type| of_type.get(name)) {
                return found;
            }
            match self.behind.get(id) {
                Some(Value::Of(behind)) => id = behind,
                _ => break,
            }
        }
        &[]
    }

    /// The file that must be meant by a call of `name` from `module` on a value of a type that is not known: the only
    /// one that defines such a method there.
    pub fn only_file(&self, name: &str, module: &[String]) -> Option<usize> {
        if self.of_others.contains(name) || COMMON.contains(&name) {
            return None;
        }
        let all = self.by_name.get(name)?.iter();
        let mut files = all
            .filter(|method| method.is_visible_from(module))
            .map(|m| m.file);
        let first = files.next()?;
        files.all(|file| file == first).then_some(first)
    }

    /// The names of methods that other crates may call.
    pub fn exported(&self) -> impl Iterator<Item = &String> {
        let public = |(_, all): &(&String, &Vec<Method>)| all.iter().any(|method| method.public);
        let inherent = self.by_name.iter().filter(public).map(|(name, _)| name);
        inherent.chain(&self.of_others)
    }

    /// Methods of other crates that values here may have: their names alone say nothing any more.
    pub fn know_others(&mut self, names: &BTreeSet<String>) {
        self.of_others.extend(names.iter().cloned());
    }

    /// What the function returns.
    pub fn result_of(&self, function: &ItemId) -> Value {
        self.functions
            .get(function)
            .cloned()
            .unwrap_or(Value::Unknown)
    }

    /// For each type with inherent methods: how many each file defines.
    pub fn slices(&self) -> impl Iterator<Item = (&ItemId, BTreeMap<usize, usize>)> {
        self.of_types.iter().map(|(id, methods)| {
            let mut files = BTreeMap::new();
            for method in methods.values().flatten().filter(|m| m.is_function) {
                *files.entry(method.file).or_default() += 1;
            }
            (id, files)
        })
    }
}
