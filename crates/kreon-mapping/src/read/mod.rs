//! Reading pages and bytes, in the thread that wants them.
//!
//! - `reader`: reading one page, from its frame or from the device
//! - `load`: one page on its way into a frame; `prefetch`: many; `prefetch_reads`: their transfers
//! - `bytes`: ranges of bytes; `byte_range`: which pages they touch
//! - `records`: ranges that may be kept as single records; `resident`: those in frames, and whether they were verified
//! - `fetch`, `fetched`, `read_runs`: many records at once, into the memory of their reader
//! - `read_buffer`: memory for direct I/O, kept by the thread
//! - `mapped`: reading through `mmap`, for comparison; `unmapped`: its place where the feature `comparison` is off

mod byte_range;
mod bytes;
mod fetch;
mod fetched;
mod load;
#[cfg(feature = "comparison")]
mod mapped;
mod prefetch;
mod prefetch_reads;
mod read_buffer;
mod read_runs;
mod reader;
mod records;
mod resident;
#[cfg(not(feature = "comparison"))]
mod unmapped;

pub use byte_range::FinalBytes;
pub use fetched::Fetched;
pub use resident::LentRecord;

pub(crate) use byte_range::{ByteCopy, ByteRange, touched};
pub(crate) use bytes::read_bytes;
pub(crate) use fetch::{fetch, with_final_bytes};
pub(crate) use load::{Begin, Load, begin_load};
#[cfg(feature = "comparison")]
pub(crate) use mapped::Mapped;
pub(crate) use prefetch::prefetch;
pub(crate) use reader::{PageReader, ReadCounters};
pub(crate) use records::{has_bytes, is_kept_alone, widened, with_bytes};
pub(crate) use resident::ResidentRecord;
#[cfg(not(feature = "comparison"))]
pub(crate) use unmapped::Mapped;
