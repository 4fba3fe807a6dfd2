//! What was read and found.

use std::fmt;

/// Most damaged places that are told one by one.
const TOLD_MAX: usize = 1000;

/// Bytes of the number of a region in front of each key.
const REGION_BYTES: usize = 4;

/// What a verification read and found. Beside writers the counts are of no single moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Damaged places by their offset, the first thousand that were found.
    pub damage: Vec<Damage>,
    /// All damaged places.
    pub damaged: u64,
    /// Extents in use that were read.
    pub extents: u64,
    /// Bytes of the volume that were read and checked.
    pub bytes: u64,
    /// Items that are the newest of their keys.
    pub items: u64,
    /// Bytes of the values of those items, as far as they are not in parts.
    pub value_bytes: u64,
    /// Whole items that newer ones have replaced.
    pub outdated_items: u64,
    /// Tombstones that something depends on.
    pub tombstones: u64,
    /// Parts of large values.
    pub parts: u64,
    /// Slots that were being changed at every look: not judged.
    pub busy_slots: u64,
}

/// A damaged place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Byte offset on the volume.
    pub offset: u64,
    /// The key of the item that should be there, as far as it is known: the number of its region (4 bytes, big endian) and
    /// of the key at least as much as the index holds.
    pub key: Option<Vec<u8>>,
    /// What is wrong.
    pub what: String,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.damaged == 0
    }

    /// Adds a damaged place.
    pub(super) fn damaged(&mut self, offset: u64, key: Option<Vec<u8>>, what: impl Into<String>) {
        self.damaged += 1;
        if self.damage.len() < TOLD_MAX {
            let what = what.into();
            self.damage.push(Damage { offset, key, what });
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, key, what } = self;
        write!(f, "byte {offset} of the volume: {what}")?;
        if let Some((region, key)) = key.as_deref().and_then(|it| it.split_first_chunk()) {
            let region: &[u8; REGION_BYTES] = region;
            let (region, key) = (u32::from_be_bytes(*region), key.escape_ascii());
            write!(f, "; key \"{key}\" of region {region}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_told_with_its_place_and_key() {
        let mut report = VerifyReport::default();
        report.damaged(4096, Some(b"\0\0\0\x02ab\xff".to_vec()), "torn");
        report.damaged(512, None, "no item");
        let told: Vec<String> = report.damage.iter().map(Damage::to_string).collect();
        assert_eq!(
            told,
            [
                "byte 4096 of the volume: torn; key \"ab\\xff\" of region 2",
                "byte 512 of the volume: no item"
            ]
        );
        assert!(!report.is_clean());
    }

    #[test]
    fn no_more_than_a_thousand_places_are_told_and_all_are_counted() {
        let mut report = VerifyReport::default();
        (0..1500).for_each(|at| report.damaged(at, None, "damaged"));
        assert_eq!((report.damage.len(), report.damaged), (TOLD_MAX, 1500));
    }
}
