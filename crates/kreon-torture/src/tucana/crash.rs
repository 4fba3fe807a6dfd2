//! Processes with stores of Tucana that are killed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::tucana::{Maintenance, Options, Recovery};
use kreon_base::Result;
use kreon_device::{FileDevice, FileOptions};

use super::setting::options;
use super::store::Tucana;
use crate::engines::Killed;
use crate::engines::crash::Manner;

/// Longest volume.
const VOLUME_BYTES_MAX: u64 = 64 << 30;

impl Killed for Tucana {
    const THREADS: usize = 3;
    const KEYS: u64 = 800;
    const LIFE_MS_MAX: u64 = 400;
    const STORE_ROUNDS: u64 = 10;
    const VALUE_BYTES: &'static [usize] = &[12, 12, 30, 100, 400, 3000];
    const KEEPS_BUFFERED: bool = false;
    const DURABLE: &'static str = "committed changes";

    /// Without replay, changes are durable by commits only; with it by the log, and commits are made by the thread of the store.
    fn manner(seed: u64, store: u64) -> Manner {
        match recovery(seed, store) {
            Recovery::LastCommit => Manner {
                syncs: 0,
                committers: 2,
            },
            Recovery::ReplayLog => Manner {
                syncs: 5,
                committers: 1,
            },
        }
    }

    /// In waves, so that leaves are split and merged.
    fn deletes(number: u64) -> u64 {
        [10, 80][(number / 2000 % 2) as usize]
    }

    /// Another size of memory every time.
    fn open_file(path: &Path, seed: u64, store: u64, round: u64) -> Result<Self> {
        let file = FileOptions {
            create: true,
            ..FileOptions::default()
        };
        let memory_bytes = [512 << 10, 1 << 20, 8 << 20][round as usize % 3];
        let recovery = recovery(seed, store);
        let options = Options {
            maintenance: match recovery {
                Recovery::LastCommit => Maintenance::Callers,
                Recovery::ReplayLog => Maintenance::Thread,
            },
            commit_interval: Duration::from_millis([10, 100, 1000][round as usize / 3 % 3]),
            ..options(memory_bytes, VOLUME_BYTES_MAX, recovery)
        };
        let (device, _) = FileDevice::open(path, &file)?;
        Self::open(Arc::new(device), &options)
    }
}

/// Of two stores in a row one is opened with replay.
fn recovery(seed: u64, store: u64) -> Recovery {
    match (seed ^ store) % 2 {
        0 => Recovery::ReplayLog,
        _ => Recovery::LastCommit,
    }
}
