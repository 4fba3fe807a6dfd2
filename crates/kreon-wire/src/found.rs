//! What reads found: values, and pages of scans.

use kreon_base::KEY_BYTES_MAX;

use crate::fields::Fields;
use crate::ids::SnapshotId;
use crate::limits::{PAGE_ENTRIES_MAX, REQUEST_BYTES_MAX, VALUE_BYTES_MAX};
use crate::violation::Violation;

/// Codes of these replies.
pub(crate) const VALUES_CODE: u8 = 4;
pub(crate) const PAGE_CODE: u8 = 5;

/// Length of a value that there is not.
const MISSING: u32 = u32::MAX;

/// Bytes of the fixed fields in front of values, and of entries.
const VALUES_FRONT_BYTES: usize = 8;
const PAGE_FRONT_BYTES: usize = 16;

/// The values of keys, in the order of the keys, checked; they are read where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Values<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl<'a> Values<'a> {
    /// What follows the first byte of the body.
    pub(crate) fn read(mut fields: Fields<'a>) -> Result<Self, Violation> {
        fields.zeroes::<3>()?;
        let count = fields.u32()?;
        let bytes = fields.peek();
        for _ in 0..count {
            value(&mut fields)?;
        }
        fields.end().map(|()| Self { count, bytes })
    }

    /// How many keys were asked for.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Never: somebody asked for a key.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values; `None` for a key without one.
    pub fn iter(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let mut fields = Fields::of(self.bytes);
        std::iter::from_fn(move || value(&mut fields).ok())
    }

    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put_values_front(to, self.count);
        to.extend_from_slice(self.bytes);
    }
}

fn put_values_front(to: &mut Vec<u8>, count: u32) {
    to.extend_from_slice(&[VALUES_CODE, 0, 0, 0]);
    to.extend_from_slice(&count.to_le_bytes());
}

fn value<'a>(fields: &mut Fields<'a>) -> Result<Option<&'a [u8]>, Violation> {
    match fields.u32()? {
        MISSING => Ok(None),
        len_bytes if len_bytes as usize <= VALUE_BYTES_MAX => {
            fields.bytes(len_bytes as usize).map(Some)
        }
        _ => Err(Violation::Count),
    }
}

/// The body of a reply with values, while they are collected. Each is copied once, to where it stays.
#[derive(Clone, Debug)]
pub struct ValuesBody {
    bytes: Vec<u8>,
    count: u32,
}

impl Default for ValuesBody {
    fn default() -> Self {
        Self::new()
    }
}

impl ValuesBody {
    /// Without values.
    pub fn new() -> Self {
        Self {
            bytes: vec![0; VALUES_FRONT_BYTES],
            count: 0,
        }
    }

    /// Adds the value of the next key.
    ///
    /// # Errors
    /// `Count` for a value of more than [`VALUE_BYTES_MAX`] bytes, `TooLong` if a reply has no room for it; nothing was
    /// added.
    pub fn push(&mut self, value: Option<&[u8]>) -> Result<(), Violation> {
        let (len_bytes, value) = match value {
            Some(value) if value.len() > VALUE_BYTES_MAX => return Err(Violation::Count),
            Some(value) => (value.len() as u32, value),
            None => (MISSING, &[][..]),
        };
        if self.bytes.len() + 4 + value.len() > REQUEST_BYTES_MAX as usize {
            return Err(Violation::TooLong);
        }
        self.bytes.extend_from_slice(&len_bytes.to_le_bytes());
        self.bytes.extend_from_slice(value);
        self.count += 1;
        Ok(())
    }

    /// The body.
    pub fn finish(mut self) -> Vec<u8> {
        let mut front = Vec::with_capacity(VALUES_FRONT_BYTES);
        put_values_front(&mut front, self.count);
        self.bytes[..VALUES_FRONT_BYTES].copy_from_slice(&front);
        self.bytes
    }
}

/// A page of a scan, checked; its entries are read where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Page<'a> {
    count: u32,
    /// The snapshot for the next page; 0 after the last page.
    pub snapshot: SnapshotId,
    bytes: &'a [u8],
}

impl<'a> Page<'a> {
    /// What follows the first byte of the body.
    pub(crate) fn read(mut fields: Fields<'a>) -> Result<Self, Violation> {
        fields.zeroes::<3>()?;
        let (count, snapshot) = (fields.u32()?, SnapshotId(fields.u64()?));
        // A page that is not the last one leads on.
        if count > PAGE_ENTRIES_MAX || (count == 0 && snapshot.0 != 0) {
            return Err(Violation::Count);
        }
        let bytes = fields.peek();
        for _ in 0..count {
            entry(&mut fields)?;
        }
        fields.end()?;
        Ok(Self {
            count,
            snapshot,
            bytes,
        })
    }

    /// How many entries.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether nothing follows.
    pub const fn is_last(&self) -> bool {
        self.snapshot.0 == 0
    }

    /// Keys and values in the order of the scan, which is not checked; values are empty where none were asked for.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut fields = Fields::of(self.bytes);
        std::iter::from_fn(move || entry(&mut fields).ok())
    }

    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put_page_front(to, self.count, self.snapshot);
        to.extend_from_slice(self.bytes);
    }
}

fn put_page_front(to: &mut Vec<u8>, count: u32, snapshot: SnapshotId) {
    to.extend_from_slice(&[PAGE_CODE, 0, 0, 0]);
    to.extend_from_slice(&count.to_le_bytes());
    to.extend_from_slice(&snapshot.0.to_le_bytes());
}

fn entry<'a>(fields: &mut Fields<'a>) -> Result<(&'a [u8], &'a [u8]), Violation> {
    let key_bytes = fields.len_upto(KEY_BYTES_MAX)?;
    let value_bytes = fields.len_upto(VALUE_BYTES_MAX)?;
    Ok((fields.bytes(key_bytes)?, fields.bytes(value_bytes)?))
}

/// The body of a reply with a page, while its entries are collected. Each is copied once, to where it stays.
#[derive(Clone, Debug)]
pub struct PageBody {
    bytes: Vec<u8>,
    count: u32,
}

impl Default for PageBody {
    fn default() -> Self {
        Self::new()
    }
}

impl PageBody {
    /// Without entries.
    pub fn new() -> Self {
        Self {
            bytes: vec![0; PAGE_FRONT_BYTES],
            count: 0,
        }
    }

    /// Adds an entry behind the others.
    ///
    /// # Errors
    /// `Count` for a key or value that is too long and for one more than [`PAGE_ENTRIES_MAX`], `TooLong` if a reply has no
    /// room for it; nothing was added.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Violation> {
        if key.len() > KEY_BYTES_MAX
            || value.len() > VALUE_BYTES_MAX
            || self.count >= PAGE_ENTRIES_MAX
        {
            return Err(Violation::Count);
        }
        if self.bytes.len() + 8 + key.len() + value.len() > REQUEST_BYTES_MAX as usize {
            return Err(Violation::TooLong);
        }
        for part in [key, value] {
            self.bytes
                .extend_from_slice(&(part.len() as u32).to_le_bytes());
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.count += 1;
        Ok(())
    }

    /// How many entries there are.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of keys and values so far, for the client's limit.
    pub const fn data_bytes(&self) -> usize {
        self.bytes.len() - PAGE_FRONT_BYTES - 8 * self.count as usize
    }

    /// The body: `snapshot` for the next page, 0 if this is the last one, as it must be without entries.
    pub fn finish(mut self, snapshot: SnapshotId) -> Vec<u8> {
        let mut front = Vec::with_capacity(PAGE_FRONT_BYTES);
        put_page_front(&mut front, self.count, snapshot);
        self.bytes[..PAGE_FRONT_BYTES].copy_from_slice(&front);
        self.bytes
    }
}
