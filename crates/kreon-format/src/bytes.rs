//! Little-endian integers at byte offsets.

/// The `N` bytes at `at`; `None` beyond the end.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

macro_rules! integer {
    ($(#[$doc:meta])* $name:ident, $put:ident, $int:ty) => {
        $(#[$doc])*
        pub(crate) fn $name(bytes: &[u8], at: usize) -> $int {
            array_at(bytes, at).map_or(0, <$int>::from_le_bytes)
        }

        /// [`put`] of an integer.
        pub(crate) fn $put(bytes: &mut [u8], at: usize, value: $int) {
            put(bytes, at, &value.to_le_bytes());
        }
    };
}

integer!(
    /// The integer at `at`; 0 beyond the end, which fixed fields of fixed-size blocks never are.
    u16_at, put_u16, u16
);
integer!(
    /// Like [`u16_at`].
    u32_at, put_u32, u32
);
integer!(
    /// Like [`u16_at`].
    u64_at, put_u64, u64
);

/// Like [`u16_at`], for 6 bytes.
pub(crate) fn u48_at(bytes: &[u8], at: usize) -> u64 {
    array_at(bytes, at).map_or(0, u48)
}

/// The integer in 6 bytes.
pub(crate) fn u48(bytes: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = bytes;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

/// The lower 48 bits of `value`.
pub(crate) fn u48_bytes(value: u64) -> [u8; 6] {
    let [a, b, c, d, e, f, _, _] = value.to_le_bytes();
    [a, b, c, d, e, f]
}

/// Writes `value` at `at`. For encoders, whose offsets are in range by construction.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Writes the lower 48 bits of `value` at `at`.
pub(crate) fn put_u48(bytes: &mut [u8], at: usize, value: u64) {
    put(bytes, at, &u48_bytes(value));
}

/// Reads bytes from the front.
pub(crate) struct ByteReader<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> ByteReader<'a> {
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let array = array_at(self.bytes, self.at)?;
        self.at += N;
        Some(array)
    }

    #[inline]
    pub(crate) fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let slice = self.bytes.get(self.at..)?.get(..length)?;
        self.at += length;
        Some(slice)
    }
}
