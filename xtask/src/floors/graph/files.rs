//! The source files of one crate, without those that only tests are built from.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use anyhow::Result;

use super::items::{Item, Kind, items};
use crate::floors::modules::module_path;
use crate::floors::sources::{read, rust_files};
use crate::floors::tokens::{Token, tokens};

pub struct File {
    /// Below the crate's `src`, as `log/open.rs`.
    pub name: String,
    pub text: String,
    pub tokens: Vec<Token>,
    /// The file's own module first, then those inline in it.
    pub modules: Vec<Module>,
}

pub struct Module {
    /// From the crate root: `["log", "open"]`; empty for the root.
    pub path: Vec<String>,
    pub items: Vec<Item>,
}

/// The files below `folder`, the `src` of a crate, that the product is built from.
pub fn files_below(folder: &Path) -> Result<Vec<File>> {
    let mut texts = Vec::new();
    for file in rust_files(folder)? {
        let name = file.strip_prefix(folder)?.to_string_lossy().into_owned();
        texts.push((name, read(&file)?));
    }
    Ok(files(texts))
}

/// The same of names and texts.
pub fn files(texts: Vec<(String, String)>) -> Vec<File> {
    let all: Vec<File> = texts
        .into_iter()
        .map(|(name, text)| file(name, text))
        .collect();
    let mut wanted: BTreeSet<Vec<String>> = BTreeSet::new();
    let is_root = |file: &File| file.modules[0].path.is_empty() || file.name.starts_with("bin/");
    let mut open: Vec<&File> = all.iter().filter(|file| is_root(file)).collect();
    while let Some(file) = open.pop() {
        for path in declared(file) {
            let found = all.iter().filter(|f| f.modules[0].path == path);
            if wanted.insert(path.clone()) {
                open.extend(found);
            }
        }
    }
    let built = all
        .iter()
        .map(|f| is_root(f) || wanted.contains(&f.modules[0].path));
    let built: Vec<bool> = built.collect();
    all.into_iter()
        .zip(built)
        .filter(|(_, built)| *built)
        .map(|(file, _)| file)
        .collect()
}

fn file(name: String, text: String) -> File {
    let tokens = tokens(&text);
    let mut modules = Vec::new();
    let path = module_path(Path::new(&name));
    add_modules(&tokens, 0..tokens.len(), path, &mut modules);
    File {
        name,
        text,
        tokens,
        modules,
    }
}

fn add_modules(
    tokens: &[Token],
    range: Range<usize>,
    path: Vec<String>,
    modules: &mut Vec<Module>,
) {
    let items = items(tokens, range);
    let inline: Vec<_> = items
        .iter()
        .filter(|item| item.kind == Kind::Module)
        .filter_map(|item| Some((item.name.clone(), item.body.clone()?)))
        .collect();
    modules.push(Module {
        path: path.clone(),
        items,
    });
    for (name, body) in inline {
        let path = path.iter().cloned().chain([name]).collect();
        add_modules(tokens, body, path, modules);
    }
}

/// The modules that `file` declares and that lie in files of their own.
fn declared(file: &File) -> impl Iterator<Item = Vec<String>> {
    file.modules.iter().flat_map(|module| {
        let outside = |item: &&Item| item.kind == Kind::Module && item.body.is_none();
        let names = module.items.iter().filter(outside).map(|item| &item.name);
        names.map(|name| module.path.iter().chain([name]).cloned().collect())
    })
}

/// A crate in memory, for tests of what reads files.
#[cfg(test)]
pub fn in_memory(texts: &[(&str, &str)]) -> Vec<File> {
    let owned = texts
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    files(owned.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_tests_are_left_out_with_all_they_declare() {
        let files = in_memory(&[
            ("lib.rs", "mod log; #[cfg(test)] mod tests;"),
            (
                "log/mod.rs",
                "mod open; #[cfg(all(test, shuttle))] mod models; mod inline { mod deep; }",
            ),
            ("log/open.rs", ""),
            ("log/models.rs", ""),
            ("log/inline/deep.rs", ""),
            ("tests/mod.rs", "mod more;"),
            ("tests/more.rs", ""),
        ]);
        let names: Vec<_> = files.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(
            names,
            ["lib.rs", "log/mod.rs", "log/open.rs", "log/inline/deep.rs"]
        );
    }
}
