//! What is done: chapters, each of four lanes of operations whose keys have nothing in common. So
//! lanes may run in one thread or in several and must answer the same.

use std::ops::Bound;

use kreon_engine::{Isolation, KeyBounds};
use kreon_sim::Dice;

use crate::script::{Lifetime, Value};

/// Lanes of a chapter.
pub const LANES: usize = 4;

/// Regions that all lanes share.
pub const REGIONS: usize = 2;

/// One change of one key.
#[derive(Clone, Debug)]
pub struct Change {
    /// Number of the region.
    pub region: usize,
    /// The key.
    pub key: Vec<u8>,
    /// `None` deletes.
    pub value: Option<Value>,
    /// How long the value lives.
    pub lifetime: Lifetime,
}

/// What is done in a transaction.
#[derive(Clone, Debug)]
pub enum Step {
    /// A get, for update or not.
    Get(usize, Vec<u8>, bool),
    /// A scan of so many pairs, by these turns.
    Scan(usize, KeyBounds, Vec<bool>),
    /// A put or a deletion.
    Write(Change),
    /// The deletion of a range.
    DeleteRange(usize, KeyBounds),
    /// A savepoint.
    Save,
    /// The return to the savepoint with this number, if there are so many.
    Return(usize),
    /// Everything is spilled, beside the transaction.
    Checkpoint,
}

/// A transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Of the commit.
    pub isolation: Isolation,
    /// In this order.
    pub steps: Vec<Step>,
    /// Else it is forgotten.
    pub commits: bool,
}

/// One call.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A put, a deletion, or a batch.
    Write(Vec<Change>),
    /// Reads and writes, and a commit.
    Transaction(Transaction),
    /// One key is changed by what it has.
    Update(Change),
    /// One get, and whether the key is there.
    Get(usize, Vec<u8>),
    /// Many gets.
    MultiGet(usize, Vec<Vec<u8>>),
    /// A scan of so many pairs: forward, backward, or from both ends by these turns.
    Scan(usize, KeyBounds, Vec<bool>),
    /// How many keys.
    Count(usize),
    /// Everything is spilled.
    Checkpoint,
    /// Everything is durable.
    Sync,
}

/// What is done between two looks at the whole store.
#[derive(Clone, Debug, Default)]
pub struct Chapter {
    /// Operations by lane.
    pub lanes: [Vec<Operation>; LANES],
}

/// The operations of a seed.
pub fn chapters(seed: u64) -> Vec<Chapter> {
    let mut dice = Dice::new(seed);
    let count = 2 + dice.below(5);
    let taste = Taste {
        keys: [5, 30, 120, 400][dice.below(4) as usize],
        longest: [40, 300, 3000, 30_000][dice.below(4) as usize],
        reads: 1 + dice.below(6),
    };
    (0..count).map(|_| chapter(&mut dice, &taste)).collect()
}

struct Taste {
    keys: u64,
    longest: u64,
    reads: u64,
}

fn chapter(dice: &mut Dice, taste: &Taste) -> Chapter {
    let mut chapter = Chapter::default();
    for (lane, operations) in chapter.lanes.iter_mut().enumerate() {
        let count = dice.below(160);
        operations.extend((0..count).map(|_| operation(dice, taste, lane)));
    }
    chapter
}

fn operation(dice: &mut Dice, taste: &Taste, lane: usize) -> Operation {
    let region = dice.below(REGIONS as u64) as usize;
    match dice.below(12 + taste.reads * 4) {
        0..8 => Operation::Write(vec![change(dice, taste, lane)]),
        8 => match dice.below(2) {
            0 => Operation::Transaction(transaction(dice, taste, lane)),
            _ => Operation::Update(change(dice, taste, lane)),
        },
        9..11 => {
            let count = 1 + dice.below(12);
            Operation::Write((0..count).map(|_| change(dice, taste, lane)).collect())
        }
        11 => match dice.below(8) {
            0 => Operation::Checkpoint,
            1 => Operation::Sync,
            _ => Operation::Count(region),
        },
        other => match other % 4 {
            0 => {
                let count = dice.below(20);
                Operation::MultiGet(region, (0..count).map(|_| key(dice, taste, lane)).collect())
            }
            1 => Operation::Scan(region, bounds(dice, taste, lane), turns(dice)),
            _ => Operation::Get(region, key(dice, taste, lane)),
        },
    }
}

fn transaction(dice: &mut Dice, taste: &Taste, lane: usize) -> Transaction {
    let isolation = match dice.below(2) {
        0 => Isolation::Snapshot,
        _ => Isolation::Serializable,
    };
    let count = 1 + dice.below(14);
    Transaction {
        isolation,
        steps: (0..count).map(|_| step(dice, taste, lane)).collect(),
        commits: dice.below(5) > 0,
    }
}

fn step(dice: &mut Dice, taste: &Taste, lane: usize) -> Step {
    let region = dice.below(REGIONS as u64) as usize;
    match dice.below(20) {
        0..4 => Step::Get(region, key(dice, taste, lane), dice.below(2) == 0),
        4..7 => Step::Scan(region, bounds(dice, taste, lane), turns(dice)),
        7 => Step::DeleteRange(region, bounds(dice, taste, lane)),
        8..10 => Step::Save,
        10..12 => Step::Return(dice.below(3) as usize),
        12 if dice.below(4) == 0 => Step::Checkpoint,
        _ => Step::Write(change(dice, taste, lane)),
    }
}

fn change(dice: &mut Dice, taste: &Taste, lane: usize) -> Change {
    let value = Value {
        len_bytes: match dice.below(40) {
            0 => 70_000 + dice.below(9000) as usize,
            _ => dice.below(taste.longest) as usize,
        },
        seed: dice.roll(),
    };
    Change {
        region: dice.below(REGIONS as u64) as usize,
        key: key(dice, taste, lane),
        value: (dice.below(4) > 0).then_some(value),
        lifetime: Lifetime::of(dice),
    }
}

/// Keys of all lengths; every fourth run of them differs only behind a long common part.
fn key(dice: &mut Dice, taste: &Taste, lane: usize) -> Vec<u8> {
    let number = dice.below(taste.keys);
    let mut key = vec![b'a' + lane as u8];
    if number % 4 == 1 {
        key.resize(60, b'c');
    }
    key.extend_from_slice(format!("{number:03}").as_bytes());
    match number % 16 {
        2 => key.resize(1200, b'-'),
        7 => key.resize(4097, b'-'),
        _ => {}
    }
    key
}

/// All keys of a lane.
pub fn lane_bounds(lane: usize) -> KeyBounds {
    let first = b'a' + lane as u8;
    (
        Bound::Included(vec![first]),
        Bound::Excluded(vec![first + 1]),
    )
}

fn bounds(dice: &mut Dice, taste: &Taste, lane: usize) -> KeyBounds {
    let (low, high) = lane_bounds(lane);
    let (first, second) = (key(dice, taste, lane), key(dice, taste, lane));
    let (from, to) = match dice.below(8) {
        0 => (second, first),
        _ => (first.clone().min(second.clone()), first.max(second)),
    };
    let low = match dice.below(3) {
        0 => low,
        1 => Bound::Included(from),
        _ => Bound::Excluded(from),
    };
    let high = match dice.below(3) {
        0 => high,
        1 => Bound::Included(to),
        _ => Bound::Excluded(to),
    };
    (low, high)
}

/// True is a step from the front.
fn turns(dice: &mut Dice) -> Vec<bool> {
    let count = match dice.below(3) {
        0 => 5,
        1 => 40,
        _ => 1000,
    };
    match dice.below(3) {
        0 => vec![true; count],
        1 => vec![false; count],
        _ => (0..count).map(|_| dice.below(2) == 0).collect(),
    }
}
