//! Settings of an opening, and the split of the memory budget ([`memory`]).

mod clock;
mod memory;
mod mirroring;
mod reading;

use std::ops::RangeInclusive;
use std::time::Duration;

use kreon_base::{Error, Result};
use kreon_device::{Backing, processors};
use kreon_mapping::MappingModes;

use crate::events::Events;

pub use clock::Clock;
pub use memory::MemorySplit;
pub use mirroring::Mirroring;
pub(crate) use reading::Replayed;

/// Most bytes that are written for each byte given by users, the copies of idle time included: what else is written comes
/// first. A factor without a unit. Larger: stores that are overwritten have more of their values laid together. Smaller:
/// a part of what was loaded stays scattered.
const IDLE_WRITTEN_MAX: f64 = 2.2;

/// Idle time begins when nobody has written for so long. Larger: short pauses are not used. Smaller: writers meet the end
/// of a round more often.
const IDLE_AFTER: Duration = Duration::from_millis(300);

/// What a write promises when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The write is in the log buffer in memory. A thread hands it to the device within about 100 ms, or when the
    /// buffer is full, without a flush. A crash loses a suffix of the acknowledged writes at most: it never loses a
    /// write and keeps a later one.
    #[default]
    Buffered,
    /// The write survives any crash of the process or the machine. Waiting writers share one flush (group commit). A
    /// writer waits for at most two flushes and for the write-out of the log before its record: about 1 MiB if another
    /// writer waited within the last second, otherwise all of the log buffers.
    Sync,
}

/// Which thread does background work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// Threads of the store.
    #[default]
    Threads,
    /// The calling thread, when its call fills L0: every run of a test is the same.
    Inline,
    /// The caller of [`Engine::background`](crate::Engine::background): a test decides when work runs.
    Driven,
}

/// A kind of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Spills the frozen L0, if there is one, and reclaims pages and segments that no reader sees.
    Spill,
    /// Merges trees until no region has a merge due.
    Merge,
    /// Moves live records out of log segments with dead ones (garbage collection).
    Collect,
    /// Copies values that scans found scattered into key order.
    Reorganise,
    /// One round of what idle time is for: copies values that lie scattered into key order, whether anybody scanned
    /// them or not. Does not wait for idle time.
    LayTogether,
    /// Hands the log to the device without a flush, as is done every 100 ms: buffered writes so far survive the end of
    /// the process, but not that of the machine.
    WriteOut,
    /// Writes an image of L0, if there were writes since the last one.
    Image,
    /// Writes zeroes into one or two free segments for the log, as is done while writers keep waiting for durability.
    Prepare,
}

/// Designs that experiments compare with the default, which measured best. Only the feature `comparison` has any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Designs {
    /// Variants of the mapping.
    pub mapping: MappingModes,
    /// Whether spills rewrite the whole first level instead of the leaves that receive entries.
    #[cfg(feature = "comparison")]
    pub full_compaction: bool,
}

impl Designs {
    /// Whether a spill rewrites the whole first level.
    pub(crate) fn rewrites_all(&self) -> bool {
        #[cfg(feature = "comparison")]
        return self.full_compaction;
        #[cfg(not(feature = "comparison"))]
        return false;
    }
}

/// Settings of an open store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory budget in bytes: frames, L0s, log buffers and tables.
    pub memory_bytes: usize,
    /// Size at which L0 is spilled; L0 and L0' together take up to twice as much. `None`: an eighth of the memory, at
    /// most 16 GiB.
    pub l0_bytes: Option<usize>,
    /// All log buffers, at least 4 MiB. `None`: a sixteenth of the memory, 4 to 32 MiB. Tests set it: with many buffers
    /// in little memory, segments are reused while buffers of earlier uses are still in memory.
    pub log_buffer_bytes: Option<usize>,
    /// Largest size of the volume in bytes.
    pub volume_bytes_max: u64,
    /// Interval between images of L0; an image has the entries that are new since the last one and bounds the replay.
    /// `None`: no images. Only [`Background::Threads`] takes them periodically.
    pub l0_checkpoint_interval: Option<Duration>,
    /// Largest value that a spill stores in leaves; longer values stay in the log.
    pub inline_value_bytes_max: usize,
    /// Bits for each key of a leaf's Bloom filter, which lies in the index node above the leaf. 0: new leaves have no
    /// filter.
    pub filter_bits_per_key: usize,
    /// Target of garbage collection: bytes on the volume for each live byte, 1.05 to 10.
    pub space_amplification: f64,
    /// Most bytes written for each byte that overwrites another, about, 2 to 100. It wins over `space_amplification`:
    /// the store takes more space instead.
    pub write_amplification_max: f64,
    /// Bytes of the log behind its durable end that are kept for the change feed. 0: there is no feed. Segments that nobody
    /// else needs are given up before they are missed.
    pub changes_kept_bytes: u64,
    /// Dead bytes that the log may always hold between two spills, however small the store is.
    pub unspilled_bytes_min: u64,
    /// Whether values that are scanned repeatedly are copied into key order (`Kreon 3.2.3`).
    pub scan_reorganisation: bool,
    /// Whether all values are copied into key order while nobody writes; not without `scan_reorganisation`.
    pub idle_reorganisation: bool,
    /// Idle time begins so long after the last write. Tests set it.
    pub idle_after: Duration,
    /// Most bytes written for each byte given, with copies in idle time. Tests set it.
    pub idle_written_max: f64,
    /// Fewer new bytes are no reason to go over all keys in idle time. `None`: 4 MiB, and nothing is copied where
    /// everything fits in frames. Tests set it: then it is copied in any case.
    pub idle_bytes_min: Option<u64>,
    /// Most bytes on the volume for each live byte during these copies, 1 to 10: the copies exist before the old
    /// segments are free. Below `space_amplification` the copies get only the space that collection leaves.
    pub scan_space_amplification: f64,
    /// Whether records of the log are verified whenever they are read. If not, they are when they come from the device.
    pub verify_every_read: bool,
    /// When memory is allocated. Tests set [`Backing::Sparse`], as they open many stores and use little of each; then
    /// an opening does not check that the system has the whole budget, and replay reads in the calling thread.
    pub backing: Backing,
    /// Designs to compare with.
    pub designs: Designs,
    /// Whether a missing store is created.
    pub create: bool,
    /// With `create`: whether a store may be created over a device that is not empty and holds no store that can be
    /// opened. See `kreon::Options::format`.
    pub format: bool,
    /// Whether nothing is ever written: see `kreon::Options::read_only`. Nothing is created then.
    pub read_only: bool,
    /// With `read_only`: most bytes of L0. `None`: what the budget leaves.
    pub replay_bytes_max: Option<usize>,
    /// See [`Background`].
    pub background: Background,
    /// Threads that merge one spill, by ranges of keys; more than 64 count as 64. 0: a quarter of the processors, at
    /// least one. Always one with [`Background::Inline`] and [`Background::Driven`].
    pub spill_threads: usize,
    /// Size ratio of neighbouring levels, 2 to 100. `None`: one level of any size.
    pub growth_factor: Option<u32>,
    /// Whether tree pages are allocated one by one, the lowest first, instead of in long runs. Tests set it: in a small
    /// store freed pages are then reused soon, which shows a reuse that comes too early.
    pub scatter_pages: bool,
    /// With more regions than this a catalogue stores them in pages of their own, and a checkpoint writes only the
    /// pages with changed regions. Tests set it to 0, so that few regions suffice.
    pub regions_in_stream_max: usize,
    /// Identity of a new store. `None`: random. Tests set it to get the same bytes in every run.
    pub store_id: Option<u64>,
    /// The listener of the store.
    pub events: Events,
    /// What the primary of a group is opened with.
    pub mirroring: Mirroring,
    /// The clock by which values expire. Tests set it.
    pub clock: Clock,
}

/// Least memory budget of a store, in bytes.
pub const MEMORY_BYTES_MIN: usize = 8 << 20;

/// Largest L0 in bytes. Its arena addresses 32 GiB; the rest is for batches and deletions that overfill it.
pub const L0_BYTES_MAX: usize = 16 << 30;

/// The least growth factor.
pub const GROWTH_FACTOR_MIN: u32 = 2;

/// The largest growth factor.
pub const GROWTH_FACTOR_MAX: u32 = 100;
/// Valid targets of garbage collection. Below 1.05 hardly any segment has dead bytes to gain.
const AMPLIFICATIONS: RangeInclusive<f64> = 1.05..=10.0;

/// Valid limits of space during copies for scans.
const SCAN_AMPLIFICATIONS: RangeInclusive<f64> = 1.0..=10.0;

/// Valid limits of bytes written for each byte overwritten.
const WRITE_AMPLIFICATIONS: RangeInclusive<f64> = 2.0..=100.0;

/// Most threads that merge one spill.
const SPILL_THREADS_MAX: usize = 64;

const MIB: usize = 1 << 20;

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_bytes: 256 * MIB,
            l0_bytes: None,
            log_buffer_bytes: None,
            l0_checkpoint_interval: Some(Duration::from_secs(120)),
            volume_bytes_max: 16 << 40,
            inline_value_bytes_max: 64,
            filter_bits_per_key: 10,
            space_amplification: 2.0,
            write_amplification_max: 3.0,
            changes_kept_bytes: 0,
            unspilled_bytes_min: 4 << 20,
            scan_reorganisation: true,
            idle_reorganisation: true,
            idle_after: IDLE_AFTER,
            idle_written_max: IDLE_WRITTEN_MAX,
            idle_bytes_min: None,
            scan_space_amplification: 2.1,
            verify_every_read: false,
            backing: Backing::default(),
            designs: Designs::default(),
            create: true,
            format: false,
            read_only: false,
            replay_bytes_max: None,
            background: Background::Threads,
            spill_threads: 0,
            growth_factor: Some(8),
            scatter_pages: false,
            regions_in_stream_max: 16,
            store_id: None,
            events: Events::default(),
            mirroring: Mirroring::default(),
            clock: Clock::default(),
        }
    }
}

impl Options {
    /// Whether values are laid together in idle time.
    pub(crate) fn uses_idle_time(&self) -> bool {
        self.scan_reorganisation && self.idle_reorganisation
    }

    /// Threads that merge a spill.
    pub fn spill_workers(&self) -> usize {
        match (self.background, self.spill_threads) {
            (Background::Inline | Background::Driven, _) => 1,
            (Background::Threads, 0) => (processors() / 4).max(1),
            (Background::Threads, threads) => threads.min(SPILL_THREADS_MAX),
        }
    }

    fn check_ranges(&self) -> Result<()> {
        if self.memory_bytes < MEMORY_BYTES_MIN {
            return Err(Error::invalid(format!(
                "memory_bytes is {}, the least is {MEMORY_BYTES_MIN}",
                self.memory_bytes
            )));
        }
        check_most(
            "inline_value_bytes_max",
            self.inline_value_bytes_max,
            kreon_format::INLINE_VALUE_BYTES_MAX,
        )?;
        if let Some(growth) = self.growth_factor
            && !(GROWTH_FACTOR_MIN..=GROWTH_FACTOR_MAX).contains(&growth)
        {
            return Err(Error::invalid(format!(
                "growth_factor is {growth}, it can be {GROWTH_FACTOR_MIN} to {GROWTH_FACTOR_MAX}"
            )));
        }
        check_most(
            "filter_bits_per_key",
            self.filter_bits_per_key,
            kreon_format::FILTER_BITS_PER_KEY_MAX,
        )?;
        check_within(
            "space_amplification",
            self.space_amplification,
            AMPLIFICATIONS,
        )?;
        check_within(
            "write_amplification_max",
            self.write_amplification_max,
            WRITE_AMPLIFICATIONS,
        )?;
        check_within(
            "scan_space_amplification",
            self.scan_space_amplification,
            SCAN_AMPLIFICATIONS,
        )
    }
}

fn check_most(name: &str, value: usize, most: usize) -> Result<()> {
    match value <= most {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "{name} is {value}, the most is {most}"
        ))),
    }
}

fn check_within(name: &str, value: f64, range: RangeInclusive<f64>) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    Err(Error::invalid(format!(
        "{name} is {value}, it must be {least} to {most}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_memory_sum_to_no_more_than_the_whole() {
        for memory_bytes in [8 * MIB, 64 * MIB, 1 << 30] {
            let split = Options {
                memory_bytes,
                ..Options::default()
            }
            .split()
            .unwrap();
            assert!(
                2 * split.l0_bytes + split.log_bytes + split.collector_bytes + split.mapping_bytes
                    <= memory_bytes
            );
            assert!(split.mapping_bytes >= memory_bytes / 5);
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let little = Options {
            memory_bytes: 1 << 20,
            ..Options::default()
        };
        assert!(little.split().is_err());
        let greedy = Options {
            l0_bytes: Some(1 << 30),
            ..Options::default()
        };
        assert!(greedy.split().is_err());
        let beyond_the_arena = Options {
            memory_bytes: usize::MAX,
            l0_bytes: Some(L0_BYTES_MAX + 1),
            ..Options::default()
        };
        assert!(beyond_the_arena.split().is_err());
        let long_values = Options {
            inline_value_bytes_max: kreon_format::INLINE_VALUE_BYTES_MAX + 1,
            ..Options::default()
        };
        assert!(long_values.split().is_err());
        for growth in [0, 1, 101] {
            let growth_factor = Some(growth);
            let steep = Options {
                growth_factor,
                ..Options::default()
            };
            assert!(steep.split().is_err());
        }
        let wide_filters = Options {
            filter_bits_per_key: kreon_format::FILTER_BITS_PER_KEY_MAX + 1,
            ..Options::default()
        };
        assert!(wide_filters.split().is_err());
        let empty = Options {
            l0_bytes: Some(0),
            ..Options::default()
        };
        assert!(empty.split().is_err());
    }
}
