//! Identifiers, units, limits, checksums and errors that all other crates share.
//!
//! Floor 0: no I/O, no unsafe code, no state.
#![forbid(unsafe_code)]

mod attributes;
mod checksum;
mod codec;
mod error;
mod hash;
mod ids;
pub mod json;
mod key_range;
pub mod metrics;
mod payload;
mod planted;
mod region_options;
pub mod sync;
mod units;
mod wake;

pub use attributes::{Attributes, Timestamp};
pub use checksum::Checksum;
pub use codec::Codec;
pub use error::{Error, ErrorKind, Result};
pub use hash::KeyHash;
pub use ids::{Epoch, Incarnation, LogId, LogOffset, Lsn, PageNo, Priority, RegionId, SegmentId};
pub use key_range::{KeyBounds, KeyRange, prefix_bounds};
pub use payload::Payload;
pub use planted::Bug;
pub use region_options::RegionOptions;
pub use units::{
    KEY_BYTES_MAX, PAGE_BYTES, PageBytes, REGION_NAME_BYTES_MAX, SEGMENT_BYTES, SEGMENT_PAGES,
    VALUE_BYTES_MAX,
};
pub use wake::wake;
