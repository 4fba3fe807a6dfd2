//! # Kreon
//!
//! A persistent, ordered key-value store for flash.
//!
//! On fast storage the processor and the bytes moved are the cost, not the randomness of the I/O. So
//! values are written once, to a log; the level below memory is a full B-tree that a *spill* changes
//! only in part (`Kreon 3.2.1`); memory is one pool that the store manages by priority, with hits that
//! cost no lookup in a hash table and no system call (`Kreon 3.3`); and the device is driven at queue
//! depth.
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
//! A store is one file or raw block device, open in one process at a time. All handles are cheap to
//! clone and can be used from many threads at once.
//!
//! | limit | value |
//! |---|---|
//! | key | 0 to 64 KiB, any bytes, ordered bytewise |
//! | value | 0 to 1 GiB |
//! | region name | 1 to 255 bytes |
//! | memory | 8 MiB and up |
#![forbid(unsafe_code)]

mod batch;
mod get_async;
mod options;
mod range;
mod region;
mod repair;
mod scan;
mod snapshot;
mod store;
mod value;
mod value_reader;
mod whole_levels;

pub use batch::WriteBatch;
pub use get_async::GetAsync;
pub use kreon_base::{
    Error, ErrorKind, KEY_BYTES_MAX, REGION_NAME_BYTES_MAX, Result, VALUE_BYTES_MAX,
};
#[doc(hidden)]
pub use kreon_engine::{Backend, Eviction, KeepRecords, MapAdvice, MappingModes, Writeback};
pub use kreon_engine::{
    CollectionStats, DamagedPage, DeviceStats, Durability, Durable, GetStats, ImageStats,
    LevelStats, LogHole, LostRange, MappingStats, MemoryStats, PageClassStats, PageRole, PageStats,
    Progress, ReorganisationStats, SalvageProgress as RepairProgress,
    SalvageReport as RepairReport, SalvagedRegion, Stats, TransferStats, VerifyReport,
    prefix_bounds,
};
pub use options::Options;
pub use range::KeyRange;
pub use region::Region;
pub use repair::Repair;
pub use scan::{Keys, Scan};
pub use snapshot::Snapshot;
pub use store::Store;
pub use value::Value;
pub use value_reader::ValueReader;
