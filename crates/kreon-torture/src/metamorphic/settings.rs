//! The table of settings that no answer may depend on.

use std::fmt;
use std::time::Duration;

use kreon_device::Facility;
#[cfg(feature = "comparison")]
use kreon_engine::{Backend, MapAdvice};
use kreon_engine::{Background, MEMORY_BYTES_MIN, Options};
use kreon_sim::Dice;

use super::operations::LANES;

/// Under what a chapter runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of the store.
    pub engine: Options,
    /// One of so many writes of a lane is durable when it returns.
    pub sync_every: Option<usize>,
    /// Threads that the lanes are dealt to.
    pub threads: usize,
    /// Direct I/O, where the store is a file.
    pub direct: Facility,
    /// Rings, where the store is a file.
    pub ring: Facility,
    /// A snapshot of the end of a chapter is read at the end of the next.
    pub holds_snapshots: bool,
    /// Everything is spilled after so many operations of a lane.
    pub checkpoint_every: Option<usize>,
    /// The store is closed and opened before the next chapter, under other settings.
    pub reopens: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            engine: Options {
                memory_bytes: MEMORY_BYTES_MIN,
                background: Background::Inline,
                volume_bytes_max: 4 << 30,
                ..Options::default()
            },
            sync_every: None,
            threads: 1,
            direct: Facility::Auto,
            ring: Facility::Auto,
            holds_snapshots: false,
            checkpoint_every: None,
            reopens: false,
        }
    }
}

/// A setting: its name, and how any value of it is chosen.
type Setting = (&'static str, fn(&mut Settings, &mut Dice));

/// All of them. A new option of the store is one line more.
const SETTINGS: &[Setting] = &[
    ("memory_bytes", |s, dice| {
        let little = [MEMORY_BYTES_MIN, 9 << 20, 16 << 20, 64 << 20];
        // All of it is taken at the opening: seldom, or courses take long.
        s.engine.memory_bytes = match dice.below(40) {
            0 => 4 << 30,
            1..4 => any(dice, &[256 << 20, 1 << 30]),
            _ => any(dice, &little),
        };
    }),
    ("log_buffer_bytes", |s, dice| {
        let log_buffer_bytes = any(dice, &[None, Some(8 << 20), Some(32 << 20)]);
        s.engine.log_buffer_bytes = log_buffer_bytes;
        // Beside the largest L0.
        let memory_bytes = log_buffer_bytes.map_or(0, |bytes| bytes * 3 / 2 + MEMORY_BYTES_MIN);
        s.engine.memory_bytes = s.engine.memory_bytes.max(memory_bytes);
    }),
    ("l0_bytes", |s, dice| {
        s.engine.l0_bytes = Some(any(dice, &[1, 1 << 10, 6 << 10, 40 << 10, 1_600_000]));
    }),
    ("inline_value_bytes_max", |s, dice| {
        s.engine.inline_value_bytes_max = any(dice, &[0, 1, 17, 64, 200, 256]);
    }),
    ("growth_factor", |s, dice| {
        s.engine.growth_factor = any(dice, &[None, Some(2), Some(3), Some(10)]);
    }),
    #[cfg(feature = "comparison")]
    ("full_compaction", |s, dice| {
        s.engine.designs.full_compaction = any(dice, &[false, true]);
    }),
    ("filter_bits_per_key", |s, dice| {
        s.engine.filter_bits_per_key = any(dice, &[0, 1, 10, 24]);
    }),
    ("space_amplification", |s, dice| {
        s.engine.space_amplification = any(dice, &[1.05, 1.3, 10.0]);
    }),
    ("write_amplification_max", |s, dice| {
        s.engine.write_amplification_max = any(dice, &[2.0, 3.0, 16.0, 100.0]);
    }),
    ("scan_space_amplification", |s, dice| {
        s.engine.scan_space_amplification = any(dice, &[1.0, 2.1, 10.0]);
    }),
    ("idle_reorganisation", |s, dice| {
        s.engine.idle_reorganisation = any(dice, &[false, true]);
    }),
    ("idle_after", |s, dice| {
        s.engine.idle_after = Duration::from_millis(any(dice, &[0, 1, 300]));
    }),
    ("idle_written_max", |s, dice| {
        s.engine.idle_written_max = any(dice, &[1.0, 2.2, 100.0]);
    }),
    ("idle_bytes_min", |s, dice| {
        s.engine.idle_bytes_min = any(dice, &[None, Some(0)]);
    }),
    ("unspilled_bytes_min", |s, dice| {
        s.engine.unspilled_bytes_min = any(dice, &[1 << 20, 16 << 20]);
    }),
    ("verify_every_read", |s, dice| {
        s.engine.verify_every_read = any(dice, &[false, true]);
    }),
    ("background", |s, dice| {
        s.engine.background = any(dice, &[Background::Inline, Background::Threads]);
    }),
    ("sync_every", |s, dice| {
        s.sync_every = any(dice, &[None, Some(1), Some(9)]);
    }),
    ("threads", |s, dice| {
        s.threads = 1 + dice.below(LANES as u64) as usize
    }),
    ("direct", |s, dice| {
        s.direct = any(dice, &[Facility::Auto, Facility::Off])
    }),
    ("ring", |s, dice| {
        s.ring = any(dice, &[Facility::Auto, Facility::Off])
    }),
    #[cfg(feature = "comparison")]
    ("backend", |s, dice| {
        let mapped = Backend::Mmap(MapAdvice::Random);
        s.engine.designs.mapping.backend = any(dice, &[Backend::Pool, mapped]);
    }),
    ("holds_snapshots", |s, dice| {
        s.holds_snapshots = any(dice, &[false, true])
    }),
    ("checkpoint_every", |s, dice| {
        s.checkpoint_every = any(dice, &[None, Some(1), Some(7), Some(50)]);
    }),
    ("reopens", |s, dice| s.reopens = any(dice, &[false, true])),
];

fn any<T: Clone>(dice: &mut Dice, values: &[T]) -> T {
    values[dice.below(values.len() as u64) as usize].clone()
}

impl Settings {
    /// Any.
    pub fn any(dice: &mut Dice) -> Self {
        let mut settings = Self::default();
        for (_, choose) in SETTINGS {
            if dice.below(3) > 0 {
                choose(&mut settings, dice);
            }
        }
        settings
    }

    /// Flushes of a real disk take milliseconds: fewer of them.
    pub fn with_slow_flushes(mut self) -> Self {
        self.sync_every = self.sync_every.map(|every| every * 40);
        self.checkpoint_every = self.checkpoint_every.map(|every| every.max(4) * 25);
        self
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "memory {} log {:?} l0 {:?} growth {:?} inline {} filters {} space {} at {} scans {} \
             idle {} after {:?} for {} from {:?} unspilled {} verifies {} {:?} {:?} \
             sync_every {:?} \
             threads {} direct {:?} ring {:?} snapshots {} checkpoint_every {:?} reopens {}",
            self.engine.memory_bytes,
            self.engine.log_buffer_bytes,
            self.engine.l0_bytes,
            self.engine.growth_factor,
            self.engine.inline_value_bytes_max,
            self.engine.filter_bits_per_key,
            self.engine.space_amplification,
            self.engine.write_amplification_max,
            self.engine.scan_space_amplification,
            self.engine.idle_reorganisation,
            self.engine.idle_after,
            self.engine.idle_written_max,
            self.engine.idle_bytes_min,
            self.engine.unspilled_bytes_min,
            self.engine.verify_every_read,
            self.engine.designs,
            self.engine.background,
            self.sync_every,
            self.threads,
            self.direct,
            self.ring,
            self.holds_snapshots,
            self.checkpoint_every,
            self.reopens
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_the_table_changes_something() {
        for (name, choose) in SETTINGS {
            let mut dice = Dice::new(1);
            let usual = Settings::default().to_string();
            let is_changed = (0..100).any(|_| {
                let mut settings = Settings::default();
                choose(&mut settings, &mut dice);
                settings.to_string() != usual
            });
            assert!(is_changed, "{name}");
        }
    }

    #[test]
    fn all_settings_can_be_opened_with() {
        for seed in 0..20_000 {
            let settings = Settings::any(&mut Dice::new(seed));
            if let Err(error) = settings.engine.split() {
                panic!("{settings}: {error}");
            }
        }
    }
}
