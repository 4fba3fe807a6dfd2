//! Large values that a recovery finds.
//!
//! The head of a value is durable after its parts, but a power cut may keep it and lose a part as long as neither is. So a
//! head above the durable mark counts only if all its parts are there, which is known at the end.
//!
//! A part takes 24 bytes of memory meanwhile, and a head above the mark its key and 8 bytes for each part besides.

use crate::format::{LargeValue, PartOf, Timestamp};
use crate::index::Location;
use crate::partition::LargeValues;

/// Parts of large values, and heads in doubt.
#[derive(Default)]
pub struct FoundLarge {
    parts: Vec<FoundPart>,
    doubtful: Vec<Doubtful>,
    /// Heads in doubt that have all their parts.
    whole: Vec<Doubtful>,
    /// What an image tells: values that keys have.
    restored: LargeValues,
}

/// A part, whole. The timestamp names its owner: no other write has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FoundPart {
    timestamp: Timestamp,
    number: u32,
    at: Location,
}

/// A head that may have been written without its parts.
pub struct Doubtful {
    pub at: Location,
    pub timestamp: Timestamp,
    pub key_hash: u128,
    pub key: Vec<u8>,
    /// The places of its parts; `None` if there is no telling.
    parts: Option<Vec<u64>>,
}

impl FoundLarge {
    /// Takes in the value of a part. One that names no owner is none of anybody.
    pub fn part(&mut self, at: Location, value: &[u8]) {
        if let Some((part, _)) = PartOf::decode(value) {
            let (timestamp, number) = (part.timestamp, part.number);
            self.parts.push(FoundPart {
                timestamp,
                number,
                at,
            });
        }
    }

    /// Takes in a head that counts if its parts are there.
    pub fn doubtful(
        &mut self,
        (at, timestamp, key_hash): (Location, Timestamp, u128),
        key: &[u8],
        value: &[u8],
    ) {
        self.doubtful.push(Doubtful {
            at,
            timestamp,
            key_hash,
            key: key.to_vec(),
            parts: LargeValue::decode(value).ok().map(|value| value.parts),
        });
    }

    /// Takes in a value that a key has, as an image tells it.
    pub fn restored(&mut self, head: Location, timestamp: Timestamp, parts: Box<[Location]>) {
        self.restored.add(head, timestamp, parts);
    }

    /// Judges the heads in doubt. Those that have all their parts are handed out by [`Self::whole`] from now on, those that
    /// lack one are returned. To be called when everything was taken in.
    pub fn judge(&mut self) -> Vec<Location> {
        self.parts.sort_unstable();
        let doubtful = std::mem::take(&mut self.doubtful);
        let (whole, torn): (Vec<_>, Vec<_>) =
            doubtful.into_iter().partition(|head| self.is_whole(head));
        self.whole.extend(whole);
        torn.iter().map(|head| head.at).collect()
    }

    /// Heads that had been in doubt and have all their parts.
    pub fn whole(&self) -> &[Doubtful] {
        &self.whole
    }

    /// Memory in bytes, about.
    pub fn memory_bytes(&self) -> usize {
        self.parts.capacity() * size_of::<FoundPart>()
    }

    /// The values of these heads, with the parts that were found.
    pub fn present(mut self, heads: &[(Location, Timestamp)]) -> LargeValues {
        self.parts.sort_unstable();
        let mut present = std::mem::take(&mut self.restored);
        for &(at, timestamp) in heads {
            let parts = self.parts_of(timestamp).iter().map(|part| part.at);
            present.add(at, timestamp, parts.collect());
        }
        present
    }

    fn is_whole(&self, head: &Doubtful) -> bool {
        let Some(named) = &head.parts else {
            return false;
        };
        let found = self.parts_of(head.timestamp);
        let is_whole = found.len() == named.len()
            && (0..)
                .zip(found)
                .zip(named)
                .all(|((number, part), &at)| part.number == number && part.at.offset() == at);
        kreon_base::planted!(PartIgnored => let is_whole = true);
        is_whole
    }

    fn parts_of(&self, timestamp: Timestamp) -> &[FoundPart] {
        let from = self.parts.partition_point(|it| it.timestamp < timestamp);
        let to = self.parts.partition_point(|it| it.timestamp <= timestamp);
        self.parts.get(from..to).unwrap_or(&[])
    }
}
