//! Which page is in which frame, and which frames are free.
//!
//! - `page_table`: the table: looking pages up, locking a shard, the free frames, retired frames
//! - `locked`: a locked shard: every transition of a page
//! - `shard`: what a shard keeps of its pages; `descriptors`: page and priority of a frame, and the eviction queues
//! - `stripes`: how much memory the page array may take; `counts`: pages by priority and dirty pages
//! - `pool`: free frames; `waiters`: tasks that wait for the load of a page

mod counts;
mod descriptors;
mod locked;
mod page_table;
mod pool;
mod shard;
mod stripes;
mod waiters;

pub(crate) use counts::PRIORITIES;
pub(crate) use descriptors::DESCRIPTOR_BYTES;
pub(crate) use locked::{LoadStart, Locked, Removal};
pub(crate) use page_table::{PageTable, TableShape};
pub(crate) use pool::POOL_BYTES_PER_FRAME;
pub(crate) use shard::SHARD_BYTES;
pub(crate) use stripes::{STRIPE_BYTES, stripe_of};
