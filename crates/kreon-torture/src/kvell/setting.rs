//! What a world is like.

use kreon_sim::Dice;

/// From a cache that holds nothing over some that hold a few cells to one that holds all.
const MEMORY_BYTES: [usize; 5] = [40 << 10, 90 << 10, 140 << 10, 300 << 10, 2 << 20];

/// Bytes of each key in the index.
const INDEX_KEY_BYTES: [usize; 4] = [1, 3, 8, 32];

/// Sizes and shares, all small, so that rare things are frequent.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub partitions: u16,
    pub atomic_bytes: usize,
    pub index_key_bytes: usize,
    pub memory_bytes: usize,
    /// The device keeps over a power cut what it took.
    pub is_lossless: bool,
    pub len_bytes_max: u64,
    pub stale_max: usize,
    /// Extents by which the end of those in use moves on.
    pub step_min: u32,
    /// Bytes of something else behind the superblocks of the new device.
    pub garbage_bytes: usize,
    /// Longer items have their value in parts.
    pub slot_bytes_max: usize,
    pub keys: Vec<Vec<u8>>,
    pub value_bytes: Vec<usize>,
    /// Transfers in flight for each partition at most.
    pub depth: usize,
    /// In hundredths: actions that are requests, and those that are ends of transfers. The others are flushes.
    pub requests: u64,
    pub transfers: u64,
    pub deletes: u64,
    pub buffered: u64,
}

impl Setting {
    pub fn new(dice: &mut Dice) -> Self {
        let atomic_bytes = [512, 512, 512, 1024, 2048, 4096][dice.below(6) as usize];
        let all_bytes: &[usize] = match dice.below(4) {
            0 => &[0, 8, 20, 60, 110],
            1 => &[300, 480, 490, 700, 1500],
            2 => &[10, 200, 600, 3000, 7000],
            _ => &[600, 4000, 9000, 20_000],
        };
        let extents = 3 + dice.below(8);
        Self {
            partitions: 1 + dice.below(2) as u16,
            atomic_bytes,
            index_key_bytes: INDEX_KEY_BYTES[dice.below(4) as usize],
            memory_bytes: MEMORY_BYTES[dice.below(5) as usize],
            is_lossless: dice.below(8) == 0,
            len_bytes_max: extents << 20,
            stale_max: [0, 1, 3, 100][dice.below(4) as usize],
            step_min: [1, 2, 64][dice.below(3) as usize],
            garbage_bytes: match dice.below(3) {
                0 => 0,
                _ => dice.below((extents - 1) << 11) as usize * 512,
            },
            slot_bytes_max: slot_bytes_max(dice, atomic_bytes),
            keys: keys(dice),
            value_bytes: all_bytes.to_vec(),
            depth: 1 + dice.below(6) as usize,
            requests: 25 + dice.below(40),
            transfers: 25 + dice.below(25),
            deletes: dice.below(50),
            buffered: [0, 0, 30, 100][dice.below(4) as usize],
        }
    }

    /// What another opening of the same store may have otherwise.
    pub fn vary(&mut self, dice: &mut Dice) {
        if dice.below(4) == 0 {
            self.index_key_bytes = INDEX_KEY_BYTES[dice.below(4) as usize];
            self.memory_bytes = MEMORY_BYTES[dice.below(5) as usize];
        }
    }
}

/// Small slots for parts, so that values have one to dozens of them; in two of three worlds. They are never of those that
/// share a cell.
fn slot_bytes_max(dice: &mut Dice, atomic_bytes: usize) -> usize {
    let units = match dice.below(6) {
        0 | 1 => return usize::MAX,
        2 => 1,
        3 => 2,
        4 => 4,
        _ => 8,
    };
    units * atomic_bytes
}

/// Some keys: short ones, some that begin alike, some longer than a head part has room for.
fn keys(dice: &mut Dice) -> Vec<Vec<u8>> {
    let count = match dice.below(4) {
        0 => 1 + dice.below(2),
        1 => 20 + dice.below(40),
        _ => 2 + dice.below(9),
    };
    let style = dice.below(4);
    let key = |number: u64| match style {
        0 => vec![number as u8],
        1 => format!("alike{number}").into_bytes(),
        2 => {
            let mut long = vec![b'l'; 399 + (number % 5) as usize];
            long.extend_from_slice(&number.to_be_bytes()[6..]);
            long
        }
        _ => match number % 3 {
            0 => format!("{number}").into_bytes(),
            1 => vec![b'a'; number as usize],
            _ => [vec![b'z'; 500], vec![number as u8]].concat(),
        },
    };
    let mut keys: Vec<Vec<u8>> = (0..count).map(key).collect();
    keys.sort();
    keys.dedup();
    keys
}
