//! Writing dirty pages to the device: sorted by page number, neighbours merged into transfers of up to 1 MiB.
//!
//! - `writer`: how many pages may be dirty, which are written when, and the calls to the device
//! - `batch`: pages that are being written

mod batch;
mod writer;

pub(crate) use writer::{WriteCounters, Writer};
