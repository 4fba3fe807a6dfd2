//! The four superblock slots.
//!
//! A checkpoint writes the slot that its epoch names and flushes: from then on the new state counts.
//! Then it mirrors the same content into the other three, without waiting: any one good slot opens the
//! store. The slot that was written last and flushed is never the next to be written.

use kreon_base::{Bug, Epoch, Error, ErrorKind, PAGE_BYTES, PageNo, Result};
use kreon_device::Device;
use kreon_format::{BitmapBlock, SUPERBLOCK_PAGES, Superblock, SuperblockSlot, bitmap_page};

use super::page_io::{read_pages, write_pages};

/// The epoch of the checkpoint that ends the making of a store.
const FIRST_EPOCH: Epoch = Epoch(1);

/// What the slots say.
pub enum Found {
    /// Nothing was ever written here, or the making of a store was cut short before it was usable.
    Nothing,
    /// The newest durable state, and what is wrong with other slots.
    Store(Superblock, Vec<String>),
}

/// Reads the slots.
///
/// # Errors
/// `Corruption` if no slot is whole; `InvalidArgument` if this is no Kreon volume, or one of a newer
/// format.
pub fn read(device: &dyn Device) -> Result<Found> {
    if device.len_bytes() <= SUPERBLOCK_PAGES[3].offset_bytes() {
        return match device.len_bytes() {
            0 => Ok(Found::Nothing),
            len_bytes => Err(cut_off(device, len_bytes)?),
        };
    }
    let mut slots = examine(device)?;
    if slots
        .iter()
        .any(|slot| !matches!(slot, SuperblockSlot::Valid(_)))
    {
        // Perhaps it was read wrong, once: an older slot must not count because of that.
        slots = slots.into_iter().zip(examine(device)?).map(newer).collect();
    }
    let found = judge(slots)?;
    if matches!(found, Found::Nothing) {
        check_remains(device)?;
    }
    Ok(found)
}

/// Of two readings of a slot the one that verifies, and of two that do the newer one.
fn newer((first, second): (SuperblockSlot, SuperblockSlot)) -> SuperblockSlot {
    match (&first, &second) {
        (SuperblockSlot::Valid(one), SuperblockSlot::Valid(other)) if one.epoch > other.epoch => {
            first
        }
        (SuperblockSlot::Valid(_), second) if !matches!(second, SuperblockSlot::Valid(_)) => first,
        _ => second,
    }
}

fn examine(device: &dyn Device) -> Result<Vec<SuperblockSlot>> {
    let bytes = read_pages(device, &SUPERBLOCK_PAGES)?;
    let pages = bytes.pages().enumerate();
    Ok(pages
        .map(|(slot, page)| Superblock::examine(page, slot))
        .collect())
}

/// Blank slots are no proof that nothing was ever here: they may have been wiped. A store whose first
/// superblock did not become durable has left no bitmap block but one of the first epoch, in the first
/// copy.
///
/// # Errors
/// `Corruption` if there was a store.
fn check_remains(device: &dyn Device) -> Result<()> {
    let copies = [bitmap_page(0, 0), bitmap_page(0, 1)];
    if device.len_bytes() < copies[1].offset_bytes() + PAGE_BYTES as u64 {
        return Ok(());
    }
    let bytes = read_pages(device, &copies)?;
    let epochs = bytes.pages().map(BitmapBlock::claimed_epoch);
    for ((copy, page), epoch) in copies.into_iter().enumerate().zip(epochs) {
        if let Some(epoch) = epoch
            && (copy, epoch) != (0, FIRST_EPOCH)
        {
            return Err(Error::corruption(format!(
                "no superblock slot is whole, but {page} holds a bitmap block of {epoch}: a store was \
                 here, and is left untouched"
            )));
        }
    }
    Ok(())
}

fn judge(slots: Vec<SuperblockSlot>) -> Result<Found> {
    let (mut best, mut blank, mut wrong): (Option<Superblock>, _, _) = (None, 0, Vec::new());
    let (mut is_foreign, mut newer) = (false, None);
    for (number, slot) in slots.into_iter().enumerate() {
        match slot {
            SuperblockSlot::Valid(found) if best.is_none_or(|b| b.epoch < found.epoch) => {
                best = Some(found);
            }
            SuperblockSlot::Valid(_) => {}
            SuperblockSlot::Blank => blank += 1,
            SuperblockSlot::Foreign => {
                is_foreign = true;
                wrong.push(format!("superblock slot {number}: not a superblock"));
            }
            SuperblockSlot::Newer { version } => newer = Some(version),
            SuperblockSlot::Damaged(error) => wrong.push(error.to_string()),
        }
    }
    if let Some(version) = newer {
        return Err(Error::invalid(format!(
            "the store was written by a newer format, {version}; this build reads up to {}",
            kreon_format::FORMAT_VERSION
        )));
    }
    match best {
        Some(superblock) => Ok(Found::Store(superblock, wrong)),
        None if blank == SUPERBLOCK_PAGES.len() => Ok(Found::Nothing),
        // The first slot of a new store is written alone; torn, it stands before three blank ones, and
        // nothing was promised yet.
        None if blank == SUPERBLOCK_PAGES.len() - 1 && !is_foreign => Ok(Found::Nothing),
        None if is_foreign => Err(foreign()),
        None => Err(Error::corruption(format!(
            "no superblock slot is whole: {}",
            wrong.join("; ")
        ))),
    }
}

/// What to say of a device that ends within the slots: it may be the start of a store.
fn cut_off(device: &dyn Device, len_bytes: u64) -> Result<Error> {
    let whole = |page: &&PageNo| page.offset_bytes() + PAGE_BYTES as u64 <= len_bytes;
    let pages: Vec<PageNo> = SUPERBLOCK_PAGES.iter().filter(whole).copied().collect();
    let bytes = read_pages(device, &pages)?;
    let is_ours = |(slot, bytes)| {
        let examined = Superblock::examine(bytes, slot);
        matches!(
            examined,
            SuperblockSlot::Valid(_) | SuperblockSlot::Newer { .. }
        )
    };
    if bytes.pages().enumerate().any(is_ours) {
        return Ok(Error::corruption(format!(
            "the volume was cut off after {len_bytes} bytes, between its superblock slots"
        )));
    }
    Ok(foreign())
}

fn foreign() -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        "there is something here that is not a Kreon store; it was left untouched",
    )
}

/// The newest state that a whole slot tells, and what is wrong with slots, those too that tell an
/// older state: the device lost a write or put an old one back.
///
/// # Errors
/// `Io`.
pub fn inspect(device: &dyn Device) -> Result<(Option<Superblock>, Vec<String>)> {
    let bytes = read_pages(device, &SUPERBLOCK_PAGES)?;
    let decoded: Vec<_> = bytes
        .pages()
        .enumerate()
        .map(|(slot, b)| Superblock::decode(b, slot))
        .collect();
    let newest = decoded
        .iter()
        .flatten()
        .copied()
        .max_by_key(|found| found.epoch);
    let mut wrong = Vec::new();
    for (number, slot) in decoded.iter().enumerate() {
        match slot {
            Ok(found) if newest.is_some_and(|newest| newest.epoch != found.epoch) => {
                wrong.push(format!(
                    "superblock slot {number} is of the older {}",
                    found.epoch
                ));
            }
            Ok(_) => {}
            Err(error) => wrong.push(format!("superblock slot {number}: {error}")),
        }
    }
    Ok((newest, wrong))
}

/// Writes the slot that counts from now on, and flushes. All that it reaches must be durable.
pub fn commit(device: &dyn Device, superblock: &Superblock) -> Result<()> {
    let slot = superblock.epoch.0 as usize % SUPERBLOCK_PAGES.len();
    write_pages(device, &[(SUPERBLOCK_PAGES[slot], superblock.encode(slot))])?;
    match Bug::FlushSkippedAfterSuperblock.is_planted() {
        true => Ok(()),
        false => device.flush(),
    }
}

/// Writes the same content into the other slots.
pub fn mirror(device: &dyn Device, superblock: &Superblock) -> Result<()> {
    let committed = superblock.epoch.0 as usize % SUPERBLOCK_PAGES.len();
    let others: Vec<_> = (0..SUPERBLOCK_PAGES.len())
        .filter(|slot| *slot != committed)
        .map(|slot| (SUPERBLOCK_PAGES[slot], superblock.encode(slot)))
        .collect();
    write_pages(device, &others)
}
