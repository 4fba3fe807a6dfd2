//! The space of a partition: which slots are free, which hold copies that recovery must not see as the newest.
//!
//! - `flush_clock`: which flush covers which writes
//! - `superblocks`: the superblocks of an open store
//! - `extents`: extents of 1 MiB, handed to partitions
//! - `slots`: the slots of a partition's extents, one bit each
//! - `stale`: slots with outdated items, and tombstones that wait for them

mod extents;
mod flush_clock;
mod slots;
mod stale;
mod superblocks;

pub use extents::{ExtentSource, Extents, FoundExtents};
pub use flush_clock::{FlushClock, FlushNo};
pub use slots::{Place, Slots, Taken};
pub use stale::{Stale, StaleSlot};
pub use superblocks::{SuperblockPage, Superblocks};
