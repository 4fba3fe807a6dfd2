//! What the writer writes. Every operation follows from the seed, the round, the thread and its place
//! in the thread's order, so the judge knows it without being told.

use super::dice::Dice;

/// Writing threads. Each owns its keys, so the order of one thread's operations says what they hold.
pub const THREADS: u8 = 4;

/// The regions that the threads write to.
pub const REGIONS: [&str; 2] = ["left", "right"];

/// Keys of a thread in one region: few, so that most writes overwrite.
pub const KEYS: u16 = 400;

/// The key that all threads share, in both regions; it sorts behind all others.
pub const COUNTER_KEY: &[u8] = b"\xffcounter";

/// A place that one thread writes to: a key in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// Index into [`REGIONS`].
    pub region: u8,
    pub thread: u8,
    pub index: u16,
}

impl Slot {
    /// The key: the slot's name, and behind it nothing, a little, or so much that a node cannot hold
    /// it whole.
    pub fn key(self) -> Vec<u8> {
        let mut key = vec![self.thread];
        key.extend_from_slice(&self.index.to_be_bytes());
        let mut dice = Dice::of(&[u64::from(self.thread), u64::from(self.index)]);
        let len_bytes = match dice.between(0, 100) {
            0..30 => 3,
            30..95 => dice.between(4, 60),
            _ => dice.between(900, 5000),
        };
        dice.fill(&mut key, len_bytes as usize);
        key
    }

    /// The slot that has this key; `None` if no slot has.
    pub fn of_key(region: u8, key: &[u8]) -> Option<Self> {
        let name = key.first_chunk::<3>()?;
        let slot = Self {
            region,
            thread: name[0],
            index: u16::from_be_bytes([name[1], name[2]]),
        };
        (slot.thread < THREADS && slot.index < KEYS && slot.key() == key).then_some(slot)
    }

    /// Every slot of every thread.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..REGIONS.len() as u8).flat_map(|region| {
            (0..THREADS).flat_map(move |thread| {
                (0..KEYS).map(move |index| Self {
                    region,
                    thread,
                    index,
                })
            })
        })
    }
}

/// Which write a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub round: u32,
    /// Place of the operation in the order of its thread, from 0 in each round.
    pub sequence: u32,
    /// Place of the change in its operation.
    pub part: u8,
}

const VERSION_BYTES: usize = 9;

/// How long the values of a seed are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Values {
    /// Mostly short, now and then more than a segment of the log holds.
    Mixed,
    /// So short that they stand in the index.
    Tiny,
    /// About a page.
    Pages,
}

impl Values {
    fn of(seed: u64) -> Self {
        match Dice::of(&[seed]).between(0, 4) {
            0 => Self::Tiny,
            1 => Self::Pages,
            _ => Self::Mixed,
        }
    }

    fn len_bytes(self, dice: &mut Dice) -> u64 {
        match (self, dice.between(0, 1000)) {
            (Self::Tiny, _) => dice.between(VERSION_BYTES as u64, 100),
            (Self::Pages, _) => dice.between(3 << 10, 5 << 10),
            (Self::Mixed, 0..700) => dice.between(VERSION_BYTES as u64, 200),
            (Self::Mixed, 700..950) => dice.between(200, 4 << 10),
            (Self::Mixed, 950..998) => dice.between(4 << 10, 64 << 10),
            (Self::Mixed, _) => dice.between(64 << 10, 3 << 20),
        }
    }
}

impl Version {
    /// The value that this write puts into `slot`: the version, and behind it bytes that follow from
    /// it, as many as the values of this seed have.
    pub fn value(self, seed: u64, slot: Slot) -> Vec<u8> {
        let mut value = self.round.to_le_bytes().to_vec();
        value.extend_from_slice(&self.sequence.to_le_bytes());
        value.push(self.part);
        let place = [
            u64::from(slot.region),
            u64::from(slot.thread),
            u64::from(slot.index),
        ];
        let write = [
            u64::from(self.round),
            u64::from(self.sequence),
            u64::from(self.part),
        ];
        let mut dice = Dice::of(&[&[seed], &place[..], &write[..]].concat());
        let len_bytes = Values::of(seed).len_bytes(&mut dice);
        dice.fill(&mut value, len_bytes as usize);
        value
    }

    /// The version that `value` says it is; the value itself may still be damaged.
    pub fn of_value(value: &[u8]) -> Option<Self> {
        let bytes = value.first_chunk::<VERSION_BYTES>()?;
        let [a, b, c, d, e, f, g, h, part] = *bytes;
        Some(Self {
            round: u32::from_le_bytes([a, b, c, d]),
            sequence: u32::from_le_bytes([e, f, g, h]),
            part,
        })
    }
}

/// One change of one key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    Put(Slot, Version),
    Delete(Slot),
}

/// What a thread does in one call.
#[derive(Debug, PartialEq)]
pub struct Operation {
    /// One change, or several that stand or fall together; a later change of a key overrules.
    pub changes: Vec<Change>,
    /// Whether the changes go as a batch; one change alone may.
    pub batch: bool,
    /// A batch that also writes the next number to [`COUNTER_KEY`] in both regions.
    pub counted: bool,
    pub sync: bool,
}

/// The operation of `thread` at `sequence` in `round`.
pub fn operation(seed: u64, round: u32, thread: u8, sequence: u32) -> Operation {
    let who = [
        seed,
        u64::from(round),
        u64::from(thread),
        u64::from(sequence),
    ];
    let mut dice = Dice::of(&who);
    let kind = dice.between(0, 100);
    let (batch, counted) = (kind < 20, kind < 5);
    let count = if batch { dice.between(1, 12) as u8 } else { 1 };
    let mut changes = Vec::new();
    for part in 0..count {
        let slot = Slot {
            region: dice.between(0, REGIONS.len() as u64) as u8,
            thread,
            index: dice.between(0, u64::from(KEYS)) as u16,
        };
        changes.push(if dice.one_in(6) {
            Change::Delete(slot)
        } else {
            let version = Version {
                round,
                sequence,
                part,
            };
            Change::Put(slot, version)
        });
    }
    Operation {
        changes,
        batch,
        counted,
        sync: dice.one_in(40),
    }
}

/// What stands at [`COUNTER_KEY`]: counted batches are numbered from 1 under one lock, so their order
/// is the same for all threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    pub number: u64,
    pub round: u32,
    pub thread: u8,
    pub sequence: u32,
}

impl Counter {
    pub fn value(self) -> Vec<u8> {
        let Self {
            number,
            round,
            thread,
            sequence,
        } = self;
        format!("{number} {round} {thread} {sequence}").into_bytes()
    }

    pub fn of_value(value: &[u8]) -> Option<Self> {
        let mut fields = std::str::from_utf8(value).ok()?.split(' ');
        let counter = Self {
            number: fields.next()?.parse().ok()?,
            round: fields.next()?.parse().ok()?,
            thread: fields.next()?.parse().ok()?,
            sequence: fields.next()?.parse().ok()?,
        };
        fields.next().is_none().then_some(counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_their_slots() {
        for slot in Slot::all() {
            assert_eq!(Slot::of_key(slot.region, &slot.key()), Some(slot));
        }
        assert_eq!(Slot::of_key(0, COUNTER_KEY), None);
        assert_eq!(Slot::of_key(0, b"\0"), None);
    }

    #[test]
    fn values_name_their_versions_and_differ_by_slot() {
        let version = Version {
            round: 3,
            sequence: 70_000,
            part: 2,
        };
        let slots: Vec<_> = Slot::all().take(2).collect();
        let value = version.value(1, slots[0]);
        assert_eq!(Version::of_value(&value), Some(version));
        assert_ne!(value, version.value(1, slots[1]));
        assert_ne!(value, version.value(2, slots[0]));
    }

    #[test]
    fn seeds_have_values_of_every_kind() {
        for kind in [Values::Mixed, Values::Tiny, Values::Pages] {
            assert!((0..20).any(|seed| Values::of(seed) == kind), "{kind:?}");
        }
    }

    #[test]
    fn operations_repeat_and_are_of_every_kind() {
        let operations: Vec<_> = (0..2000).map(|n| operation(5, 1, 2, n)).collect();
        assert_eq!(operations[7], operation(5, 1, 2, 7));
        for wanted in [
            |o: &Operation| o.sync,
            |o: &Operation| o.counted && o.batch,
            |o: &Operation| o.batch && o.changes.len() > 1,
            |o: &Operation| !o.batch && matches!(o.changes[..], [Change::Delete(_)]),
            |o: &Operation| !o.batch && matches!(o.changes[..], [Change::Put(..)]),
        ] {
            assert!(operations.iter().any(wanted));
        }
        let slots = operations.iter().flat_map(|o| &o.changes);
        assert!(slots.clone().all(|change| match change {
            Change::Put(slot, _) | Change::Delete(slot) => slot.thread == 2,
        }));
    }

    #[test]
    fn counters_survive_their_text() {
        let counter = Counter {
            number: 9,
            round: 1,
            thread: 3,
            sequence: 4,
        };
        assert_eq!(Counter::of_value(&counter.value()), Some(counter));
        assert_eq!(Counter::of_value(b"9 1 3"), None);
    }
}
