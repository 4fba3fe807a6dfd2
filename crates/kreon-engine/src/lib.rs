//! The engine of Kreon: level trees, spill, checkpoint, recovery, and the paths of reads and writes over a volume and
//! its log. Floor 5.
//!
//! From the ground: `events` -> `options` -> `tree` -> `level` -> `state` -> `spill`, `checkpoint` -> `image`, `throttle`, `tree_locks`, `visibility`
//! -> `recovery`, `regions`, `space` -> `versions` -> `read` -> `maintenance` -> `backup`, `inspect`, `write` -> `transaction` -> `engine` ->
//! `salvage`. All modules: `FLOORS.toml`.
#![forbid(unsafe_code)]

mod backup;
mod by_region;
mod changes;
mod checkpoint;
mod compression;
mod engine;
mod events;
mod image;
mod inspect;
mod keys;
mod level;
mod maintenance;
mod operation;
mod options;
mod placement;
mod progress;
mod ranges;
mod read;
mod recovery;
mod regions;
mod salvage;
mod space;
mod spill;
mod state;
mod throttle;
mod transaction;
mod tree;
mod tree_locks;
mod tuning;
mod versions;
mod visibility;
mod write;

pub use backup::{
    Access, BackupInfo, BackupOptions, BackupReport, Restored, Shelf, check as check_backup,
    list as list_backups, restore as restore_backup,
};
pub use changes::{Change, ChangeUnit, Changed, Changes, Position};
pub use compression::check as check_codec;
pub use engine::{Engine, STATUS_HEAD};
pub use events::{Event, Events, Stall};
pub use inspect::{
    GetStats, LevelStats, MemoryStats, PageClassStats, PageStats, Stats, VerifyReport,
};
pub use keys::Direction;
pub use kreon_base::{Codec, RegionOptions};
pub use kreon_device::{DeviceStats, TransferStats};
pub use kreon_format::Superblock;
pub use kreon_log::{Fill, LogMirror, LogRun, LogTap, Own, Show, TakeValue};
#[cfg(feature = "comparison")]
pub use kreon_mapping::{Backend, Eviction, KeepRecords, MapAdvice, Writeback};
pub use kreon_mapping::{MappingModes, MappingStats};
pub use kreon_volume::{Occupied, OccupiedLog};
pub use maintenance::{CollectionStats, IdleStats, ImageStats, Pairs, ReorganisationStats};
pub use operation::{Expiry, Operation, Terms};
pub use options::{
    Background, Clock, Designs, Durability, MEMORY_BYTES_MIN, Mirroring, Options, Work,
};
pub use progress::Progress;
pub use read::{GetTask, KeyBounds, Scan, Seen, ShowPair, TakePair, ValueReader, prefix_bounds};
pub use recovery::Examined;
pub use regions::RegionState;
pub use salvage::{
    DamagedPage, LogHole, LostRange, PageRole, SalvageOptions, SalvageProgress, SalvageReport,
    SalvagedRegion, Survey,
};
pub use transaction::{
    Current, Isolation, Savepoint, TRANSACTION_BYTES_MAX, Transaction, TransactionScan, Update,
};
pub use visibility::OpenSnapshot;
pub use write::{DeletedRange, Durable};
