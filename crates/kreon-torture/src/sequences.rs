//! Short scripts, all of them: every sequence of up to three steps from a small alphabet. Most crash
//! bugs of storage systems need no more than three operations to show (`CrashMonkey`).

use kreon_base::SEGMENT_BYTES;
use kreon_engine::Durability;

use crate::script::{Change, Handed, Lifetime, Step, Value};

/// Letters of the alphabet; see [`Writer::letter`].
const LETTERS: u64 = 14;

const OF_ONE: u64 = LETTERS;
const OF_TWO: u64 = LETTERS * LETTERS;
const OF_THREE: u64 = LETTERS * LETTERS * LETTERS;

/// What a sequence starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ground {
    /// The log stands shortly before the end of a segment.
    pub ends_segment: bool,
    /// There is background work.
    pub has_back: bool,
}

const GROUNDS: [Ground; 3] = [
    Ground {
        ends_segment: false,
        has_back: false,
    },
    Ground {
        ends_segment: true,
        has_back: false,
    },
    Ground {
        ends_segment: true,
        has_back: true,
    },
];

/// Number of sequences.
pub const COUNT: u64 = GROUNDS.len() as u64 * (OF_ONE + OF_TWO + OF_THREE);

/// A sequence.
pub struct Sequence {
    /// What it starts from.
    pub ground: Ground,
    /// Steps that come first.
    pub before: Vec<Step>,
    /// The sequence but for its last letter. What it does is another sequence, too.
    pub first: Vec<Step>,
    /// Its last letter.
    pub last: Vec<Step>,
}

/// The sequence with a number below [`COUNT`].
pub fn sequence(number: u64) -> Sequence {
    let grounds = GROUNDS.len() as u64;
    let ground = GROUNDS.get((number % grounds) as usize);
    let ground = ground.copied().unwrap_or(GROUNDS[0]);
    let number = number / grounds;
    let (len, mut digits) = match number {
        0..OF_ONE => (1, number),
        _ if number < OF_ONE + OF_TWO => (2, number - OF_ONE),
        _ => (3, number - OF_ONE - OF_TWO),
    };
    let mut writer = Writer::default();
    let before = before(ground);
    let mut letters = Vec::new();
    for _ in 0..len {
        letters.push(writer.letter(digits % LETTERS));
        digits /= LETTERS;
    }
    let last = letters.pop().unwrap_or_default();
    Sequence {
        ground,
        before,
        first: letters.into_iter().flatten().collect(),
        last,
    }
}

fn before(ground: Ground) -> Vec<Step> {
    let mut steps = vec![
        Step::Create("base".to_owned()),
        Step::Write(
            vec![put("base", "kept", 300, 1), put("base", "one", 30, 2)],
            Durability::Sync,
        ),
    ];
    if ground.ends_segment {
        let len_bytes = SEGMENT_BYTES as usize - (24 << 10);
        steps.extend([
            Step::Write(
                vec![put("base", "filler", len_bytes, 3)],
                Durability::Buffered,
            ),
            Step::Write(vec![delete("base", "filler")], Durability::Buffered),
            Step::Checkpoint,
        ]);
    }
    steps
}

#[derive(Default)]
struct Writer {
    has_second: bool,
    has_snapshot: bool,
    seed: u64,
}

impl Writer {
    fn letter(&mut self, letter: u64) -> Vec<Step> {
        self.seed += 10;
        let seed = self.seed;
        let region = if self.has_second { "second" } else { "base" };
        let step = match letter {
            0 => Step::Write(vec![put(region, "one", 7, seed)], Durability::Sync),
            1 => Step::Write(vec![put(region, "two", 900, seed)], Durability::Buffered),
            // Longer than what is kept in one segment: it goes over its end.
            2 => Step::Write(
                vec![
                    put("base", "one", 30_000, seed),
                    put(region, "three", 35_000, seed + 1),
                    delete(region, "two"),
                    put("base", "four", 30_000, seed + 2),
                ],
                Durability::Buffered,
            ),
            3 => Step::Write(vec![delete("base", "one")], Durability::Sync),
            4 => Step::Checkpoint,
            5 => Step::Reopen,
            6 => {
                self.has_second = !self.has_second;
                match self.has_second {
                    true => Step::Create("second".to_owned()),
                    false => Step::Drop("second".to_owned()),
                }
            }
            7 => {
                self.has_snapshot = !self.has_snapshot;
                match self.has_snapshot {
                    true => Step::Snapshot,
                    false => Step::Release,
                }
            }
            // More than L0 takes.
            8 => return (0..7).map(|n| self.fill(region, n)).collect(),
            9 => Step::Sync,
            10 => Step::WriteOut,
            11 => Step::Kill,
            12 => self.load(region, [Vec::new(), Vec::new()]),
            // Older than the snapshot, then newer than the load, and spilled before its tree is there.
            _ => {
                self.has_snapshot = false;
                let newer = Step::Write(vec![put(region, "two", 70, seed)], Durability::Buffered);
                let load = self.load(region, [vec![newer], vec![Step::Checkpoint]]);
                return vec![Step::Snapshot, load, Step::Release, Step::Read];
            }
        };
        vec![step]
    }

    /// A load of four keys, with what is done before the second and the third of them.
    fn load(&self, region: &str, before: [Vec<Step>; 2]) -> Step {
        let [second, third] = before;
        let pairs = [
            ("four", 40, Vec::new()),
            ("one", 300, second),
            ("three", 30_000, third),
            ("two", 500, Vec::new()),
        ];
        let pairs = pairs.into_iter().zip(0..);
        let handed = pairs.map(|((key, len_bytes, before), number)| Handed {
            before,
            key: key.as_bytes().to_vec(),
            value: Value {
                len_bytes,
                seed: self.seed + number,
            },
        });
        Step::Ingest(region.to_owned(), handed.collect())
    }

    fn fill(&self, region: &str, number: u64) -> Step {
        let key = format!("fill-{number}");
        let value = put(region, &key, 60 + 200 * number as usize, self.seed + number);
        Step::Write(vec![value], Durability::Buffered)
    }
}

fn put(region: &str, key: &str, len_bytes: usize, seed: u64) -> Change {
    Change {
        region: region.to_owned(),
        key: key.as_bytes().to_vec(),
        value: Some(Value { len_bytes, seed }),
        until: None,
        lifetime: Lifetime::Unlimited,
    }
}

fn delete(region: &str, key: &str) -> Change {
    Change {
        region: region.to_owned(),
        key: key.as_bytes().to_vec(),
        value: None,
        until: None,
        lifetime: Lifetime::Unlimited,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_number_is_another_sequence() {
        let all: BTreeSet<_> = (0..COUNT)
            .map(|number| {
                let Sequence {
                    ground,
                    first,
                    last,
                    ..
                } = sequence(number);
                format!("{ground:?} {first:?} then {last:?}")
            })
            .collect();
        assert_eq!(all.len() as u64, COUNT);
    }
}
