//! What a path means: which item of which file, through imports, globs and re-exports.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{File, Module};
use super::items::{Item, Kind};
use super::uses::{declarations, leaves};

/// An item of the crate by the place of its file in the list of files, and by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemId {
    pub file: usize,
    pub kind: Kind,
    pub name: String,
}

/// What a path can lead to within the crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    Item(ItemId),
    Module(Vec<String>),
}

/// Imports that lead to imports: more than any sane chain, few enough for one that leads nowhere.
const STEPS_MAX: usize = 8;

enum Meaning {
    Here(Target),
    /// To be followed from the module it stands in.
    Import(Vec<String>),
}

#[derive(Default)]
struct Scope {
    /// A name may mean several things: a module and a function, say.
    names: BTreeMap<String, Vec<Meaning>>,
    globs: Vec<Vec<String>>,
}

/// The names of all modules of one crate.
pub struct Names {
    scopes: BTreeMap<Vec<String>, Scope>,
    /// The crate as its own binaries call it.
    own: String,
}

impl Names {
    pub fn new(crate_name: &str, files: &[File]) -> Self {
        let mut names = Self {
            scopes: BTreeMap::new(),
            own: crate_name.replace('-', "_"),
        };
        for (at, file) in files.iter().enumerate() {
            for module in &file.modules {
                for item in &module.items {
                    names.add_item(at, &module.path, item);
                    names.add_imports(file, module, item);
                }
            }
        }
        names
    }

    fn add_item(&mut self, file: usize, path: &[String], item: &Item) {
        if item.name.is_empty() {
            return;
        }
        let target = match item.kind {
            Kind::Module => Target::Module(path.iter().chain([&item.name]).cloned().collect()),
            kind => Target::Item(ItemId {
                file,
                kind,
                name: item.name.clone(),
            }),
        };
        let scope = self.scopes.entry(path.to_vec()).or_default();
        let meanings = scope.names.entry(item.name.clone()).or_default();
        meanings.push(Meaning::Here(target));
    }

    /// Imports inside functions count for the whole module: what they name is the same.
    fn add_imports(&mut self, file: &File, module: &Module, item: &Item) {
        if item.kind == Kind::Module {
            return;
        }
        let scope = self.scopes.entry(module.path.clone()).or_default();
        for range in declarations(&file.tokens, item.tokens.clone()) {
            for leaf in leaves(&file.tokens[range]) {
                match leaf.name.as_str() {
                    "*" => scope.globs.push(leaf.path),
                    // A name that stands for itself comes from another crate.
                    name if leaf.path == [name] => {}
                    _ => {
                        let meanings = scope.names.entry(leaf.name).or_default();
                        meanings.push(Meaning::Import(leaf.path));
                    }
                }
            }
        }
    }

    /// What `path` means in the module `from`; nothing if it leads out of the crate.
    pub fn resolve(&self, from: &[String], path: &[String]) -> BTreeSet<Target> {
        self.follow(from, path, STEPS_MAX)
    }

    fn follow(&self, from: &[String], path: &[String], steps: usize) -> BTreeSet<Target> {
        let (Some(first), Some(steps)) = (path.first(), steps.checked_sub(1)) else {
            return BTreeSet::new();
        };
        let mut here = match first.as_str() {
            "crate" => BTreeSet::from([Target::Module(Vec::new())]),
            own if own == self.own => BTreeSet::from([Target::Module(Vec::new())]),
            "self" => BTreeSet::from([Target::Module(from.to_vec())]),
            "super" => parent(from).into_iter().collect(),
            name => self.look_up(from, name, steps),
        };
        for segment in &path[1..] {
            here = here
                .into_iter()
                .flat_map(|target| self.step(target, segment, steps))
                .collect();
        }
        here
    }

    /// One segment further. What belongs to a type or trait counts as the type or trait itself.
    fn step(&self, target: Target, segment: &str, steps: usize) -> BTreeSet<Target> {
        match target {
            Target::Module(path) if segment == "super" => parent(&path).into_iter().collect(),
            Target::Module(path) => self.look_up(&path, segment, steps),
            Target::Item(id) if matches!(id.kind, Kind::Type | Kind::Trait | Kind::Alias) => {
                BTreeSet::from([Target::Item(id)])
            }
            Target::Item(_) => BTreeSet::new(),
        }
    }

    fn look_up(&self, module: &[String], name: &str, steps: usize) -> BTreeSet<Target> {
        let Some(scope) = self.scopes.get(module) else {
            return BTreeSet::new();
        };
        let mut found = BTreeSet::new();
        for meaning in scope.names.get(name).into_iter().flatten() {
            match meaning {
                Meaning::Here(target) => {
                    found.insert(target.clone());
                }
                Meaning::Import(path) => found.extend(self.follow(module, path, steps)),
            }
        }
        if found.is_empty() && !scope.names.contains_key(name) {
            for glob in &scope.globs {
                for target in self.follow(module, glob, steps) {
                    if let (Target::Module(path), Some(steps)) = (target, steps.checked_sub(1)) {
                        found.extend(self.look_up(&path, name, steps));
                    }
                }
            }
        }
        found
    }
}

fn parent(path: &[String]) -> Option<Target> {
    let (_, parent) = path.split_last()?;
    Some(Target::Module(parent.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::graph::files::in_memory;

    const HOUSE: &[(&str, &str)] = &[
        (
            "lib.rs",
            "mod log; mod tree; pub use log::Tail; pub use tree::*;",
        ),
        (
            "log/mod.rs",
            "mod open; mod replay; pub use open::{Log as Tail, Log}; pub use replay::replay;",
        ),
        ("log/open.rs", "pub struct Log; use parking_lot::Mutex;"),
        (
            "log/replay.rs",
            "use super::open::Log as L; pub fn replay() {}",
        ),
        (
            "tree.rs",
            "pub enum Leaf { Full } mod inner { use super::*; }",
        ),
    ];

    /// The files in which `path`, written in `module`, ends.
    fn ends(module: &str, path: &str) -> Vec<String> {
        let files = in_memory(HOUSE);
        let split = |path: &str| -> Vec<String> {
            let parts = path.split("::").filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect()
        };
        let names = Names::new("the-house", &files);
        let targets = names.resolve(&split(module), &split(path)).into_iter();
        targets
            .map(|target| match target {
                Target::Item(id) => format!("{} in {}", id.name, files[id.file].name),
                Target::Module(path) => format!("module {}", path.join("::")),
            })
            .collect()
    }

    #[test]
    fn re_exports_and_renames_lead_to_the_file_that_defines() {
        assert_eq!(ends("tree", "crate::Tail"), ["Log in log/open.rs"]);
        assert_eq!(ends("tree", "crate::log::Log::new"), ["Log in log/open.rs"]);
        assert_eq!(ends("log::replay", "L"), ["Log in log/open.rs"]);
        assert_eq!(ends("bin", "the_house::Tail"), ["Log in log/open.rs"]);
    }

    #[test]
    fn a_name_may_be_a_module_and_a_function() {
        assert_eq!(
            ends("log", "replay"),
            ["replay in log/replay.rs", "module log::replay"]
        );
        assert_eq!(ends("", "log::replay::replay"), ["replay in log/replay.rs"]);
    }

    #[test]
    fn globs_are_searched_where_no_name_stands() {
        assert_eq!(ends("log", "crate::Leaf::Full"), ["Leaf in tree.rs"]);
        assert_eq!(ends("tree::inner", "Leaf"), ["Leaf in tree.rs"]);
    }

    #[test]
    fn what_other_crates_define_leads_nowhere() {
        assert_eq!(ends("log::open", "Mutex::new"), Vec::<String>::new());
        assert_eq!(
            ends("log::open", "parking_lot::Mutex"),
            Vec::<String>::new()
        );
    }
}
