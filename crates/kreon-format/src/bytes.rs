//! Little-endian integers at byte offsets.

/// The `N` bytes at `at`; `None` beyond the end.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

macro_rules! read {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        pub(crate) fn $name(bytes: &[u8], at: usize) -> $int {
            array_at(bytes, at).map_or(0, <$int>::from_le_bytes)
        }
    };
}

read!(
    /// The integer at `at`; 0 beyond the end, which fixed fields of fixed-size blocks never are.
    u16_at, u16
);
read!(
    /// Like [`u16_at`].
    u32_at, u32
);
read!(
    /// Like [`u16_at`].
    u64_at, u64
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
