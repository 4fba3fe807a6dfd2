//! One operation of a write.

use kreon_base::{Attributes, Error, KEY_BYTES_MAX, Result, Timestamp, VALUE_BYTES_MAX};
use kreon_format::{RecordKind, range_end};
use kreon_log::NewRecord;

use crate::regions::RegionState;

/// One change of one key, or the deletion of a range of keys.
#[derive(Clone, Copy)]
pub struct Operation<'a> {
    /// Its region.
    pub region: &'a RegionState,
    /// The key, or the first key of a range.
    pub key: &'a [u8],
    /// The new value; `None` deletes the key.
    pub value: Option<&'a [u8]>,
    /// Deletes all keys from `key` on, up to where `value` says, which [`range_value`](kreon_format::range_value)
    /// has made.
    pub is_range: bool,
    /// When the new value ends; `None`: not by itself. A value that has ended by now deletes the key for readers.
    pub expires: Option<Timestamp>,
}

impl Operation<'_> {
    /// # Errors
    /// `InvalidArgument`: a key or value that is too long, a range that is none, a deletion that expires.
    pub fn check(&self) -> Result<()> {
        if self.key.len() > KEY_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a key has at most {KEY_BYTES_MAX} bytes, this one {}",
                self.key.len()
            )));
        }
        if self.expires.is_some() && (self.is_range || self.value.is_none()) {
            return Err(Error::invalid("a deletion that expires"));
        }
        if self.is_range {
            return self.range().map(drop);
        }
        match self.value {
            Some(value) if value.len() > VALUE_BYTES_MAX => Err(Error::invalid(format!(
                "a value has at most {VALUE_BYTES_MAX} bytes, this one {}",
                value.len()
            ))),
            _ => Ok(()),
        }
    }

    /// The keys of the range that it deletes: from the first on, before the second.
    pub fn range(&self) -> Result<(&[u8], Option<&[u8]>)> {
        let end = range_end(self.value.unwrap_or_default());
        let end = end.map_err(|_| Error::invalid("the end of a range that is none"))?;
        Ok((self.key, end))
    }

    /// What is kept beside the value.
    #[inline]
    pub fn attributes(&self) -> Attributes {
        Attributes::expiring(self.expires)
    }

    /// Bytes behind the key in its record.
    #[inline]
    pub fn value_bytes(&self) -> usize {
        self.value.map_or(0, <[u8]>::len) + self.attributes().stored_bytes()
    }

    /// Its record in the log.
    pub fn record(&self) -> NewRecord<'_> {
        NewRecord {
            region: self.region.id,
            kind: match self.value {
                Some(_) if self.is_range => RecordKind::DeleteRange,
                Some(_) => RecordKind::Put,
                None => RecordKind::Delete,
            },
            key: self.key,
            value: self.value.unwrap_or_default(),
            attributes: self.attributes(),
        }
    }
}
