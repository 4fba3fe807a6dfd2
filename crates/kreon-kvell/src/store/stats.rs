//! Figures of a store.

use kreon_device::DeviceStats;

/// What a store holds and takes. Partitions are looked at one after the other, so beside writers the sums are of no single
/// moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Keys of all regions, with those of the names of regions.
    pub keys: u64,
    /// Memory of the indexes in bytes.
    pub index_bytes: u64,
    /// Memory of indexes, caches, slots and transfers in bytes.
    pub memory_bytes: u64,
    /// Outdated items on the device, which new ones will overwrite.
    pub outdated_items: u64,
    /// Tombstones on the device that something depends on.
    pub tombstones: u64,
    /// Keys whose value is longer than a slot, and so lies in parts.
    pub large_values: u64,
    /// Parts of such values on the device, each in a slot of up to 255 KiB, with the outdated ones.
    pub parts: u64,
    /// Parts among them of outdated values: their slots are free when the successor is durable and nobody reads them.
    pub outdated_parts: u64,
    /// Extents of 1 MiB in use.
    pub extents: u64,
    /// Extents that were given back, for any class of sizes.
    pub free_extents: u64,
    /// Transfers and flushes of the device since it was opened, those of the recovery included.
    pub device: DeviceStats,
}
