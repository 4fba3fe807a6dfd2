//! Records of the log as fragments.

use kreon_base::{Error, Result, SEGMENT_BYTES};
use kreon_format::{Fragment, LOG_PAYLOAD_BYTES, RecordKind, fragment_bytes};

use crate::format::Location;
use crate::log::Record;

/// The record that a fragment is.
pub(super) fn record_of<'a>(fragment: Fragment<'a>) -> Option<Record<'a>> {
    let Fragment::Record { header, payload } = fragment else {
        return None;
    };
    let (key, value) = payload.split_at_checked(header.key_bytes as usize)?;
    let value = match header.kind {
        RecordKind::Put => Some(value),
        RecordKind::Delete => None,
        _ => return None,
    };
    let is_whole = header.starts_record && header.ends_record;
    is_whole.then_some(Record {
        region: header.region,
        key,
        value,
    })
}

/// Bytes that hold a record, within its segment.
pub(super) fn extent_of(location: Location) -> usize {
    let rest = SEGMENT_BYTES as usize - location.offset.within_segment() as usize;
    location.extent_bytes().min(rest)
}

pub(super) fn missing(location: Location) -> Error {
    Error::corruption(format!("no record of the log at {}", location.offset))
}

/// What a record takes of the log.
///
/// # Errors
/// `InvalidArgument` if it does not fit into a segment.
pub(super) fn bytes_of(record: &Record<'_>) -> Result<u32> {
    let payload_bytes = record.key.len() + record.value.map_or(0, <[u8]>::len);
    let extent = fragment_bytes(payload_bytes);
    if extent > LOG_PAYLOAD_BYTES as usize {
        return Err(Error::invalid(format!(
            "key and value have {payload_bytes} bytes with the number of the region, the most is {}",
            LOG_PAYLOAD_BYTES as usize - fragment_bytes(0)
        )));
    }
    Ok(extent as u32)
}
