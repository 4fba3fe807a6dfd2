//! Little-endian integers at byte offsets. Behind the end of the bytes stand zeroes, so that damaged offsets read as
//! something that a check refuses.

/// The `N` bytes at `at`.
pub(super) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.copied().unwrap_or([0; N])
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// The integer in 6 bytes.
pub(super) fn u48_at(bytes: &[u8], at: usize) -> u64 {
    let [a, b, c, d, e, f] = array_at(bytes, at);
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

/// Writes `value` at `at`. For encoders, whose offsets are in range by construction.
pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

pub(super) fn put_u16(bytes: &mut [u8], at: usize, value: usize) {
    debug_assert!(value <= usize::from(u16::MAX));
    put(bytes, at, &(value as u16).to_le_bytes());
}

pub(super) fn put_u48(bytes: &mut [u8], at: usize, value: u64) {
    debug_assert!(value < 1 << 48);
    put(bytes, at, &value.to_le_bytes()[..6]);
}
