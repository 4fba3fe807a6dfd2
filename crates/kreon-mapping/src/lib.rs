//! The managed mapping from page numbers to frames: `kmmap` (`Kreon 3.3`) in user space.
//!
//! It knows pages, frames and priorities, nothing of keys, logs or levels. A flat array leads from a page number to a
//! frame, so a read of a resident page takes no lock and makes no system call. Absent pages are read at queue depth;
//! dirty pages are written sorted and merged.
//!
//! From the ground:
//!
//! - `well`: the unsafe code: frames' memory, the page array, pins; `limits`, `modes`, `options`, `transfer`
//! - `shared`: locks and counts that all threads write to; `counters`: statistics
//! - `table`: which page is in which frame, and which frames are free; `record_cache`: single records that are read often
//! - `writeback`: from frames to the device
//! - `evict`: the supply of frames
//! - `read`: from the device into frames, one page, many, or a range; `plan`: how the memory is divided
//! - `fresh`: pages that get new content, or none; `admit`: pages that were written past the mapping; `async_read`: reads that tasks do not wait for in a call
//! - `stats`, `mapping`: the face of it all

mod admit;
mod async_read;
mod counters;
mod evict;
mod fresh;
mod limits;
mod mapping;
mod modes;
mod options;
mod plan;
mod read;
mod record_cache;
mod shared;
mod stats;
mod table;
mod transfer;
mod well;
mod writeback;

pub use async_read::{Begun, PageCheck, PagesWanted, Ticket};
pub use evict::LentFrames;
#[cfg(feature = "comparison")]
pub use kreon_device::MapAdvice;
pub use limits::check_memory;
pub use mapping::{Mapping, OpenFrame};
pub use modes::MappingModes;
#[cfg(feature = "comparison")]
pub use modes::{Backend, Eviction, KeepRecords, Writeback};
pub use options::{MappingOptions, PageRequest};
pub use read::{Fetched, FinalBytes, LentRecord};
#[cfg(feature = "lock-times")]
pub use shared::{CountWrites, LockTimes, clock_ticks, hold_cost_ticks};
pub use stats::{MappingStats, PriorityStats};
