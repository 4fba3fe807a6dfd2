//! What can be set when a store is opened.

use std::ops::RangeInclusive;
use std::time::Duration;

use kreon_base::{Error, Result};
use kreon_device::{Backing, processors};
use kreon_mapping::MappingModes;

/// How much a write promises when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The write is in the log's buffer in memory. It reaches the device within about 100 ms, or when
    /// the buffer is full. A crash may lose it, but only together with everything after it: what
    /// survives is always a prefix of the order in which writes were acknowledged.
    #[default]
    Buffered,
    /// The write survives any crash, of the process and of the machine. Writers that wait at the same
    /// time share one flush. A writer waits for two at most, and for what others have buffered before its
    /// record: 1 MiB or little more if somebody else waited within the last second, else what the log's
    /// buffers hold.
    Sync,
}

/// Who does the background work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// Threads of the store.
    #[default]
    Threads,
    /// The calling thread, when its call fills L0: every run takes the same course.
    Inline,
    /// Whoever calls [`Engine::background`](crate::Engine::background): a test that decides when.
    Driven,
}

/// A piece of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Spills the frozen L0, if there is one, and gives back what nobody reaches.
    Spill,
    /// Merges trees of a region, as long as that is due in any.
    Merge,
    /// Moves live records out of log segments with dead ones.
    Collect,
    /// Lays values together that scans found scattered.
    Reorganise,
    /// Writes the log out, without a flush.
    WriteOut,
    /// Takes an image of L0, if anything was written since the last one.
    Image,
    /// Writes zeroes to a free segment or two for the log, as is done where writers wait for durability all the time.
    Prepare,
}

/// Settings of an open store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory for frames, L0s, log buffers and tables together, in bytes.
    pub memory_bytes: usize,
    /// L0 is spilled when it reaches this size; L0 and L0' together take up to twice as much. `None`: an
    /// eighth of the memory.
    pub l0_bytes: Option<usize>,
    /// Buffers of the log together, at least 4 MiB. `None`: a sixteenth of the memory, 4 to 32 MiB. Tests set it: with
    /// many buffers in little memory, segments are used again while buffers of earlier uses are still in memory.
    pub log_buffer_bytes: Option<usize>,
    /// The volume never grows beyond this, in bytes.
    pub volume_bytes_max: u64,
    /// How often L0 is checkpointed: what was written to it since the last time goes to the device as an
    /// index, so that a replay need not go further back. `None`: never. Only [`Background::Threads`] does it
    /// by itself.
    pub l0_checkpoint_interval: Option<Duration>,
    /// Values up to this length are placed in the leaves once they leave L0, longer ones stay in the
    /// log.
    pub inline_value_bytes_max: usize,
    /// Bits a key of the filters that tell which leaves lack a key, so that a get need not read them. They
    /// stand in the index nodes above the leaves. 0: leaves that are written from now on have none.
    pub filter_bits_per_key: usize,
    /// Space on the volume for each byte of live data that garbage collection is content with, 1.05 to 10.
    pub space_amplification: f64,
    /// About so many bytes at the most are written for each byte that overwrites another, 2 to 100: where that does not do
    /// for `space_amplification`, the store takes more space.
    pub write_amplification_max: f64,
    /// The log between two spills may always have so many dead bytes, even if that is much for so little data.
    pub unspilled_bytes_min: u64,
    /// Values that are scanned again and again are laid together (`Kreon 3.2.3`).
    pub scan_reorganisation: bool,
    /// Space for each byte of live data that the volume may take meanwhile, 1 to 10: old places are free later than copies
    /// are made. Below `space_amplification` they get what that leaves only.
    pub scan_space_amplification: f64,
    /// When the memory becomes real. Tests set it to [`Backing::Sparse`]: they open many stores and use little of each.
    /// Then nobody looks whether the system has all of the memory, and replay reads in the calling thread.
    pub backing: Backing,
    /// How the mapping goes about its work. For experiments.
    pub mapping: MappingModes,
    /// Make the store if it does not exist.
    pub create: bool,
    /// With `create`: also over a device that is not empty and holds no store that could be opened. See
    /// `kreon::Options::format`.
    pub format: bool,
    /// See [`Background`].
    pub background: Background,
    /// Threads that merge a spill, by ranges of keys. 0: a quarter of the processors, at least one. With
    /// [`Background::Inline`] and [`Background::Driven`] there is one.
    pub spill_threads: usize,
    /// How many times larger than the level above it a level may become; from 2 to
    /// 100. `None`: there is one level, whatever its size.
    pub growth_factor: Option<u32>,
    /// Spills write the whole first level anew instead of the leaves that receive entries. For comparison.
    pub full_compaction: bool,
    /// Take tree pages one by one, the lowest first, instead of in long runs. Tests set it: freed pages come back
    /// soon, so that a page that is reused too early is noticed in a small store.
    pub scatter_pages: bool,
    /// With more regions than this a catalogue has them in pages of their own, and a checkpoint writes those whose
    /// regions have changed. Tests set it to 0, so that few do.
    pub regions_in_stream_max: usize,
    /// Identity of a new store. `None`: a random one. Tests set it, to get the same bytes every time.
    pub store_id: Option<u64>,
}

/// The least memory that a store runs with.
pub const MEMORY_BYTES_MIN: usize = 8 << 20;

/// The largest L0: its arena refers to 32 GiB, and batches and deletions may overfill it.
pub const L0_BYTES_MAX: usize = 16 << 30;

/// The least growth factor.
pub const GROWTH_FACTOR_MIN: u32 = 2;

/// The largest growth factor.
pub const GROWTH_FACTOR_MAX: u32 = 100;
/// Targets of garbage collection that make sense: with less room hardly a segment has a dead byte to gain.
const AMPLIFICATIONS: RangeInclusive<f64> = 1.05..=10.0;

/// The same with copies for scans.
const SCAN_AMPLIFICATIONS: RangeInclusive<f64> = 1.0..=10.0;

/// Bytes written for each byte given that can be allowed.
const WRITE_AMPLIFICATIONS: RangeInclusive<f64> = 2.0..=100.0;

/// Most threads that merge a spill.
const SPILL_THREADS_MAX: usize = 64;

const MIB: usize = 1 << 20;

/// Buffers of the log: two segments at the least, and no more than the device needs to be busy.
const LOG_BYTES_MIN: usize = 4 * MIB;
const LOG_BYTES_MAX: usize = 32 * MIB;

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
            space_amplification: 1.3,
            write_amplification_max: 3.0,
            unspilled_bytes_min: 4 << 20,
            scan_reorganisation: true,
            scan_space_amplification: 2.1,
            backing: Backing::default(),
            mapping: MappingModes::default(),
            create: true,
            format: false,
            background: Background::Threads,
            spill_threads: 0,
            growth_factor: Some(8),
            full_compaction: false,
            scatter_pages: false,
            regions_in_stream_max: 16,
            store_id: None,
        }
    }
}

/// How the memory is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySplit {
    /// One L0.
    pub l0_bytes: usize,
    /// All buffers of the log.
    pub log_bytes: usize,
    /// Buffers of garbage collection.
    pub collector_bytes: usize,
    /// What scans have found ahead.
    pub scan_bytes: usize,
    /// Frames of the mapping and their tables.
    pub mapping_bytes: usize,
}

impl Options {
    /// Memory in which scans note where values are scattered: enough for a credit for every leaf of a store ten times
    /// as large as its memory, with values of 1 KiB.
    pub(crate) fn credit_bytes(&self) -> usize {
        match self.scan_reorganisation {
            true => (self.memory_bytes / 1024).next_power_of_two().min(MIB),
            false => 0,
        }
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
        if self.inline_value_bytes_max > kreon_format::INLINE_VALUE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "inline_value_bytes_max is {}, the most is {}",
                self.inline_value_bytes_max,
                kreon_format::INLINE_VALUE_BYTES_MAX
            )));
        }
        if let Some(growth) = self.growth_factor
            && !(GROWTH_FACTOR_MIN..=GROWTH_FACTOR_MAX).contains(&growth)
        {
            return Err(Error::invalid(format!(
                "growth_factor is {growth}, it can be {GROWTH_FACTOR_MIN} to {GROWTH_FACTOR_MAX}"
            )));
        }
        if self.filter_bits_per_key > kreon_format::FILTER_BITS_PER_KEY_MAX {
            return Err(Error::invalid(format!(
                "filter_bits_per_key is {}, the most is {}",
                self.filter_bits_per_key,
                kreon_format::FILTER_BITS_PER_KEY_MAX
            )));
        }
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
        )?;
        Ok(())
    }

    /// Splits the memory: an eighth for each of L0 and L0', a sixteenth (4 to 32 MiB) for the log's
    /// buffers, the rest for frames.
    ///
    /// # Errors
    /// `InvalidArgument` if a value is out of range.
    pub fn split(&self) -> Result<MemorySplit> {
        self.check_ranges()?;
        let l0_bytes = self
            .l0_bytes
            .unwrap_or((self.memory_bytes / 8).min(L0_BYTES_MAX));
        if l0_bytes > L0_BYTES_MAX {
            return Err(Error::invalid(format!(
                "l0_bytes is {l0_bytes}, the most is {L0_BYTES_MAX}"
            )));
        }
        let log_bytes = self.log_buffer_bytes.unwrap_or(self.memory_bytes / 16);
        let log_bytes = log_bytes.clamp(LOG_BYTES_MIN, LOG_BYTES_MAX);
        // Halves of whole pages: they are read and written directly.
        let collector_bytes = (self.memory_bytes / 32).clamp(MIB / 4, 4 * MIB) & !(MIB / 8 - 1);
        let taken = 2 * l0_bytes + log_bytes + collector_bytes + self.credit_bytes();
        let left_bytes = self.memory_bytes.saturating_sub(taken);
        // Of what the smallest store needs nothing.
        let scan_bytes = (self.memory_bytes.saturating_sub(4 * MIB) / 32).min(8 * MIB);
        let scan_bytes = scan_bytes.min(left_bytes.saturating_sub(MIB / 2));
        let mapping_bytes = left_bytes - scan_bytes;
        if l0_bytes == 0 || mapping_bytes < MIB / 2 {
            return Err(Error::invalid(format!(
                "two L0s of {l0_bytes} bytes and {log_bytes} bytes of log buffers leave no room for \
                 frames in {} bytes of memory",
                self.memory_bytes
            )));
        }
        Ok(MemorySplit {
            l0_bytes,
            log_bytes,
            collector_bytes,
            scan_bytes,
            mapping_bytes,
        })
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
