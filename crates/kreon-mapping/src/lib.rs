//! The managed mapping from page numbers to frames: `kmmap` (`Kreon 3.3`) in user space.
//!
//! It knows pages, frames and priorities, nothing of keys, logs or levels. A flat array leads from a
//! page number to a frame, so that a read of a resident page takes no lock and makes no system call.
//! What is not resident is read at queue depth; what is dirty is written sorted and merged.
//!
//! - `mapping`: the mapping, and reading a page
//! - `options`: what it is opened with
//! - `plan`: how its memory is divided
//! - `limits`: what the system lets the process have
//! - `load`, `prefetch`, `bytes`: from the device into frames, one page, many, or a range
//! - `background`, `begin`, `begin_record`, `land`, `reactor`, `drive`, `ticket`, `waiters`: the same for tasks, which do not
//!   wait in a call
//! - `mapped`: the same through `mmap`, for comparison
//! - `fetch`, `fetched`, `spare`: many records from the device into memory of their reader's own
//! - `fresh`: pages that come into being and cease
//! - `hot`, `hot_reads`: single records that are read often
//! - `writeback`: from frames to the device
//! - `evict`, `pool`: finding frames
//! - `stripes`: room in the page table
//! - `shard`, `records`: what is kept about pages and frames
//! - `stats`: what it did
//! - `well`: the unsafe code: frames' memory, the page table, pins

pub use kreon_device::MapAdvice;

mod background;
mod begin;
mod begin_record;
mod bytes;
mod drive;
mod evict;
mod fetch;
mod fetched;
mod fresh;
mod hot;
mod hot_reads;
mod land;
mod lent;
mod limits;
mod load;
mod mapped;
mod mapping;
mod options;
mod plan;
mod pool;
mod prefetch;
mod reactor;
mod records;
mod shard;
mod spare;
mod stats;
mod stripes;
mod ticket;
mod waiters;
mod well;
mod writeback;

pub use begin::{Begun, PageCheck, PagesWanted};
pub use fetch::FinalBytes;
pub use fetched::Fetched;
pub use lent::LentFrames;
pub use limits::check_memory;
pub use mapping::Mapping;
pub use options::{
    Backend, Eviction, KeepRecords, MappingModes, MappingOptions, PageRequest, Writeback,
};
pub use stats::{MappingStats, PriorityStats};
pub use ticket::Ticket;
