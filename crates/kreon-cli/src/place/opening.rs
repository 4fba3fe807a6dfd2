//! Opens the store that a command works on, whichever engine it has.

use std::path::Path;

use kreon::Store;

use super::Place;
use crate::failure::{Failure, Result};
use crate::options::{Engine, Shared};
use crate::session::Opening;

/// Opens the store at `path` with the engine that it has; a new one with the engine that was asked for.
pub fn open_store(shared: &Shared, opening: Opening, path: &Path) -> Result<Place> {
    // What else is wrong with the path, the opening tells better.
    let is_kvell = kvell::Store::is_at(path).unwrap_or(false);
    match shared.engine.engine {
        Some(Engine::Kreon) if is_kvell => Err(Failure::usage(
            "the store has the engine kvell: leave --engine out, or name another path",
        )),
        Some(Engine::Kvell) => open_kvell(shared, opening, path),
        _ if is_kvell => open_kvell(shared, opening, path),
        _ => open_kreon(shared, opening, path),
    }
}

fn open_kreon(shared: &Shared, opening: Opening, path: &Path) -> Result<Place> {
    let memory_bytes = shared.store.memory;
    let mut options = Store::options()
        .memory_bytes(memory_bytes.unwrap_or(opening.memory_bytes_default))
        .durability(shared.durability())
        .create(opening.creates_store)
        .format(opening.formats_store)
        .read_only(opening.reads_only)
        .status(true);
    // As an opening for writing takes what it needs for the log, whatever the budget of a command is by default.
    if memory_bytes.is_none() {
        options = options.replay_bytes_max(usize::MAX);
    }
    if let Some(volume_bytes_max) = shared.growth.volume_max {
        options = options.volume_bytes_max(volume_bytes_max as u64);
    }
    options
        .open(path)
        .map(Place::Store)
        .map_err(|error| Failure::opening(error, path))
}

/// KVell has no opening that only reads: the superblock counts openings.
fn open_kvell(shared: &Shared, opening: Opening, path: &Path) -> Result<Place> {
    let mut options = kvell::Options {
        create: opening.creates_store,
        format: opening.formats_store,
        volume_bytes_max: shared.growth.volume_max.map(|bytes| bytes as u64),
        ..kvell::Options::default()
    };
    // The index grows with the keys and must find room: what a command needs by default is not known.
    if let Some(memory_bytes) = shared.store.memory {
        options.memory_bytes = memory_bytes;
    }
    options
        .open(path)
        .map(Place::Kvell)
        .map_err(|error| Failure::opening(error, path))
}
