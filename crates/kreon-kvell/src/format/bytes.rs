//! Little-endian integers at byte offsets.

/// The `N` bytes at `at`; zeroes beyond the end, which fixed fields of blocks of fixed size never are.
pub(super) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let array = bytes.get(at..).and_then(<[u8]>::first_chunk);
    array.copied().unwrap_or([0; N])
}

macro_rules! integer {
    ($name:ident, $int:ty) => {
        /// The integer at `at`; 0 beyond the end.
        #[inline]
        pub(super) fn $name(bytes: &[u8], at: usize) -> $int {
            <$int>::from_le_bytes(array_at(bytes, at))
        }
    };
}

integer!(u16_at, u16);
integer!(u32_at, u32);
integer!(u64_at, u64);
integer!(u128_at, u128);

/// Writes `value` at `at`. For encoders, whose offsets are in range by construction.
#[inline]
pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}
