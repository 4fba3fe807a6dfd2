//! Single records that are read often, kept without the pages around them.
//!
//! - `cache`: the cache: shards, generations of segments, frames
//! - `queues`: the two queues of a shard; `ring`: one queue, bytes in frames
//! - `slots`: from offsets to places in the queues, and the ghosts

mod cache;
mod queues;
mod ring;
mod slots;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use cache::{Generation, RecordCache, can_be_kept, table_bytes};
