//! The engine of Kreon: volume, log, level trees, spill, checkpoint, recovery, and the paths of reads
//! and writes over them. Floor 3.
//!
//! From the ground: `volume` -> `log`, `tree` -> `level` -> `state` -> `spill`, `checkpoint`,
//! `gc` ->
//! `image` -> `recovery` -> `engine` -> `salvage`.
#![forbid(unsafe_code)]

mod by_region;
mod checkpoint;
mod engine;
mod gc;
mod image;
mod keys;
mod level;
mod log;
mod options;
mod placement;
mod ranges;
mod recovery;
mod salvage;
mod spill;
mod state;
mod sync;
mod tree;
mod volume;

pub use engine::{
    CollectionStats, DeletedRange, Durable, Engine, GetStats, GetTask, ImageStats, KeyBounds,
    LevelStats, MemoryStats, OpenSnapshot, Operation, PageClassStats, PageStats, Pairs, Progress,
    RegionState, ReorganisationStats, Scan, Stats, TakePair, ValueReader, VerifyReport,
    prefix_bounds,
};
pub use kreon_device::{DeviceStats, TransferStats};
pub use kreon_mapping::{
    Backend, Eviction, KeepRecords, MapAdvice, MappingModes, MappingStats, Writeback,
};
pub use log::{Fill, Own, TakeValue};
pub use options::{Background, Durability, MEMORY_BYTES_MIN, Options, Work};
pub use salvage::{
    DamagedPage, LogHole, LostRange, PageRole, SalvageOptions, SalvageProgress, SalvageReport,
    SalvagedRegion, Survey,
};
