//! The documents that have tables.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace::root;

/// Their paths.
pub fn of_the_project() -> Result<Vec<PathBuf>> {
    let mut documents = vec![root().join("README.md")];
    for entry in std::fs::read_dir(root().join("docs/results"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "md") {
            documents.push(path);
        }
    }
    documents.sort();
    Ok(documents)
}

/// Copies of them in the folder `place`.
pub fn copies(place: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(place)?;
    let copy = |from: PathBuf| {
        let to = place.join(from.file_name().context("a document has no name")?);
        std::fs::copy(&from, &to).with_context(|| format!("copying {}", from.display()))?;
        Ok(to)
    };
    of_the_project()?.into_iter().map(copy).collect()
}
