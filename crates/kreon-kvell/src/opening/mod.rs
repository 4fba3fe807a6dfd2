//! Opens a store: creates it, or finds what is on the device.
//!
//! - `settings`: what a store is created with, and opened with
//! - `volume`: the superblock of a device, found or created
//! - `image`: what a clean close writes for the next opening
//! - `read`: all extents, read into the partitions that own them
//! - `share`: what one thread reads of them
//! - `in_order`: pieces of the device in their order, at depth
//! - `threads`: work that is shared out

mod image;
mod in_order;
mod read;
mod settings;
mod share;
mod threads;
mod volume;

use std::sync::Arc;

use kreon_base::Result;
use kreon_device::{AlignedBuf, Device};

pub use self::image::{ImageWriter, write_last};
use self::image::{by_image, image_of};
pub use self::read::read_extents;
pub use self::settings::Opening;
pub use self::share::Sink;
use self::share::at_once;
pub use self::threads::shared_out;
pub use self::volume::extents_of;
use self::volume::{bump, check_block, find_or_create};
use crate::format::{Classes, ImagePlace, ItemSeal, Superblock, Timestamp};
use crate::partition::{Allowance, Partition, Recovery, Surroundings};
use crate::space::{Extents, FlushClock, FoundExtents, Place, Superblocks};

/// An open store without drivers.
pub struct Opened {
    pub device: Arc<dyn Device>,
    pub superblocks: Arc<Superblocks>,
    pub clock: Arc<FlushClock>,
    pub extents: Arc<Extents>,
    pub partitions: Vec<Partition>,
}

/// Opens the store on `device`, or creates one if the first pages of the device are blank, whatever is behind them.
pub fn open(device: Arc<dyn Device>, options: &Opening) -> Result<Opened> {
    let superblock = find_or_create(&*device, options)?;
    check_block(&*device, superblock.atomic_bytes as usize)?;
    let classes = Arc::new(Classes::new(superblock.atomic_bytes as usize)?);
    let (mut recoveries, found) = find(&device, &superblock, &classes, options)?;
    // What was read may not be durable yet: after this flush it is, so it can be believed.
    for place in recoveries.iter_mut().flat_map(Recovery::torn) {
        wipe(&*device, &place, classes.atomic_bytes())?;
    }
    device.flush()?;
    let newest = recoveries.iter().map(|it| it.newest().incarnation()).max();
    let clock = Arc::new(FlushClock::default());
    let image = image_of(&superblock);
    let superblocks = Superblocks::new(Arc::clone(&device), Arc::clone(&clock), superblock);
    let incarnation = bump(&superblocks, newest.unwrap_or_default())?;
    let superblocks = Arc::new(superblocks);
    let is_there = |it: &ImagePlace| it.offset.saturating_add(it.bytes) <= device.len_bytes();
    if let Some(image) = image.filter(is_there) {
        // No superblock names it any more.
        device.discard(image.offset, image.bytes)?;
    }
    let extents = Arc::new(Extents::new(
        Arc::clone(&device),
        Arc::clone(&superblocks),
        found,
        (Arc::clone(&clock), options.is_lossless),
    ));
    let last = Timestamp::new(incarnation, 0);
    let around = |partition| Surroundings {
        partition,
        source: Arc::clone(&extents) as _,
        clock: Arc::clone(&clock),
        memory_bytes: options.memory_bytes / recoveries.len().max(1),
        is_lossless: options.is_lossless,
    };
    let around: Vec<Surroundings> = (0..recoveries.len() as u16).map(around).collect();
    // A cache lays its tables out, which takes as long as its memory is large.
    let partitions = shared_out(
        recoveries.into_iter().zip(around),
        options.threads,
        |(recovery, around)| Ok(Partition::new(recovery.finish(last, around))),
    )?;
    Ok(Opened {
        partitions,
        device,
        superblocks,
        clock,
        extents,
    })
}

/// What is on the device: by the image of the index if there is one of use, else by reading everything.
fn find(
    device: &Arc<dyn Device>,
    superblock: &Superblock,
    classes: &Arc<Classes>,
    options: &Opening,
) -> Result<(Vec<Recovery>, FoundExtents)> {
    let (store, index_key_bytes) = (superblock.store, options.index_key_bytes);
    let seal = ItemSeal { store };
    let at_once = at_once(options.threads, superblock.durable.len());
    let recoveries = || -> Vec<Recovery> {
        let allowance = Arc::new(Allowance::new(options.memory_bytes, at_once));
        let new = |&mark| {
            let (classes, allowance) = (Arc::clone(classes), Arc::clone(&allowance));
            Recovery::new(seal, classes, index_key_bytes, mark, allowance)
        };
        superblock.durable.iter().map(new).collect()
    };
    if let Some(restored) = by_image(
        device,
        superblock,
        (index_key_bytes, options.threads),
        recoveries,
    ) {
        return Ok(restored);
    }
    let (end, mut recoveries) = (superblock.extents_end, recoveries());
    let found = read_extents(device, seal, end, options.threads, &mut recoveries)?;
    Ok((recoveries, found))
}

/// Fills the beginning of a slot with zeroes, as much as is never torn.
fn wipe(device: &dyn Device, place: &Place, atomic_bytes: usize) -> Result<()> {
    let mut unit = AlignedBuf::new(atomic_bytes);
    let offset = place.slot.offset - place.at as u64;
    if place.is_shared {
        device.read_at(offset, &mut unit)?;
        let slot = place.at..place.at + place.slot.bytes as usize;
        unit.get_mut(slot).unwrap_or(&mut []).fill(0);
    }
    device.write_at(offset, &unit)
}
