//! Little-endian fields of a body, read and written from the front.

use crate::violation::Violation;

/// Reads fields one behind the other. Nothing is read beyond the end.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes; `Count` if fewer are left.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Violation> {
        let (front, rest) = self.rest.split_at_checked(count).ok_or(Violation::Count)?;
        self.rest = rest;
        Ok(front)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Violation> {
        let (front, rest) = self.rest.split_first_chunk().ok_or(Violation::Count)?;
        self.rest = rest;
        Ok(*front)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Violation> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Violation> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Violation> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Violation> {
        self.array().map(u64::from_le_bytes)
    }

    /// An integer up to `most`.
    pub(crate) fn u64_upto(&mut self, most: u64) -> Result<u64, Violation> {
        match self.u64()? {
            value if value <= most => Ok(value),
            _ => Err(Violation::FieldValue),
        }
    }

    /// 0 or 1.
    pub(crate) fn flag(&mut self) -> Result<bool, Violation> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Violation::FieldValue),
        }
    }

    /// `N` reserved bytes.
    pub(crate) fn zeroes<const N: usize>(&mut self) -> Result<(), Violation> {
        match self.array::<N>()? == [0; N] {
            true => Ok(()),
            false => Err(Violation::FieldBits),
        }
    }

    /// `count` bytes of UTF-8 without control characters.
    pub(crate) fn text(&mut self, count: usize) -> Result<&'a str, Violation> {
        let text = std::str::from_utf8(self.bytes(count)?).map_err(|_| Violation::FieldValue)?;
        match text.chars().any(char::is_control) {
            true => Err(Violation::FieldValue),
            false => Ok(text),
        }
    }

    /// A length of four bytes.
    pub(crate) fn len_upto(&mut self, most: usize) -> Result<usize, Violation> {
        match self.u32()? as usize {
            len_bytes if len_bytes <= most => Ok(len_bytes),
            _ => Err(Violation::Count),
        }
    }

    /// All that is left, which stays to be read.
    pub(crate) const fn peek(&self) -> &'a [u8] {
        self.rest
    }

    /// All that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Ends the reading: nothing may be left.
    pub(crate) fn end(self) -> Result<(), Violation> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(Violation::Count),
        }
    }
}

/// Fixed fields in front of the data of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front<const N: usize> {
    bytes: [u8; N],
    used: usize,
}

impl<const N: usize> Front<N> {
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; N],
            used: 0,
        }
    }

    /// Adds `bytes`. `N` is the length of the longest kind, so encoders never exceed it.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
        self
    }

    pub(crate) fn put_u8(&mut self, value: u8) -> &mut Self {
        self.put(&[value])
    }

    pub(crate) fn put_u32(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub(crate) fn put_u64(&mut self, value: u64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub(crate) fn put_zeroes(&mut self, count: usize) -> &mut Self {
        self.used += count;
        self
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}
