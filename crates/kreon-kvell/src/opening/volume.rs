//! The superblock of a device.

use std::hash::{BuildHasher, RandomState};

use kreon_base::{Error, ErrorKind, PAGE_BYTES, PageBytes, Result, planted};
use kreon_device::{AlignedBuf, Device};
use kreon_format::StoreId;

use super::settings::Opening;
use crate::format::{
    ATOMIC_BYTES_MIN, Classes, EXTENT_BYTES, INCARNATION_MAX, SUPERBLOCK_SLOTS, State, Superblock,
    Timestamp, foreign, is_known, newest,
};
use crate::space::Superblocks;

/// Bytes of all slots of the superblock.
const SLOTS_BYTES: usize = SUPERBLOCK_SLOTS * PAGE_BYTES;

/// The newest superblock of `device`; of a new store, if the first pages are blank.
pub fn find_or_create(device: &dyn Device, options: &Opening) -> Result<Superblock> {
    let found = match found(device) {
        Err(error)
            if options.creates && options.formats && error.kind() == ErrorKind::InvalidArgument =>
        {
            wipe(device, error)?;
            None
        }
        found => found?,
    };
    let mut superblock = match found {
        Some(superblock) => superblock,
        None if options.creates => create(device, options)?,
        None => {
            let text = "there is no store here, and none is to be made";
            return Err(Error::new(ErrorKind::NotFound, text));
        }
    };
    // Not told by the first builds.
    if superblock.extents_end == 0 {
        superblock.extents_end = extents_of(device);
    }
    Ok(superblock)
}

/// Extents that the device has room for as long as it is now, extent 0 included.
pub fn extents_of(device: &dyn Device) -> u32 {
    u32::try_from(device.len_bytes() / EXTENT_BYTES as u64).unwrap_or(u32::MAX)
}

fn found(device: &dyn Device) -> Result<Option<Superblock>> {
    match device.len_bytes() {
        0 => Ok(None),
        // A creation makes the device longer before it writes.
        short if short < SLOTS_BYTES as u64 => Err(foreign()),
        _ => newest(&read_pages(device)?),
    }
}

fn read_pages(device: &dyn Device) -> Result<[PageBytes; SUPERBLOCK_SLOTS]> {
    let mut bytes = AlignedBuf::new(SLOTS_BYTES);
    device.read_at(0, &mut bytes)?;
    let mut slots = [[0; PAGE_BYTES]; SUPERBLOCK_SLOTS];
    let (pages, _): (&[PageBytes], _) = bytes.as_chunks();
    for (slot, page) in slots.iter_mut().zip(pages) {
        *slot = *page;
    }
    Ok(slots)
}

/// Makes the slots blank, durably: a power cut in the midst of the creation leaves no superblock beside other content. Fails
/// with `refusal` if there is a volume of a known engine.
fn wipe(device: &dyn Device, refusal: Error) -> Result<()> {
    if device.len_bytes() < SLOTS_BYTES as u64 {
        device.grow(EXTENT_BYTES as u64)?;
    } else if read_pages(device)?.iter().any(is_known) {
        return Err(refusal);
    }
    device.write_at(0, &AlignedBuf::new(SLOTS_BYTES))?;
    device.flush()
}

/// A device whose first pages are blank becomes a store. What is behind them does not matter: no extent is in use.
fn create(device: &dyn Device, options: &Opening) -> Result<Superblock> {
    check_block(device, options.atomic_bytes)?;
    // Before anything is written: a superblock with such a unit would be taken for a damaged one.
    Classes::new(options.atomic_bytes)?;
    if options.atomic_bytes > ATOMIC_BYTES_MIN {
        let atomic_bytes = options.atomic_bytes;
        tracing::warn!(
            atomic_bytes,
            "a power cut on a device that tears so many bytes damages items"
        );
    }
    let random = || StoreId(RandomState::new().hash_one(std::process::id()));
    let superblock = Superblock {
        store: options.store.unwrap_or_else(random),
        sequence: 0,
        incarnation: 0,
        extents_end: 1,
        atomic_bytes: options.atomic_bytes as u32,
        index_key_bytes: options.index_key_bytes as u16,
        state: State::Dirty,
        image: None,
        durable: vec![Timestamp::default(); usize::from(options.partitions)],
    };
    if device.len_bytes() < EXTENT_BYTES as u64 {
        device.grow(EXTENT_BYTES as u64)?;
    }
    // Later superblocks must not find the disk full.
    device.allocate(0, SLOTS_BYTES as u64)?;
    let mut page = AlignedBuf::new(PAGE_BYTES);
    page.copy_from_slice(&superblock.encode()[..]);
    device.write_at(superblock.offset(), &page)?;
    device.flush()?;
    Ok(superblock)
}

/// Cells are read and written in units of `atomic_bytes`.
pub fn check_block(device: &dyn Device, atomic_bytes: usize) -> Result<()> {
    let block_bytes = device.block_bytes();
    if block_bytes as usize <= atomic_bytes {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the store's atomic_bytes are {atomic_bytes}, less than the device's block of {block_bytes} bytes"
    )))
}

/// The superblock of this opening. Its incarnation is newer than all on the device, even if a newer superblock was lost
/// to damage. Returns that incarnation.
pub fn bump(superblocks: &Superblocks, newest: u32) -> Result<u32> {
    let found = superblocks.newest();
    let incarnation = found.incarnation.max(newest) + 1;
    planted!(TimestampReused => let incarnation = found.incarnation.max(1));
    if incarnation > INCARNATION_MAX {
        return Err(Error::invalid(
            "the store was opened 2^24 times: copy it into a new one",
        ));
    }
    superblocks.write(|superblock| {
        superblock.incarnation = incarnation;
        superblock.state = State::Dirty;
        superblock.image = None;
    })?;
    Ok(incarnation)
}
