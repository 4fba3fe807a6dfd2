//! Values that say which write they come from, and whether they are whole.

use crate::call::Version;

/// Version and length: the shortest value.
pub const HEAD_BYTES: usize = 12;

/// The value of a write.
pub fn encode(version: Version, len_bytes: usize) -> Vec<u8> {
    let len_bytes = len_bytes.max(HEAD_BYTES);
    let mut value = Vec::with_capacity(len_bytes + 8);
    value.extend_from_slice(&version.to_le_bytes());
    value.extend_from_slice(&(len_bytes as u32).to_le_bytes());
    let mut word = version;
    while value.len() < len_bytes {
        word = next(word);
        value.extend_from_slice(&word.to_le_bytes());
    }
    value.truncate(len_bytes);
    value
}

/// Which write a value comes from.
///
/// # Errors
/// It is not the value of any write.
pub fn decode(value: &[u8]) -> Result<Version, String> {
    let broken = || format!("a value of {} bytes that nobody wrote", value.len());
    let (head, rest) = value.split_at_checked(HEAD_BYTES).ok_or_else(broken)?;
    let (version, len_bytes) = head.split_first_chunk::<8>().ok_or_else(broken)?;
    let version = Version::from_le_bytes(*version);
    if len_bytes != (value.len() as u32).to_le_bytes() {
        return Err(broken());
    }
    let mut word = version;
    for bytes in rest.chunks(8) {
        word = next(word);
        if !word.to_le_bytes().starts_with(bytes) {
            return Err(broken());
        }
    }
    Ok(version)
}

fn next(word: u64) -> u64 {
    word.wrapping_mul(0x9fb2_1c65_1e98_df25).rotate_left(23) ^ 0x9e37_79b9_7f4a_7c15
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_cut_or_mixed_is_noticed() {
        let value = encode(77, 100);
        assert_eq!(decode(&value), Ok(77));
        assert!(decode(&value[..99]).is_err());
        let mut mixed = encode(78, 100);
        mixed[50..].copy_from_slice(&value[50..]);
        assert!(decode(&mixed).is_err());
    }
}
