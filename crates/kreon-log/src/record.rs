//! Records that a writer hands to the log, and the places that it gets back.

use kreon_base::{
    Attributes, Error, KEY_BYTES_MAX, LogOffset, Lsn, RegionId, Result, VALUE_BYTES_MAX,
};
use kreon_format::{RecordKind, fragment_bytes, range_end, read_made_value};

use kreon_volume::Purpose;

/// A record to append.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// The region that it belongs to.
    pub region: RegionId,
    /// What it says about the key.
    pub kind: RecordKind,
    /// The key, at most [`KEY_BYTES_MAX`] bytes.
    pub key: &'a [u8],
    /// The value, at most [`VALUE_BYTES_MAX`] bytes; empty for a deletion.
    pub value: &'a [u8],
    /// What is kept beside the value; nothing but for a value of a key.
    pub attributes: Attributes,
}

impl NewRecord<'_> {
    /// Bytes of key, attributes and value.
    #[inline]
    pub(super) fn payload_bytes(&self) -> usize {
        self.key.len() + self.attributes.stored_bytes() + self.value.len()
    }

    fn deletes(&self) -> bool {
        matches!(self.kind, RecordKind::Delete | RecordKind::DeleteRange)
    }

    fn check(&self) -> Result<()> {
        let (key_bytes, value_bytes) = (self.key.len(), self.value.len());
        if key_bytes > KEY_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a key has {key_bytes} bytes, the most is {KEY_BYTES_MAX}"
            )));
        }
        if value_bytes > VALUE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a value has {value_bytes} bytes, the most is {VALUE_BYTES_MAX}"
            )));
        }
        if !self.attributes.is_none() && !self.kind.may_have_attributes() {
            return Err(Error::invalid(
                "a record without a value carries attributes",
            ));
        }
        if self.kind == RecordKind::DeleteRange {
            return range_end(self.value).map(drop);
        }
        if self.kind == RecordKind::MakeRegion {
            return read_made_value(self.value).map(drop);
        }
        if self.kind == RecordKind::Delete && value_bytes > 0 {
            return Err(Error::invalid("a deletion carries a value"));
        }
        Ok(())
    }
}

/// Where a record went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its order among all writes of the log.
    pub lsn: Lsn,
    /// Where its first fragment starts on the volume.
    pub offset: LogOffset,
}

/// Bytes that `unit` takes in the log if no record of it is cut.
///
/// # Errors
/// `InvalidArgument` for a record out of its documented range.
pub(super) fn unit_bytes(unit: &[NewRecord<'_>]) -> Result<usize> {
    let mut sum = 0;
    for record in unit {
        record.check()?;
        sum += fragment_bytes(record.payload_bytes());
    }
    Ok(sum)
}

/// How much of the reserve the segments for `unit` may use: deletions and moved records will free space. The mark of a
/// load and notices for the change feed carry no data.
pub(super) fn purpose_of(unit: &[NewRecord<'_>]) -> Purpose {
    let is_data = |record: &NewRecord<'_>| match record.kind {
        RecordKind::Put | RecordKind::MakeRegion => true,
        RecordKind::Ingested => record.payload_bytes() > 0,
        RecordKind::Delete
        | RecordKind::DeleteRange
        | RecordKind::Relocation
        | RecordKind::DropRegion
        | RecordKind::Loaded
        | RecordKind::Followed => false,
    };
    if unit.iter().any(is_data) {
        Purpose::Put
    } else if unit.iter().any(NewRecord::deletes) {
        Purpose::Delete
    } else {
        Purpose::Maintenance
    }
}
