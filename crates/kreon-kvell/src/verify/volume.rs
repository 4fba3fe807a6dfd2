//! What is verified.

use std::ops::Range;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::Device;

use crate::format::{Classes, ExtentNo, ItemSeal};
use crate::partition::Partition;

/// The partitions of an open store, whoever drives them.
pub trait Partitions {
    /// How many there are.
    fn count(&self) -> usize;

    /// Lets `look` see a partition, which stays as it is meanwhile. `false`: there is none, or it was broken off.
    fn look(&self, partition: usize, look: &mut dyn FnMut(&Partition)) -> bool;
}

/// An open store, to be verified.
pub struct Volume<'a> {
    /// Its device.
    pub device: Arc<dyn Device>,
    /// Seeds the checksums.
    pub seal: ItemSeal,
    /// Sizes of slots.
    pub classes: Arc<Classes>,
    /// What is known of the device.
    pub partitions: &'a dyn Partitions,
    /// Sequence of the newest superblock that was written.
    pub sequence: &'a dyn Fn() -> u64,
    /// Extents that were ever taken into use are before this one.
    pub extents_end: ExtentNo,
    /// Reads in flight.
    pub depth: usize,
}

impl Volume<'_> {
    /// Looks at a partition.
    ///
    /// # Errors
    /// `Poisoned`: it was broken off.
    pub fn look<T>(&self, partition: u16, mut look: impl FnMut(&Partition) -> T) -> Result<T> {
        let mut seen = None;
        let is_there = self.partitions.look(partition.into(), &mut |partition| {
            seen = Some(look(partition));
        });
        let broken = || {
            let text = format!("partition {partition} was broken off: open the store again");
            Error::new(ErrorKind::Poisoned, text)
        };
        seen.filter(|_| is_there).ok_or_else(broken)
    }

    /// The numbers of all partitions.
    pub fn numbers(&self) -> Range<u16> {
        0..u16::try_from(self.partitions.count()).unwrap_or(u16::MAX)
    }
}
