//! Statistics of an open store.

use std::fmt;

use super::Inspector;
use super::memory_stats::MemoryStats;
use super::page_stats::PageStats;
use super::sizes::bytes;
use crate::checkpoint::catalogue::MAIN_LOG;
pub use crate::level::GetStats;
use crate::maintenance::{CollectionStats, ImageStats, ReorganisationStats};
use kreon_base::{PAGE_BYTES, SEGMENT_BYTES};
use kreon_device::{DeviceStats, TransferStats};
use kreon_format::{TreeRecord, pages_of};
use kreon_log::MOVED_LOG;
use kreon_mapping::MappingStats;

/// One level tree of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelStats {
    /// The region's name.
    pub region: String,
    /// 1 for L1.
    pub level: u8,
    /// Versions of keys in it.
    pub entries: u64,
    /// Its leaves, 4 KiB each.
    pub leaf_pages: u64,
    /// Its index nodes, 4 KiB each.
    pub index_pages: u64,
    /// All its pages, in bytes.
    pub bytes: u64,
    /// Larger than this it is merged into the level below; none: there is one level.
    pub target_bytes: Option<u64>,
    /// Nodes from the root to a leaf.
    pub height: u8,
}

/// What a store is and did since it was opened. Display prints it as a table.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The durable epoch: checkpoints since the store was made.
    pub epoch: u64,
    /// Length of the volume, in bytes.
    pub volume_bytes: u64,
    /// Free within the volume, in bytes.
    pub free_bytes: u64,
    /// Log segments, in bytes.
    pub log_bytes: u64,
    /// Bytes of the log that the levels point at.
    pub log_live_bytes: u64,
    /// Bytes of the log that the next open would replay.
    pub replay_bytes: u64,
    /// Pages of the image of L0 that the next open would load, in bytes.
    pub image_bytes: u64,
    /// The opening found an image that cannot be read, and replayed the log instead.
    pub found_damaged_image: bool,
    /// Images of L0 that were taken.
    pub images: u64,
    /// The last one of them.
    pub last_image: Option<ImageStats>,
    /// Entries in L0' and L0.
    pub l0_entries: u64,
    /// Stretches of keys in L0' and L0 that were deleted as ranges, and that no spill has taken out of the levels yet.
    pub l0_ranges: u64,
    /// Memory of L0' and L0, in bytes.
    pub l0_bytes: u64,
    /// The level trees.
    pub levels: Vec<LevelStats>,
    /// Spills that ended.
    pub spills: u64,
    /// Pages of trees that spills took apart, and that they wrote.
    pub spill_pages_read: u64,
    /// See [`spill_pages_read`](Self::spill_pages_read).
    pub spill_pages_written: u64,
    /// Merges of levels that ended.
    pub merges: u64,
    /// Pages of trees that merges of levels took apart, and that they wrote.
    pub merge_pages_read: u64,
    /// See [`merge_pages_read`](Self::merge_pages_read).
    pub merge_pages_written: u64,
    /// Garbage collection of the log.
    pub collection: CollectionStats,
    /// Values that were laid together for scans.
    pub reorganisation: ReorganisationStats,
    /// Open snapshots.
    pub snapshots: u64,
    /// Pages that wait for readers of older views.
    pub retired_pages: u64,
    /// The memory budget, in bytes.
    pub memory_bytes: u64,
    /// Where that memory is.
    pub memory: MemoryStats,
    /// Frames of the mapping that hold a page.
    pub resident_pages: u64,
    /// What gets read from the device, and what filters spared them.
    pub gets: GetStats,
    /// Entries without a value (deleted keys, mostly) that scans passed one by one.
    pub scanned_dead: u64,
    /// What the mapping did: hits, misses, evictions, writebacks.
    pub mapping: MappingStats,
    /// The same by what the pages are.
    pub pages: PageStats,
    /// Reads at the device.
    pub device_reads: u64,
    /// Bytes read from the device.
    pub device_read_bytes: u64,
    /// Writes at the device.
    pub device_writes: u64,
    /// Bytes written to the device.
    pub device_write_bytes: u64,
    /// Flushes of the device.
    pub device_flushes: u64,
    /// Bytes of zeroes written ahead of the log's records, so that small flushes are quick.
    pub zeroed_bytes: u64,
    /// All that the device counts: sizes of transfers, and how many were in flight.
    pub device: DeviceStats,
}

impl Inspector {
    /// Collects the figures. Costs microseconds, and a walk over the list of segments.
    pub fn stats(&self) -> Stats {
        let view = self.storage.views.load_full();
        let ledger = self.storage.ledger.lock();
        let (epoch, replay_start) = (ledger.epoch.0, ledger.replay_start());
        let found_damaged_image = ledger.found_damaged_image;
        let image_runs = ledger.image.iter().map(|part| pages_of(&part.pages));
        let image_pages: usize = image_runs.map(Iterator::count).sum();
        drop(ledger);
        let (images, last_image) = self.maintenance.l0_images.taken();
        let device: DeviceStats = self.storage.device.stats();
        let (spill_pages_read, spill_pages_written) = self.maintenance.spiller.counts.pages();
        let (merge_pages_read, merge_pages_written) = self.maintenance.merger.counts.pages();
        let collection = self.maintenance.gc.collection_stats();
        let allocator = self.storage.allocator.lock();
        let logs = [MAIN_LOG, MOVED_LOG].map(|log| allocator.log_segments(log));
        let segments = logs.concat();
        Stats {
            epoch,
            volume_bytes: u64::from(allocator.segment_count()) * SEGMENT_BYTES,
            free_bytes: u64::from(allocator.free_segment_count()) * SEGMENT_BYTES,
            log_bytes: segments.len() as u64 * SEGMENT_BYTES,
            log_live_bytes: segments
                .iter()
                .map(|s| u64::from(allocator.live_bytes(s.0)))
                .sum(),
            replay_bytes: self.storage.log.tail().0.saturating_sub(replay_start.0),
            image_bytes: (image_pages * PAGE_BYTES) as u64,
            found_damaged_image,
            images,
            last_image,
            l0_entries: view.l0s().map(|l0| l0.len() as u64).sum(),
            l0_ranges: view.l0s().map(|l0| l0.fragments() as u64).sum(),
            l0_bytes: view.l0s().map(|l0| l0.bytes() as u64).sum(),
            levels: self.level_stats(&view),
            spills: self.throttle.spills_ended(),
            spill_pages_read,
            spill_pages_written,
            merges: self.maintenance.merger.counts.done(),
            merge_pages_read,
            merge_pages_written,
            collection,
            reorganisation: self.maintenance.reorganisation_stats(),
            snapshots: self.visibility.snapshots.count() as u64,
            retired_pages: self.storage.views.waiting().0,
            memory_bytes: self.storage.options.memory_bytes as u64,
            memory: self.memory_stats(),
            resident_pages: self.storage.mapping.resident_pages(),
            gets: self.storage.gets.stats(),
            scanned_dead: self.reader.scanned_dead(),
            mapping: self.storage.mapping.stats(),
            pages: self.page_stats(),
            device_reads: device.reads.count,
            device_read_bytes: device.reads.bytes,
            device_writes: device.writes.count,
            device_write_bytes: device.writes.bytes,
            device_flushes: device.flushes,
            zeroed_bytes: self.storage.log.zeroed_bytes()
                + allocator.written_ahead() * SEGMENT_BYTES,
            device,
        }
    }

    fn level_stats(&self, view: &crate::level::View) -> Vec<LevelStats> {
        let mut all = Vec::new();
        for region in self.regions.list() {
            let trees = view.levels.of(region.id);
            let scale = self.versions.scale(region.id);
            let targets = scale.targets(trees.iter().map(TreeRecord::bytes));
            for ((level, tree), target_bytes) in (1..).zip(trees).zip(targets) {
                all.push(LevelStats {
                    region: region.name.to_string(),
                    level,
                    entries: tree.entries,
                    leaf_pages: tree.leaf_pages,
                    index_pages: tree.index_pages,
                    bytes: tree.bytes(),
                    target_bytes: (target_bytes < u64::MAX).then_some(target_bytes),
                    height: tree.height,
                });
            }
        }
        all
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, name: &str, text: String| {
            writeln!(f, "{name:<22} {text:>20}")
        };
        line(f, "epoch", self.epoch.to_string())?;
        line(f, "volume", bytes(self.volume_bytes))?;
        line(f, "  free within", bytes(self.free_bytes))?;
        line(f, "log", bytes(self.log_bytes))?;
        line(f, "  live", bytes(self.log_live_bytes))?;
        line(f, "  replayed at open", bytes(self.replay_bytes))?;
        line(f, "  L0 image", bytes(self.image_bytes))?;
        if let Some(last) = &self.last_image {
            let (age, took) = (last.age_seconds, last.seconds);
            let text = format!("{age:.0} s ago, in {took:.2} s");
            line(f, "  last image taken", text)?;
        }
        line(f, "L0 entries", self.l0_entries.to_string())?;
        line(f, "L0 deleted ranges", self.l0_ranges.to_string())?;
        line(f, "L0 memory", bytes(self.l0_bytes))?;
        line(f, "memory budget", bytes(self.memory_bytes))?;
        write!(f, "{}", self.memory)?;
        line(f, "page hits", self.mapping.hits.to_string())?;
        line(f, "page misses", self.mapping.misses.to_string())?;
        let percent = |share: f64| format!("{:.2} %", share * 100.0);
        line(f, "leaves read by gets", self.gets.leaf_reads.to_string())?;
        line(f, "filters asked", self.gets.filter_checks.to_string())?;
        line(f, "  read spared", percent(self.gets.exclusions()))?;
        line(f, "  false positives", percent(self.gets.false_positives()))?;
        line(f, "record hits", self.mapping.record_hits.to_string())?;
        line(f, "pages evicted", self.mapping.pages_evicted.to_string())?;
        let written = format!("{} in {}", self.mapping.pages_written, self.mapping.writes);
        line(f, "pages written back", written)?;
        write!(f, "{}", self.pages)?;
        line(f, "spills", self.spills.to_string())?;
        let pages = |read: u64, written: u64| format!("{read} read, {written} written");
        let spilled = pages(self.spill_pages_read, self.spill_pages_written);
        line(f, "  pages", spilled)?;
        line(f, "merges of levels", self.merges.to_string())?;
        let merged = pages(self.merge_pages_read, self.merge_pages_written);
        line(f, "  pages", merged)?;
        let collected = &self.collection;
        line(f, "disk taken", bytes(collected.taken_bytes))?;
        line(f, "live keys and values", bytes(collected.live_bytes))?;
        let amplification = collected.space_amplification;
        let amplification = amplification.map_or("-".to_owned(), |factor| format!("{factor:.2}"));
        line(f, "space amplification", amplification)?;
        let planned = collected.space_planned.zip(collected.cost_planned);
        let planned = planned.map_or("-".to_owned(), |(space, cost)| {
            format!("{space:.2} for {cost:.1} bytes written per byte overwritten")
        });
        line(f, "planned", planned)?;
        line(f, "moved records", bytes(collected.moved_bytes))?;
        line(f, "log dead", bytes(collected.dead_bytes))?;
        let rounds = format!("{} in {} rounds", collected.victims, collected.rounds);
        line(f, "segments collected", rounds)?;
        let counted = |count: u64, size: u64| format!("{count} ({})", bytes(size));
        let moved = counted(collected.records_moved, collected.bytes_copied);
        line(f, "  records moved", moved)?;
        line(f, "  freed", bytes(collected.bytes_freed))?;
        let laid = &self.reorganisation;
        let ranges = format!("{} of {}", laid.ranges_moved, laid.ranges_found);
        line(f, "ranges laid together", ranges)?;
        let moved = counted(laid.records_moved, laid.bytes_copied);
        line(f, "  records moved", moved)?;
        let idle = counted(laid.idle.records_moved, laid.idle.bytes_copied);
        line(f, "  in idle time", idle)?;
        line(f, "open snapshots", self.snapshots.to_string())?;
        let reads = counted(self.device_reads, self.device_read_bytes);
        line(f, "device reads", reads)?;
        let writes = counted(self.device_writes, self.device_write_bytes);
        line(f, "device writes", writes)?;
        line(f, "  sizes read", sizes(&self.device.reads))?;
        line(f, "  sizes written", sizes(&self.device.writes))?;
        line(f, "device flushes", self.device_flushes.to_string())?;
        let (depth, most) = (self.device.depth_average, self.device.depth_max);
        line(f, "device queue depth", format!("{depth:.1}, {most} most"))?;
        levels_table(f, &self.levels)
    }
}

/// The levels, a line each, those of a region from L1 downwards.
fn levels_table(f: &mut fmt::Formatter<'_>, levels: &[LevelStats]) -> fmt::Result {
    let mut region = None;
    for level in levels {
        if region.replace(&level.region) != Some(&level.region) {
            writeln!(f, "region {:?}", level.region)?;
            writeln!(
                f,
                "  level      entries     leaves   of each  index nodes  height        size      up to"
            )?;
        }
        let each = level.entries.checked_div(level.leaf_pages).unwrap_or(0);
        let target = level.target_bytes.map_or("-".to_owned(), bytes);
        writeln!(
            f,
            "  {:<5} {:>12} {:>10} {each:>9} {:>12} {:>7} {:>11} {target:>10}",
            format!("L{}", level.level),
            level.entries,
            level.leaf_pages,
            level.index_pages,
            level.height,
            bytes(level.bytes),
        )?;
    }
    Ok(())
}

/// The mean size of transfers, and how many there are of each size.
fn sizes(transfers: &TransferStats) -> String {
    let mean = transfers.bytes.checked_div(transfers.count).unwrap_or(0);
    let counted = (0..).zip(transfers.sizes).filter(|(_, count)| *count > 0);
    let each = counted.map(|(class, count)| format!(", {count} from {}", bytes(1 << class)));
    format!("{} on average{}", bytes(mean), each.collect::<String>())
}

#[cfg(test)]
mod tests {
    #[test]
    fn transfers_are_told_by_size() {
        let mut transfers = super::TransferStats::default();
        assert_eq!(super::sizes(&transfers), "0 B on average");
        (transfers.count, transfers.bytes) = (3, 12 << 10);
        (transfers.sizes[11], transfers.sizes[13]) = (2, 1);
        let told = "4.0 KiB on average, 2 from 2.0 KiB, 1 from 8.0 KiB";
        assert_eq!(super::sizes(&transfers), told);
    }
}
