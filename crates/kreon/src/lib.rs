//! # Kreon
//!
//! A persistent, ordered key-value store for flash.
//!
//! On flash the cost of a store is CPU time and bytes transferred, not random access. Kreon therefore
//!
//! - writes each value once, to a log that is also the redo log, and keeps it out of the index unless it is short;
//! - indexes the log by B-trees in levels, in which a *spill* of the in-memory level rewrites only the leaves that
//!   receive entries (`Kreon 3.2.1`);
//! - manages its memory as one pool of 4 KiB frames with eviction by priority; a hit needs no hash table and no system
//!   call (`Kreon 3.3`);
//! - submits reads that miss memory together, so that the device works at queue depth.
//!
//! ```
//! # fn main() -> kreon::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("cities.kreon");
//! let store = kreon::Store::open(&path)?;
//! let cities = store.region("cities")?;
//! cities.put("gr/heraklion", "140730")?;
//! cities.put("gr/chania", "53910")?;
//! assert_eq!(cities.get("gr/chania")?.as_deref(), Some(b"53910".as_slice()));
//! for pair in cities.prefix("gr/") {
//!     let (key, value) = pair?;
//!     println!("{} {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
//! }
//! store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! A store is one file or one raw block device, open in one process at a time, or in several that only
//! [read](Options::read_only). Handles are cheap to clone and may be
//! used from many threads at once. [`Options`] has the settings, [`Durability`] says what survives a crash.
//!
//! | limit | value |
//! |---|---|
//! | key | 0 to 64 KiB, any bytes, ordered bytewise |
//! | value | 0 to 1 GiB |
//! | region name | 1 to 255 bytes |
//! | memory | 8 MiB and more |
#![forbid(unsafe_code)]

mod backup;
mod batch;
mod changes;
mod cluster;
mod expiry;
mod get_async;
mod options;
mod region;
mod region_options;
mod repair;
mod scan;
mod snapshot;
mod status;
mod store;
mod transaction;
mod ttl;
mod update;
mod value;
mod value_reader;
mod whole_levels;

pub use backup::Backup;
pub use batch::WriteBatch;
pub use changes::Changes;
pub use expiry::Expiry;
pub use get_async::GetAsync;
#[doc(hidden)]
pub use kreon_base::Timestamp;
pub use kreon_base::{
    Error, ErrorKind, KEY_BYTES_MAX, KeyRange, REGION_NAME_BYTES_MAX, Result, VALUE_BYTES_MAX,
};
/// How the bytes of a value are packed: see [`RegionOptions::compression`].
pub use kreon_engine::Codec as Compression;
#[cfg(feature = "comparison")]
pub use kreon_engine::{Backend, Eviction, KeepRecords, MapAdvice, MappingModes, Writeback};
pub use kreon_engine::{
    BackupInfo, BackupReport, Change, ChangeUnit, Changed, CollectionStats, DamagedPage,
    DeviceStats, Durability, Durable, Event, GetStats, IdleStats, ImageStats, Isolation,
    LevelStats, LogHole, LostRange, MappingStats, MemoryStats, PageClassStats, PageRole, PageStats,
    Position, Progress, ReorganisationStats, Restored as RestoreReport,
    SalvageProgress as RepairProgress, SalvageReport as RepairReport, SalvagedRegion, Savepoint,
    Stall, Stats, TransferStats, Update, VerifyReport, prefix_bounds,
};
#[doc(hidden)]
pub use kreon_engine::{Clock, Engine, Mirroring};
pub use options::Options;
pub use region::Region;
pub use region_options::RegionOptions;
pub use repair::Repair;
pub use scan::{Keys, Scan};
pub use snapshot::Snapshot;
pub use status::StoreStatus;
pub use store::Store;
pub use transaction::{Transaction, TransactionOptions, TransactionScan};
pub use ttl::Ttl;
pub use value::Value;
pub use value_reader::ValueReader;
