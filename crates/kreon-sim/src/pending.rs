//! Writes that a power cut may undo: begun, but not settled by a flush.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use crate::SECTOR_BYTES;
use crate::history::Content;
use crate::image::Image;
use crate::survival::{Survival, Version};

const SECTOR: u64 = SECTOR_BYTES as u64;

/// A write, discard or growth that a power cut may undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingWrite {
    /// Its number.
    pub write: u64,
    /// Where it goes, in bytes; for a growth the new length.
    pub offset: u64,
    /// How many sectors it has; 0 for a growth.
    pub sectors: u64,
}

/// All pending writes, by sector.
#[derive(Clone, Default)]
pub(crate) struct Pending {
    writes: BTreeMap<u64, Write>,
    /// Numbers of the writes to each sector, in order; never empty.
    sectors: BTreeMap<u64, Vec<u64>>,
    /// Numbers of the growths, in order.
    growths: Vec<u64>,
}

#[derive(Clone)]
struct Write {
    offset: u64,
    /// `None`: a growth to `offset`.
    content: Option<Content>,
    /// How many of its sectors may still show.
    open_sectors: u64,
}

impl Write {
    fn sectors(&self) -> std::ops::Range<u64> {
        let len_bytes = self.content.as_ref().map_or(0, Content::len_bytes);
        self.offset / SECTOR..self.offset.saturating_add(len_bytes).div_ceil(SECTOR)
    }
}

impl Pending {
    /// A write began.
    pub(crate) fn write(&mut self, number: u64, offset: u64, content: Content) {
        let mut write = Write {
            offset,
            content: Some(content),
            open_sectors: 0,
        };
        for sector in write.sectors() {
            self.sectors.entry(sector).or_default().push(number);
            write.open_sectors += 1;
        }
        if write.open_sectors != 0 {
            self.writes.insert(number, write);
        }
    }

    /// The device grew.
    pub(crate) fn grow(&mut self, number: u64, len_bytes: u64) {
        let offset = len_bytes;
        let growth = Write {
            offset,
            content: None,
            open_sectors: 0,
        };
        self.writes.insert(number, growth);
        self.growths.push(number);
    }

    /// The writes in `covered` are durable: they go into `image`. Older ones to the same sectors can
    /// no longer show.
    pub(crate) fn settle(&mut self, covered: &HashSet<u64>, image: &mut Image) {
        if let Some(last) = self.growths.iter().rposition(|n| covered.contains(n)) {
            if let Some(growth) = self.growths.get(last).and_then(|n| self.writes.get(n)) {
                image.set_len(growth.offset);
            }
            for number in self.growths.drain(..=last) {
                self.writes.remove(&number);
            }
        }
        let touched: HashSet<u64> = covered
            .iter()
            .filter_map(|number| self.writes.get(number))
            .flat_map(Write::sectors)
            .collect();
        for sector in touched {
            self.settle_sector(sector, covered, image);
        }
    }

    fn settle_sector(&mut self, sector: u64, covered: &HashSet<u64>, image: &mut Image) {
        let Some(versions) = self.sectors.get_mut(&sector) else {
            return;
        };
        let Some(last) = versions.iter().rposition(|n| covered.contains(n)) else {
            return;
        };
        if let Some(write) = versions.get(last).and_then(|n| self.writes.get(n)) {
            put_sector(image, sector, write);
        }
        for number in versions.drain(..=last) {
            if let Entry::Occupied(mut write) = self.writes.entry(number) {
                write.get_mut().open_sectors -= 1;
                if write.get().open_sectors == 0 {
                    write.remove();
                }
            }
        }
        if versions.is_empty() {
            self.sectors.remove(&sector);
        }
    }

    /// Adds to `image`, which holds what is durable, what `survival` chooses.
    pub(crate) fn survive(&self, survival: &mut dyn Survival, image: &mut Image) {
        if !self.growths.is_empty() {
            let versions: Vec<_> = self.growths.iter().map(|&n| version(n, 0)).collect();
            let chosen = survival.length(&versions);
            let growth = chosen.and_then(|index| self.growths.get(index));
            if let Some(growth) = growth.and_then(|n| self.writes.get(n)) {
                image.set_len(growth.offset);
            }
        }
        let mut versions = Vec::new();
        for (&sector, numbers) in &self.sectors {
            versions.clear();
            versions.extend(numbers.iter().filter_map(|&number| {
                let first = self.writes.get(&number)?.sectors().start;
                Some(version(number, sector - first))
            }));
            let chosen = survival.sector(sector, &versions);
            let chosen = chosen.and_then(|index| versions.get(index));
            if let Some(write) = chosen.and_then(|v| self.writes.get(&v.write)) {
                put_sector(image, sector, write);
            }
        }
    }

    /// The pending writes in order.
    pub(crate) fn list(&self) -> Vec<PendingWrite> {
        let pending = |(&number, write): (&u64, &Write)| PendingWrite {
            write: number,
            offset: write.offset,
            sectors: write.content.as_ref().map_or(0, |_| {
                let sectors = write.sectors();
                sectors.end - sectors.start
            }),
        };
        self.writes.iter().map(pending).collect()
    }

    /// The sectors with more than one possible content, and how many each has.
    pub(crate) fn choices(&self) -> Vec<(u64, usize)> {
        let choices = |(&sector, numbers): (&u64, &Vec<u64>)| (sector, numbers.len() + 1);
        self.sectors.iter().map(choices).collect()
    }
}

fn version(write: u64, sector_of_write: u64) -> Version {
    Version {
        write,
        sector_of_write,
    }
}

/// Puts one sector of `write` into `image`.
fn put_sector(image: &mut Image, sector: u64, write: &Write) {
    let offset = sector * SECTOR;
    match &write.content {
        Some(Content::Bytes(bytes)) => {
            let from = offset.saturating_sub(write.offset) as usize;
            let to = (from + SECTOR_BYTES).min(bytes.len());
            if let Some(part) = bytes.get(from..to) {
                image.write(offset, part);
            }
        }
        Some(Content::Zeroes(_)) => image.zero(offset, SECTOR),
        None => {}
    }
}
