//! The documents of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the repository.
pub fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.join("../..").canonicalize().unwrap()
}

/// Files of `folder` that end so, in all its folders, in order.
pub fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// All documents: of the root, of `docs`, and what each crate says of itself.
pub fn all() -> Vec<PathBuf> {
    let root = root();
    let mut all: Vec<_> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    all.extend(files(&root.join("docs"), ".md"));
    for folder in fs::read_dir(root.join("crates")).unwrap() {
        let readme = folder.unwrap().path().join("README.md");
        all.extend(readme.is_file().then_some(readme));
    }
    assert!(all.len() > 30, "{all:?}");
    all
}
