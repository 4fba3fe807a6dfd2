//! What a store is like.

use std::fmt;
use std::sync::Arc;

use ::tucana::{Maintenance, Options, Recovery, Result};
use kreon_sim::{Dice, Image, SimDevice, SimOptions};

use super::store::Tucana;

/// No volume of the torture becomes as long.
const AMPLE_BYTES: u64 = 1 << 30;

/// Least memory of a store.
pub(super) const MEMORY_BYTES_MIN: usize = 512 << 10;

/// What keys are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A number.
    Short,
    /// A name with a number.
    Named,
    /// Hundreds of bytes that all have in common: index nodes have few children, trees are high.
    LongPrefix,
    /// The eight bytes by which leaves tell keys apart are often the same.
    Ties,
    /// Each is the begin of longer ones; the empty key is one.
    Nested,
}

const STYLES: [Style; 5] = [
    Style::Short,
    Style::Named,
    Style::LongPrefix,
    Style::Ties,
    Style::Nested,
];

/// A kind of store.
#[derive(Clone)]
pub struct Setting {
    /// Sorted.
    pub keys: Vec<Vec<u8>>,
    style: Style,
    pub memory_bytes: usize,
    /// Longest value but for long ones.
    pub value_bytes_max: u64,
    /// Of ten thousand values so many are long enough to fill segments of the log.
    pub long: u64,
    /// Steps of an opening.
    pub steps: u64,
    /// Of a thousand steps so many are commits or syncs.
    pub commits: u64,
    /// Of a thousand changes so many are durable when they return.
    pub syncs: u64,
    /// What an opening finds.
    pub recovery: Recovery,
    /// All keys are put at first.
    pub is_filled: bool,
    /// Longest volume.
    pub len_bytes_max: u64,
}

impl Setting {
    pub fn new(dice: &mut Dice) -> Self {
        let style = STYLES[dice.below(STYLES.len() as u64) as usize];
        // From trees of one leaf to more leaves than can be open at once.
        let (count, steps) = match dice.below(12) {
            0..=2 => (1 + dice.below(4), 10 + dice.below(150)),
            3..=6 => (50 + dice.below(300), 20 + dice.below(600)),
            7..=10 => (600 + dice.below(2000), 50 + dice.below(1500)),
            _ => (6000 + dice.below(5000), 1000 + dice.below(3000)),
        };
        let is_small_volume = dice.below(12) == 0;
        Self {
            keys: keys(style, count),
            style,
            memory_bytes: [MEMORY_BYTES_MIN, MEMORY_BYTES_MIN, 1 << 20, 3 << 20]
                [dice.below(4) as usize],
            value_bytes_max: [1, 40, 300][dice.below(3) as usize],
            long: match is_small_volume {
                true => 300,
                false => [0, 3, 30][dice.below(3) as usize],
            },
            steps,
            commits: [3, 20, 150][dice.below(3) as usize],
            syncs: [0, 20, 300][dice.below(3) as usize],
            recovery: [Recovery::LastCommit, Recovery::ReplayLog][dice.below(2) as usize],
            is_filled: dice.below(2) == 0,
            len_bytes_max: match is_small_volume {
                true => (16 + 2 * dice.below(6)) << 20,
                false => AMPLE_BYTES,
            },
        }
    }

    /// The store that faults befall: little memory, high trees, log of several segments. By even seeds its log is replayed.
    pub fn of_faults(seed: u64) -> Self {
        Self {
            keys: keys(Style::LongPrefix, 420),
            style: Style::LongPrefix,
            memory_bytes: MEMORY_BYTES_MIN,
            value_bytes_max: 200,
            long: 120,
            steps: 90,
            commits: 30,
            syncs: 60,
            recovery: match seed % 2 {
                0 => Recovery::ReplayLog,
                _ => Recovery::LastCommit,
            },
            is_filled: true,
            len_bytes_max: AMPLE_BYTES,
        }
    }

    /// Whether the volume may become full.
    pub fn may_be_full(&self) -> bool {
        self.len_bytes_max < AMPLE_BYTES
    }

    /// A device that holds `image`.
    pub fn device(&self, image: Image, is_recorded: bool) -> Arc<SimDevice> {
        let options = SimOptions {
            len_bytes_max: self.len_bytes_max,
            record: is_recorded,
            ..SimOptions::default()
        };
        Arc::new(SimDevice::from_image(image, options))
    }

    /// Opens the store on a device.
    pub fn open(&self, device: &Arc<SimDevice>) -> Result<Tucana> {
        let options = options(self.memory_bytes, self.len_bytes_max, self.recovery);
        Tucana::on(device, &options)
    }

    /// The length of a value.
    pub fn len_bytes(&self, dice: &mut Dice) -> usize {
        if dice.below(10_000) < self.long {
            let longest = [20_000, 100_000, 700_000, 2_080_000][dice.below(4) as usize];
            return longest + dice.below(5000) as usize;
        }
        match dice.below(20) {
            0 => 0,
            _ => dice.below(self.value_bytes_max) as usize + 1,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} keys of style {:?}, {} KiB of memory, a volume of at most {} MiB, {:?}",
            self.keys.len(),
            self.style,
            self.memory_bytes >> 10,
            self.len_bytes_max >> 20,
            self.recovery
        )
    }
}

/// How stores of the torture are opened that have no threads: when a commit is made follows from the calls.
pub(super) fn options(memory_bytes: usize, volume_bytes_max: u64, recovery: Recovery) -> Options {
    Options {
        memory_bytes,
        volume_bytes_max,
        recovery,
        maintenance: Maintenance::Callers,
        ..Options::default()
    }
}

/// So many different keys, sorted.
pub(super) fn keys(style: Style, count: u64) -> Vec<Vec<u8>> {
    let prefix = vec![b'p'; 300 + (count % 5) as usize * 140];
    let key = |number: u64| match style {
        Style::Short => (number as u32 * 3).to_be_bytes().to_vec(),
        Style::Named => format!("user/{number:06}").into_bytes(),
        Style::LongPrefix => [&prefix[..], &(number as u32).to_be_bytes()].concat(),
        Style::Ties => {
            let mut key = vec![(number % 3) as u8; 1];
            key.extend_from_slice(&[0; 11]);
            key.extend_from_slice(&number.to_be_bytes()[4..]);
            key
        }
        Style::Nested => {
            let mut key = vec![b'n'; (number % 40) as usize];
            if number >= 40 {
                key.extend_from_slice(&(number / 40).to_be_bytes()[5..]);
            }
            key
        }
    };
    let mut keys: Vec<Vec<u8>> = (0..count).map(key).collect();
    keys.sort();
    keys.dedup();
    keys
}
