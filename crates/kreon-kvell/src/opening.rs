//! Opens a store: creates it, or finds what is on the device.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use kreon_base::{Error, PAGE_BYTES, PageBytes, Result, planted};
use kreon_device::{AlignedBuf, Device};
use kreon_format::StoreId;

use crate::format::{
    Classes, EXTENT_BYTES, EXTENT_HEADER_BYTES, ExtentHeader, ExtentNo, FoundExtent,
    INCARNATION_MAX, ItemSeal, SUPERBLOCK_SLOTS, SectorBytes, State, Superblock, Timestamp, newest,
};
use crate::partition::{Partition, Recovery, Surroundings};
use crate::space::{Extents, FlushClock};

/// What a store is created with, and opened with.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Of a new store.
    pub partitions: u16,
    /// Of a new store: the largest write in bytes that a power cut does not tear.
    pub atomic_bytes: usize,
    /// Bytes of each key that stand in the index.
    pub index_key_bytes: usize,
    pub memory_bytes: usize,
    pub is_lossless: bool,
    /// Of a new store; random if `None`.
    pub store: Option<StoreId>,
}

/// An open store without drivers.
pub struct Opened {
    pub device: Arc<dyn Device>,
    pub superblock: Superblock,
    pub clock: Arc<FlushClock>,
    pub extents: Arc<Extents>,
    pub partitions: Vec<Partition>,
}

/// Opens the store on `device`, or creates one if the device is blank.
pub fn open(device: Arc<dyn Device>, options: &Opening) -> Result<Opened> {
    let superblock = match read_superblock(&*device)? {
        Some(superblock) => superblock,
        None => create(&*device, options)?,
    };
    check_block(&*device, superblock.atomic_bytes as usize)?;
    let seal = ItemSeal {
        store: superblock.store,
    };
    let classes = Arc::new(Classes::new(superblock.atomic_bytes as usize)?);
    let marks = superblock.durable.iter();
    let mut recoveries: Vec<Recovery> = marks
        .map(|&mark| Recovery::new(seal, Arc::clone(&classes), options.index_key_bytes, mark))
        .collect();
    let found = read_extents(&*device, seal, &mut recoveries)?;
    // What was read may not be durable yet: after this flush it is, so it can be believed.
    for place in recoveries.iter().flat_map(|it| it.torn()) {
        let zeroes = AlignedBuf::new(classes.atomic_bytes());
        device.write_at(place.slot.offset, &zeroes)?;
    }
    device.flush()?;
    let newest = recoveries.iter().map(|it| it.newest().incarnation()).max();
    let superblock = bump(&*device, superblock, newest.unwrap_or_default())?;
    let clock = Arc::new(FlushClock::default());
    let extents = Arc::new(Extents::new(
        Arc::clone(&device),
        seal,
        found.free,
        found.end,
        found.sequence,
        Arc::clone(&clock),
    ));
    let last = Timestamp::new(superblock.incarnation, 0);
    let each_bytes = options.memory_bytes / recoveries.len().max(1);
    let partitions = (0..).zip(recoveries).map(|(partition, recovery)| {
        let around = Surroundings {
            partition,
            source: Arc::clone(&extents) as _,
            clock: Arc::clone(&clock),
            memory_bytes: each_bytes,
            is_lossless: options.is_lossless,
        };
        Partition::new(recovery.finish(last, around))
    });
    Ok(Opened {
        partitions: partitions.collect(),
        device,
        superblock,
        clock,
        extents,
    })
}

/// Writes the next superblock and flushes. Its marks must be durable.
pub fn write_superblock(device: &dyn Device, superblock: &Superblock) -> Result<()> {
    let mut page = AlignedBuf::new(PAGE_BYTES);
    page.copy_from_slice(&superblock.encode()[..]);
    device.write_at(superblock.offset(), &page)?;
    device.flush()
}

/// Extents of a device.
#[derive(Default)]
struct FoundExtents {
    free: Vec<ExtentNo>,
    /// None in use from here on.
    end: u32,
    sequence: u64,
}

fn read_superblock(device: &dyn Device) -> Result<Option<Superblock>> {
    if device.len_bytes() < (SUPERBLOCK_SLOTS * PAGE_BYTES) as u64 {
        return Ok(None);
    }
    let mut bytes = AlignedBuf::new(SUPERBLOCK_SLOTS * PAGE_BYTES);
    device.read_at(0, &mut bytes)?;
    let mut slots = [[0; PAGE_BYTES]; SUPERBLOCK_SLOTS];
    let (pages, _): (&[PageBytes], _) = bytes.as_chunks();
    for (slot, page) in slots.iter_mut().zip(pages) {
        *slot = *page;
    }
    newest(&slots)
}

fn create(device: &dyn Device, options: &Opening) -> Result<Superblock> {
    check_block(device, options.atomic_bytes)?;
    let random = || StoreId(RandomState::new().hash_one(std::process::id()));
    let superblock = Superblock {
        store: options.store.unwrap_or_else(random),
        sequence: 0,
        incarnation: 0,
        extents_end: 0,
        atomic_bytes: options.atomic_bytes as u32,
        index_key_bytes: options.index_key_bytes as u16,
        state: State::Dirty,
        image: None,
        durable: vec![Timestamp::default(); usize::from(options.partitions)],
    };
    if device.len_bytes() < EXTENT_BYTES as u64 {
        device.grow(EXTENT_BYTES as u64)?;
    }
    write_superblock(device, &superblock)?;
    Ok(superblock)
}

/// Cells are read and written in units of `atomic_bytes`.
fn check_block(device: &dyn Device, atomic_bytes: usize) -> Result<()> {
    let block_bytes = device.block_bytes();
    if block_bytes as usize <= atomic_bytes {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the store's atomic_bytes are {atomic_bytes}, less than the device's block of {block_bytes} bytes"
    )))
}

/// The superblock of this opening. Its incarnation is newer than all on the device, even if a newer superblock was lost
/// to damage.
fn bump(device: &dyn Device, mut superblock: Superblock, newest: u32) -> Result<Superblock> {
    let incarnation = superblock.incarnation.max(newest) + 1;
    planted!(TimestampReused => let incarnation = superblock.incarnation.max(1));
    if incarnation > INCARNATION_MAX {
        return Err(Error::invalid(
            "the store was opened 2^24 times: copy it into a new one",
        ));
    }
    superblock.incarnation = incarnation;
    superblock.sequence += 1;
    superblock.state = State::Dirty;
    superblock.image = None;
    write_superblock(device, &superblock)?;
    Ok(superblock)
}

/// Reads all extents into the partitions that own them.
fn read_extents(
    device: &dyn Device,
    seal: ItemSeal,
    recoveries: &mut [Recovery],
) -> Result<FoundExtents> {
    let count = u32::try_from(device.len_bytes() / EXTENT_BYTES as u64).unwrap_or(u32::MAX);
    let mut found = FoundExtents {
        end: 1,
        ..FoundExtents::default()
    };
    let mut bytes = AlignedBuf::new(EXTENT_BYTES);
    let mut blank = BTreeMap::new();
    for extent in (1..count).map(ExtentNo) {
        if device.is_blank(extent.offset(), EXTENT_BYTES as u64) {
            blank.insert(extent, ());
            continue;
        }
        device.read_at(extent.offset(), &mut bytes)?;
        let Some(sector) = bytes.first_chunk::<EXTENT_HEADER_BYTES>() else {
            continue;
        };
        match decode_header(sector, seal, extent)? {
            None => {
                blank.insert(extent, ());
            }
            Some(header) => {
                found.end = extent.0 + 1;
                found.sequence = found.sequence.max(header.sequence);
                let partition = recoveries.get_mut(usize::from(header.partition));
                let unknown = || Error::corruption(format!("{extent} belongs to no partition"));
                partition.ok_or_else(unknown)?.take_in(&header, &bytes)?;
            }
        }
    }
    found.free = blank
        .into_keys()
        .filter(|extent| extent.0 < found.end)
        .collect();
    Ok(found)
}

fn decode_header(
    sector: &SectorBytes,
    seal: ItemSeal,
    extent: ExtentNo,
) -> Result<Option<ExtentHeader>> {
    match ExtentHeader::decode(sector, seal.store, extent) {
        FoundExtent::Blank => Ok(None),
        FoundExtent::Bad(error) => Err(error),
        FoundExtent::Header(header) => Ok(Some(header)),
    }
}
