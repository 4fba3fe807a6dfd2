//! The write path.
//!
//! - [`path`](mod@path): from a batch to the log and L0'; waits for room; the flush of a `Sync` write
//! - [`prepare`]: operations as they are stored, with the TTL and the compression of their regions
//! - [`commit`]: a write on a condition, which is judged with the gate closed
//! - [`durable`]: writes that do not wait for their flush
//! - [`deleted_range`]: bounds of ranges to delete

mod commit;
mod deleted_range;
mod durable;
mod path;
mod prepare;

pub use commit::{Condition, Judgement};
pub use deleted_range::DeletedRange;
pub use durable::Durable;
pub use path::Writer;
