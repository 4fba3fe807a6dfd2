//! Processes with stores of KVell that are killed.

use std::path::Path;

use ::kvell::Options;
use kreon_base::Result;

use super::store::Kvell;
use crate::engines::Killed;
use crate::engines::crash::Manner;

impl Killed for Kvell {
    const THREADS: usize = 4;
    const KEYS: u64 = 150;
    const LIFE_MS_MAX: u64 = 300;
    const STORE_ROUNDS: u64 = u64::MAX;
    const VALUE_BYTES: &'static [usize] = &[20, 100, 450, 1000, 4000, 30_000];
    const KEEPS_BUFFERED: bool = true;
    const DURABLE: &'static str = "acknowledged changes";

    /// Only a power cut loses buffered changes.
    fn manner(_seed: u64, _store: u64) -> Manner {
        Manner {
            syncs: 40,
            committers: 0,
        }
    }

    fn deletes(_number: u64) -> u64 {
        20
    }

    /// Another number of workers every time.
    fn open_file(path: &Path, _seed: u64, _store: u64, round: u64) -> Result<Self> {
        let options = Options {
            memory_bytes: 4 << 20,
            partitions: 6,
            workers: Some(1 + round as usize % 5),
            ..Options::default()
        };
        options.open(path).map(Self::of)
    }
}
