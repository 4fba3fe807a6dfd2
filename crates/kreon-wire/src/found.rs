//! What reads found: values, and pages of scans.

use kreon_base::KEY_BYTES_MAX;

use crate::fields::Fields;
use crate::ids::SnapshotId;
use crate::limits::{PAGE_ENTRIES_MAX, VALUE_BYTES_MAX};
use crate::many::{Many, ManyBody};
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
pub struct Values<'a>(Many<'a>);

impl<'a> Values<'a> {
    /// What follows the first byte of the body.
    pub(crate) fn read(mut fields: Fields<'a>) -> Result<Self, Violation> {
        fields.zeroes::<3>()?;
        let count = fields.u32()?;
        Many::read(count, fields, value).map(Self)
    }

    /// How many keys were asked for.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Never: somebody asked for a key.
    pub const fn is_empty(&self) -> bool {
        self.0.count == 0
    }

    /// The values; `None` for a key without one.
    pub fn iter(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        self.0.iter(value)
    }

    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&values_front(self.0.count));
        to.extend_from_slice(self.0.bytes);
    }
}

fn values_front(count: u32) -> [u8; VALUES_FRONT_BYTES] {
    let mut front = [0; VALUES_FRONT_BYTES];
    front[0] = VALUES_CODE;
    front[4..].copy_from_slice(&count.to_le_bytes());
    front
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
pub struct ValuesBody(ManyBody);

impl Default for ValuesBody {
    fn default() -> Self {
        Self::new()
    }
}

impl ValuesBody {
    /// Without values.
    pub fn new() -> Self {
        Self(ManyBody::new(VALUES_FRONT_BYTES))
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
        self.0.push(&[&len_bytes.to_le_bytes(), value])
    }

    /// The body.
    pub fn finish(self) -> Vec<u8> {
        let front = values_front(self.0.count);
        self.0.finish(&front)
    }
}

/// A page of a scan, checked; its entries are read where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Page<'a> {
    entries: Many<'a>,
    /// The snapshot for the next page; 0 after the last page.
    pub snapshot: SnapshotId,
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
        let entries = Many::read(count, fields, entry)?;
        Ok(Self { entries, snapshot })
    }

    /// How many entries.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.entries.count == 0
    }

    /// Whether nothing follows.
    pub const fn is_last(&self) -> bool {
        self.snapshot.0 == 0
    }

    /// Keys and values in the order of the scan, which is not checked; values are empty where none were asked for.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.entries.iter(entry)
    }

    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&page_front(self.entries.count, self.snapshot));
        to.extend_from_slice(self.entries.bytes);
    }
}

fn page_front(count: u32, snapshot: SnapshotId) -> [u8; PAGE_FRONT_BYTES] {
    let mut front = [0; PAGE_FRONT_BYTES];
    front[0] = PAGE_CODE;
    front[4..8].copy_from_slice(&count.to_le_bytes());
    front[8..].copy_from_slice(&snapshot.0.to_le_bytes());
    front
}

fn entry<'a>(fields: &mut Fields<'a>) -> Result<(&'a [u8], &'a [u8]), Violation> {
    let key_bytes = fields.len_upto(KEY_BYTES_MAX)?;
    let value_bytes = fields.len_upto(VALUE_BYTES_MAX)?;
    Ok((fields.bytes(key_bytes)?, fields.bytes(value_bytes)?))
}

/// The body of a reply with a page, while its entries are collected. Each is copied once, to where it stays.
#[derive(Clone, Debug)]
pub struct PageBody(ManyBody);

impl Default for PageBody {
    fn default() -> Self {
        Self::new()
    }
}

impl PageBody {
    /// Without entries.
    pub fn new() -> Self {
        Self(ManyBody::new(PAGE_FRONT_BYTES))
    }

    /// Adds an entry behind the others.
    ///
    /// # Errors
    /// `Count` for a key or value that is too long and for one more than [`PAGE_ENTRIES_MAX`], `TooLong` if a reply has no
    /// room for it; nothing was added.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Violation> {
        if key.len() > KEY_BYTES_MAX
            || value.len() > VALUE_BYTES_MAX
            || self.0.count >= PAGE_ENTRIES_MAX
        {
            return Err(Violation::Count);
        }
        let lengths = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes);
        self.0.push(&[&lengths[0], &lengths[1], key, value])
    }

    /// How many entries there are.
    pub const fn len(&self) -> usize {
        self.0.count as usize
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.count == 0
    }

    /// Bytes of keys and values so far, for the client's limit.
    pub const fn data_bytes(&self) -> usize {
        self.0.len_bytes() - PAGE_FRONT_BYTES - 8 * self.0.count as usize
    }

    /// The body: `snapshot` for the next page, 0 if this is the last one, as it must be without entries.
    pub fn finish(self, snapshot: SnapshotId) -> Vec<u8> {
        let front = page_front(self.0.count, snapshot);
        self.0.finish(&front)
    }
}
