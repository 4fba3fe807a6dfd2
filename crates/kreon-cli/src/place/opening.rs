//! Opens the store that a command works on, whichever engine it has.

use std::path::Path;

use kreon::Store;
use tucana::Creation;

use super::Place;
use crate::failure::{Failure, Result};
use crate::options::{Engine, Shared};
use crate::session::Opening;

/// Memory of Tucana beside its budget: segments of the log.
const TUCANA_LOG_BYTES: usize = 6 << 20;

/// What is left of a small budget at the least.
const TUCANA_MEMORY_BYTES_MIN: usize = 2 << 20;

/// Opens the store at `path` with the engine that it has; a new one with the engine that was asked for.
pub fn open_store(shared: &Shared, opening: Opening, path: &Path) -> Result<Place> {
    let asked = shared.engine.engine;
    let engine = match engine_at(path) {
        // A store of Kreon is told from anything else by those that were asked for.
        None => asked.unwrap_or(Engine::Kreon),
        Some(engine) if asked.is_none_or(|asked| asked == engine) => engine,
        Some(engine) => {
            let name = engine.name();
            return Err(Failure::usage(format!(
                "the store has the engine {name}: leave --engine out, or name another path"
            )));
        }
    };
    match engine {
        Engine::Kreon => open_kreon(shared, opening, path),
        Engine::Kvell => open_kvell(shared, opening, path),
        Engine::Tucana => open_tucana(shared, opening, path),
    }
}

/// The engine of the store at `path`, if it is there and has another one than Kreon, which tells the rest.
fn engine_at(path: &Path) -> Option<Engine> {
    // What else is wrong with the path, the opening tells better.
    if kvell::Store::is_at(path).unwrap_or(false) {
        return Some(Engine::Kvell);
    }
    let is_tucana = tucana::Store::is_at(path).unwrap_or(false);
    is_tucana.then_some(Engine::Tucana)
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

/// Tucana has no opening that only reads: the superblock counts openings.
fn open_tucana(shared: &Shared, opening: Opening, path: &Path) -> Result<Place> {
    let defaults = tucana::Options::default();
    let memory_bytes = shared.store.memory.unwrap_or(opening.memory_bytes_default);
    let options = tucana::Options {
        memory_bytes: memory_bytes
            .saturating_sub(TUCANA_LOG_BYTES)
            .max(TUCANA_MEMORY_BYTES_MIN),
        volume_bytes_max: match shared.growth.volume_max {
            Some(bytes) => bytes as u64,
            None => defaults.volume_bytes_max,
        },
        ..defaults
    };
    let creation = match (opening.creates_store, opening.formats_store) {
        (false, _) => Creation::Never,
        (true, false) => Creation::IfEmpty,
        (true, true) => Creation::OverContent,
    };
    tucana::Store::open_file(path, &options, creation)
        .map(Place::Tucana)
        .map_err(|error| Failure::opening(error, path))
}
