//! What lies in the table: ranges that are split from each other, and keys in each.

use kreon_judge::Register;

/// The table.
pub const TABLE: &str = "torture";

/// Its keys.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// Ranges; each lies in one group.
    pub ranges: usize,
    /// Keys of each range, at most 1000.
    pub each: usize,
}

impl Keys {
    /// Where the table is split: the first key of each range but the first.
    pub fn splits(self) -> Vec<Vec<u8>> {
        let first = |range: usize| format!("{range:02}").into_bytes();
        (1..self.ranges).map(first).collect()
    }

    /// A key. Some are longer than others.
    pub fn key(self, range: usize, number: usize) -> Vec<u8> {
        let mut key = format!("{range:02}-{number:03}").into_bytes();
        if number % 7 == 3 {
            key.resize(200, b'-');
        }
        key
    }

    /// A key before all keys of the range from `number` on and behind all before; `each` for the end.
    pub fn bound(self, range: usize, number: usize) -> Vec<u8> {
        format!("{range:02}-{number:03}").into_bytes()
    }

    /// Which key of the range this is.
    pub fn register(self, range: usize, key: &[u8]) -> Option<Register> {
        let digits = key.get(3..6)?;
        let number: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
        (number < self.each && self.key(range, number) == key).then_some(number as Register)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lie_between_their_bounds_in_their_range() {
        let keys = Keys {
            ranges: 12,
            each: 20,
        };
        let splits = keys.splits();
        for range in 0..keys.ranges {
            for number in 0..keys.each {
                let key = keys.key(range, number);
                assert_eq!(keys.register(range, &key), Some(number as u64));
                assert!(keys.bound(range, number) <= key && key < keys.bound(range, number + 1));
                assert!(range == 0 || splits[range - 1] <= key);
                assert!(splits.get(range).is_none_or(|end| key < *end));
            }
        }
        assert_eq!(keys.register(1, b"01-999"), None);
        assert_eq!(keys.register(1, b"02-001"), None);
    }
}
