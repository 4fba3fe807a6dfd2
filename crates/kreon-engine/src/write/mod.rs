//! The write path.
//!
//! - [`path`](mod@path): from a batch to the log and L0'; waits for room; the flush of a `Sync` write
//! - [`durable`]: writes that do not wait for their flush
//! - [`deleted_range`]: bounds of ranges to delete

mod deleted_range;
mod durable;
mod path;

pub use deleted_range::DeletedRange;
pub use durable::Durable;
pub use path::Writer;
