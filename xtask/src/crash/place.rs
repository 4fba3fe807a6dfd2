//! The folder that a run works in.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A folder for the store. What this run made is removed with [`Place::remove`], and only then: after
/// a failure it stays to be looked at.
pub struct Place {
    folder: PathBuf,
    /// Whether the folder itself was made by this run.
    made: bool,
}

impl Place {
    /// Takes `folder`, or makes a new one. Not below `/tmp`, which often is memory.
    pub fn new(folder: Option<&Path>) -> Result<Self> {
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None => Path::new("/var/tmp").join(format!("kreon-crash-{}", std::process::id())),
        };
        let made = !folder.exists();
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self { folder, made })
    }

    /// Where the store is.
    pub fn store(&self) -> PathBuf {
        self.folder.join("crash.kreon")
    }

    /// Removes the store, so that the next open makes a new one.
    pub fn clear(&self) -> Result<()> {
        let store = self.store();
        if store.exists() {
            std::fs::remove_file(&store)
                .with_context(|| format!("cannot remove {}", store.display()))?;
        }
        Ok(())
    }

    /// Removes all that this run made.
    pub fn remove(self) -> Result<()> {
        self.clear()?;
        if self.made {
            std::fs::remove_dir(&self.folder)
                .with_context(|| format!("cannot remove {}", self.folder.display()))?;
        }
        Ok(())
    }
}
