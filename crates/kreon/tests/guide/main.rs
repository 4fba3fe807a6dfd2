//! The programs of `docs/guide`, and a check of all documents: each piece of Rust stands in one of these files or in an
//! example, and each link leads somewhere.

mod changes;
mod documents;
mod durability;
mod excerpts;
mod expiry;
mod first_steps;
mod links;
mod migration;
mod operations;
mod reading;
mod regions;
mod transactions;

use kreon::{Region, Store};

/// A store in a folder of its own, which goes with it.
struct Place {
    folder: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Store::options().memory_bytes(16 << 20);
        let store = options.open(folder.path().join("data.kreon")).unwrap();
        Self { folder, store }
    }

    fn region(&self, pairs: &[(&str, &str)]) -> Region {
        let region = self.store.region("cities").unwrap();
        for (key, value) in pairs {
            region.put(key, value).unwrap();
        }
        region
    }
}
