//! Counters of a device.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Number of classes in [`TransferStats::sizes`].
pub const SIZE_CLASSES: usize = 32;

/// Counters of reads or of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferStats {
    /// Number of transfers. A vectored transfer counts once for each 1024 buffers.
    pub count: u64,
    /// Total bytes.
    pub bytes: u64,
    /// Number of transfers by size: class `i` counts those of `2^i` to `2^(i+1) - 1` bytes, the last class also all
    /// longer ones.
    pub sizes: [u64; SIZE_CLASSES],
}

/// Counters of a device since its opening.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceStats {
    /// Reads.
    pub reads: TransferStats,
    /// Writes.
    pub writes: TransferStats,
    /// Flushes, including failed ones.
    pub flushes: u64,
    /// Ranges allocated.
    pub allocations: u64,
    /// Ranges discarded.
    pub discards: u64,
    /// Largest number of transfers in flight at once.
    pub depth_max: u32,
    /// Average depth: the number of transfers in flight when a transfer was submitted, itself included, averaged over
    /// all transfers. 0 before the first.
    pub depth_average: f64,
}

/// The counters behind [`DeviceStats`]. Relaxed: they order nothing.
#[derive(Default)]
pub(crate) struct DeviceCounters {
    pub(crate) reads: TransferCounters,
    pub(crate) writes: TransferCounters,
    pub(crate) flushes: AtomicU64,
    pub(crate) allocations: AtomicU64,
    pub(crate) discards: AtomicU64,
    depth: AtomicU32,
    depth_max: AtomicU32,
    depth_sum: AtomicU64,
}

/// Counters of one direction.
#[derive(Default)]
pub(crate) struct TransferCounters {
    bytes: AtomicU64,
    sizes: [AtomicU64; SIZE_CLASSES],
}

impl TransferCounters {
    /// Counts one transfer.
    pub(crate) fn add(&self, len_bytes: u64) {
        let class = len_bytes.max(1).ilog2() as usize;
        if let Some(size) = self.sizes.get(class.min(SIZE_CLASSES - 1)) {
            size.fetch_add(1, Relaxed);
        }
        self.bytes.fetch_add(len_bytes, Relaxed);
    }

    fn read(&self) -> TransferStats {
        let sizes = self.sizes.each_ref().map(|size| size.load(Relaxed));
        TransferStats {
            // Each transfer is in one class, so their sum is the count.
            count: sizes.iter().sum(),
            bytes: self.bytes.load(Relaxed),
            sizes,
        }
    }
}

impl DeviceCounters {
    /// Counts `count` transfers that are submitted together.
    pub(crate) fn depart(&self, count: u32) {
        if count == 0 {
            return;
        }
        let before = self.depth.fetch_add(count, Relaxed);
        let depth = before.saturating_add(count);
        if self.depth_max.load(Relaxed) < depth {
            self.depth_max.fetch_max(depth, Relaxed);
        }
        // Sum of `before + 1 ..= before + count`: the depth that each of them sees.
        let (before, count) = (u64::from(before), u64::from(count));
        let sum = count * before + count * (count + 1) / 2;
        self.depth_sum.fetch_add(sum, Relaxed);
    }

    /// Counts `count` transfers that ended.
    pub(crate) fn arrive(&self, count: u32) {
        if count != 0 {
            self.depth.fetch_sub(count, Relaxed);
        }
    }

    /// Transfers in flight now.
    #[cfg(all(test, target_os = "linux", not(feature = "portable")))]
    pub(crate) fn in_flight(&self) -> u32 {
        self.depth.load(Relaxed)
    }

    pub(crate) fn read(&self) -> DeviceStats {
        let (reads, writes) = (self.reads.read(), self.writes.read());
        let transfers = reads.count + writes.count;
        DeviceStats {
            reads,
            writes,
            flushes: self.flushes.load(Relaxed),
            allocations: self.allocations.load(Relaxed),
            discards: self.discards.load(Relaxed),
            depth_max: self.depth_max.load(Relaxed),
            depth_average: match transfers {
                0 => 0.0,
                _ => self.depth_sum.load(Relaxed) as f64 / transfers as f64,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_into_classes_of_powers_of_two() {
        let counters = DeviceCounters::default();
        for len_bytes in [4096, 4097, 8191, 8192, 1 << 40] {
            counters.writes.add(len_bytes);
        }
        let writes = counters.read().writes;
        assert_eq!(
            (writes.count, writes.sizes[12], writes.sizes[13]),
            (5, 3, 1)
        );
        assert_eq!(writes.sizes[SIZE_CLASSES - 1], 1);
    }

    #[test]
    fn the_average_depth_is_what_each_transfer_saw() {
        let counters = DeviceCounters::default();
        counters.depart(2); // sees 1, 2
        counters.depart(2); // sees 3, 4
        counters.arrive(4);
        counters.depart(1); // sees 1
        (0..5).for_each(|_| counters.reads.add(512));
        let stats = counters.read();
        assert_eq!(stats.depth_max, 4);
        assert!((stats.depth_average - 11.0 / 5.0).abs() < 1e-9);
    }
}
