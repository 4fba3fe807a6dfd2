//! How the memory of a mapping is divided.

use kreon_base::{Error, PAGE_BYTES, Result};
use kreon_device::processors;

use crate::counters::ThreadCounters;
use crate::evict::EvictCounters;
use crate::options::MappingOptions;
use crate::read::{Mapped, ReadCounters};
use crate::record_cache;
use crate::table::{
    DESCRIPTOR_BYTES, POOL_BYTES_PER_FRAME, PRIORITIES, SHARD_BYTES, STRIPE_BYTES, TableShape,
};
use crate::well::{FRAMES_MAX, MARK_BYTES, STRIPE_PAGES};
use crate::writeback::WriteCounters;

/// Fewest frames that a mapping works with.
pub(crate) const FRAMES_MIN: usize = 64;

/// Stripes of the page array that even the smallest mapping can hold.
const STRIPES_MIN: usize = 16;

/// The page array may always take this share of the memory: enough for pages spread over a volume of 16 times the
/// memory.
const TABLE_SHARE: usize = 64;

/// For a volume that is longer when it is opened, the page array may take up to this share: enough for 64 times the
/// memory. In a longer volume, pages that lie alone in their stripe of 4 MiB are evicted sooner.
const TABLE_SHARE_LONG: usize = 16;

/// Most shards: a thread that looks for frames may visit all.
const SHARDS_MAX: usize = 256;

/// Shards may take this share of the memory.
const SHARD_SHARE: usize = 64;

/// Memory of a frame, with its marks, its descriptor and its place in the pool.
const FRAME_BYTES: usize = PAGE_BYTES + MARK_BYTES + DESCRIPTOR_BYTES + POOL_BYTES_PER_FRAME;

/// Memory of the counters.
const COUNTER_BYTES: usize = size_of::<ReadCounters>()
    + size_of::<EvictCounters>()
    + size_of::<WriteCounters>()
    + ThreadCounters::BYTES;

/// Frames of a huge page of 2 MiB.
const HUGE_FRAMES: usize = (2 << 20) / PAGE_BYTES;

/// With at least this many huge pages there are no frames beside them: at most a 32nd of the memory is unused.
const HUGE_MIN: usize = 32;

/// How many frames, shards and stripes there are.
#[derive(Debug)]
pub(crate) struct MemoryPlan {
    pub table: TableShape,
    /// Memory of the tables of single records.
    pub record_table_bytes: usize,
}

impl MemoryPlan {
    /// The plan for a volume that is `volume_bytes` long now.
    pub(crate) fn new(options: &MappingOptions, volume_bytes: u64) -> Result<Self> {
        let pages = options.volume_bytes_max / PAGE_BYTES as u64;
        // Page numbers have 48 bits; the page array's length in bytes must fit in an `isize` with ease.
        if pages == 0 || pages >= 1 << 48 {
            return Err(Error::invalid(format!(
                "a volume of up to {} bytes cannot be mapped",
                options.volume_bytes_max
            )));
        }
        if !(1..=90).contains(&options.dirty_share_percent) {
            return Err(Error::invalid(format!(
                "dirty share of {} percent, 1 to 90 are possible",
                options.dirty_share_percent
            )));
        }
        let memory_bytes = Mapped::frame_memory_bytes(options);
        let stripes_max = stripes_max(memory_bytes, pages, volume_bytes);
        let mut plan = Self {
            table: TableShape {
                frames: 0,
                pages,
                shards: shards(options),
                stripes_max,
            },
            record_table_bytes: match options.modes.keeps_records() {
                true => record_cache::table_bytes(memory_bytes),
                false => 0,
            },
        };
        let rest = memory_bytes.saturating_sub(plan.bytes(stripes_max));
        let mut frames = (rest / FRAME_BYTES).min(FRAMES_MAX);
        if frames >= HUGE_MIN * HUGE_FRAMES {
            // The system reserves whole huge pages only.
            frames -= frames % HUGE_FRAMES;
        }
        if frames < FRAMES_MIN {
            return Err(Error::invalid(format!(
                "{memory_bytes} bytes of memory have room for {frames} frames, at least {FRAMES_MIN} are \
                 needed"
            )));
        }
        plan.table.frames = frames;
        assert!(
            plan.bytes(stripes_max) <= memory_bytes,
            "more is planned than there is: {plan:?}"
        );
        Ok(plan)
    }

    /// Addresses that are reserved, in bytes.
    pub(crate) fn address_bytes(&self) -> u64 {
        let stripes = self.table.pages.div_ceil(STRIPE_PAGES);
        (self.table.frames as u64 + stripes) * PAGE_BYTES as u64
    }

    /// Memory in bytes while `stripes` stripes of the page array are in use.
    pub(crate) fn bytes(&self, stripes: usize) -> usize {
        let table = &self.table;
        let fixed = COUNTER_BYTES + PRIORITIES * size_of::<usize>() + table.shards * SHARD_BYTES;
        fixed + self.record_table_bytes + table.frames * FRAME_BYTES + stripes * STRIPE_BYTES
    }
}

/// Four for each processor, so that threads seldom contend, unless the options say otherwise.
fn shards(options: &MappingOptions) -> usize {
    let wanted = options.modes.shards(options.shards);
    if wanted > 0 {
        return wanted.min(SHARDS_MAX);
    }
    let affordable = options.memory_bytes / SHARD_SHARE / SHARD_BYTES;
    (4 * processors()).min(affordable).clamp(1, SHARDS_MAX)
}

fn stripes_max(memory_bytes: usize, pages: u64, volume_bytes: u64) -> usize {
    let all = usize::try_from(pages.div_ceil(STRIPE_PAGES)).unwrap_or(usize::MAX);
    let stripe_volume_bytes = STRIPE_PAGES * PAGE_BYTES as u64;
    // The volume may double before it is opened again.
    let now = usize::try_from(2 * (volume_bytes / stripe_volume_bytes)).unwrap_or(usize::MAX);
    let share = (memory_bytes / TABLE_SHARE_LONG / STRIPE_BYTES).min(now);
    share
        .max(memory_bytes / TABLE_SHARE / STRIPE_BYTES)
        .max(STRIPES_MIN)
        .min(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn everything_together_stays_within_the_memory() {
        for memory_bytes in [MIB / 2, MIB, 64 * MIB, 1 << 30, 64 << 30] {
            for volume_bytes in [0, 1 << 24, 1 << 34, 1 << 44] {
                let options = MappingOptions::new(memory_bytes, 1 << 44);
                let plan = MemoryPlan::new(&options, volume_bytes).unwrap();
                let bytes = plan.bytes(plan.table.stripes_max);
                assert!(bytes <= memory_bytes, "{plan:?}");
                let unused = memory_bytes - bytes;
                assert!(unused < FRAME_BYTES.max(memory_bytes / 32), "{plan:?}");
                assert!(
                    plan.table.frames * PAGE_BYTES >= memory_bytes / 10 * 5,
                    "{plan:?}"
                );
                assert!(
                    memory_bytes < MIB || plan.table.frames * PAGE_BYTES >= memory_bytes / 10 * 8
                );
            }
        }
    }

    #[test]
    fn too_little_memory_or_too_long_a_volume_is_refused() {
        assert!(MemoryPlan::new(&MappingOptions::new(MIB / 8, 1 << 30), 0).is_err());
        assert!(MemoryPlan::new(&MappingOptions::new(MIB, u64::MAX), 0).is_err());
        assert!(MemoryPlan::new(&MappingOptions::new(MIB, 0), 0).is_err());
        let mut options = MappingOptions::new(MIB, 1 << 30);
        options.dirty_share_percent = 0;
        assert!(MemoryPlan::new(&options, 0).is_err());
    }

    #[test]
    fn a_mode_overrules_the_shards_of_the_options() {
        let mut options = MappingOptions::new(64 * MIB, 1 << 30);
        options.shards = 8;
        assert_eq!(MemoryPlan::new(&options, 0).unwrap().table.shards, 8);
        options.modes.shards = 1;
        assert_eq!(MemoryPlan::new(&options, 0).unwrap().table.shards, 1);
    }

    #[test]
    fn a_short_volume_needs_no_more_than_its_own_table() {
        let options = MappingOptions::new(1 << 30, 64 << 20);
        let plan = MemoryPlan::new(&options, 64 << 20).unwrap();
        assert_eq!(plan.table.stripes_max, 16);
    }
}
