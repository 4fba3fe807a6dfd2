//! One operation of a write.

use kreon_base::{Attributes, Codec, Error, KEY_BYTES_MAX, Result, Timestamp, VALUE_BYTES_MAX};
use kreon_format::{RecordKind, range_end};
use kreon_log::NewRecord;

use crate::regions::RegionState;

/// When a new value ends. One that has ended by now deletes the key for readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// As its region says: at the end of the region's TTL, or not by itself.
    #[default]
    OfRegion,
    /// Not by itself.
    Never,
    /// At this moment.
    At(Timestamp),
}

impl Expiry {
    /// At `expires`, or not by itself, whatever the region says.
    pub fn of(expires: Option<Timestamp>) -> Self {
        expires.map_or(Self::Never, Self::At)
    }

    /// The moment; `None`: none is known yet, or there is none.
    #[inline]
    pub fn moment(self) -> Option<Timestamp> {
        match self {
            Self::At(expires) => Some(expires),
            Self::OfRegion | Self::Never => None,
        }
    }
}

/// What a write says of its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// When it ends.
    pub expiry: Expiry,
    /// How its bytes are packed already; if they are not, the region may have them packed.
    pub codec: Codec,
}

impl Terms {
    /// Of a value as it is that ends at `expires`, or not by itself, whatever the region says.
    pub fn until(expires: Option<Timestamp>) -> Self {
        Self {
            expiry: Expiry::of(expires),
            codec: Codec::None,
        }
    }
}

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
    /// What it says of the new value.
    pub terms: Terms,
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
        if self.terms.expiry.moment().is_some() && (self.is_range || self.value.is_none()) {
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

    /// What is kept beside the value, but for what its region adds.
    #[inline]
    pub fn attributes(&self) -> Attributes {
        Attributes::expiring(self.terms.expiry.moment()).with_codec(self.terms.codec)
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
