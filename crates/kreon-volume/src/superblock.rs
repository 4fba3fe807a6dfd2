//! The four superblock slots.
//!
//! A checkpoint writes the slot that its epoch names and flushes: from then on the new state counts.
//! Then it mirrors the same content into the other three slots without a flush: any one good slot opens the
//! store. The slot of the last flush is never the next to be written.

use kreon_base::{Error, PageNo, Result, planted};
use kreon_device::Device;
use kreon_format::{SUPERBLOCK_PAGES, Superblock, SuperblockSlot};

use super::creation::is_unfinished;
use super::page_io::{is_there, read_pages, write_pages};

/// What the slots say.
pub enum Found {
    /// No byte was ever written here, or the creation of a store was cut short.
    Nothing,
    /// The newest durable state, and what is wrong with other slots.
    Store(Superblock, Vec<String>),
    /// Something else, which is formatted only on request. What the slots tell, if they bear marks of a store.
    Other(Option<String>),
}

/// Reads the slots.
///
/// # Errors
/// `InvalidArgument` if the store is of a newer format; `Io`.
pub fn read(device: &dyn Device) -> Result<Found> {
    if device.len_bytes() == 0 {
        return Ok(Found::Nothing);
    }
    let found = match is_there(device, SUPERBLOCK_PAGES[3]) {
        true => judge(examine_twice(device)?)?,
        false => Found::Other(cut_off(device)?),
    };
    match found {
        Found::Other(_) if is_unfinished(device)? => Ok(Found::Nothing),
        found => Ok(found),
    }
}

fn examine_twice(device: &dyn Device) -> Result<Vec<SuperblockSlot>> {
    let slots = examine(device, &SUPERBLOCK_PAGES)?;
    let is_valid = |slot: &SuperblockSlot| matches!(slot, SuperblockSlot::Valid(_));
    if slots.iter().all(is_valid) {
        return Ok(slots);
    }
    // A transient read error must not make an older slot count.
    let again = examine(device, &SUPERBLOCK_PAGES)?;
    Ok(slots.into_iter().zip(again).map(newer).collect())
}

/// The reading of a slot that verifies; if both do, the newer one.
fn newer((first, second): (SuperblockSlot, SuperblockSlot)) -> SuperblockSlot {
    match (&first, &second) {
        (SuperblockSlot::Valid(one), SuperblockSlot::Valid(other)) if one.epoch > other.epoch => {
            first
        }
        (SuperblockSlot::Valid(_), second) if !matches!(second, SuperblockSlot::Valid(_)) => first,
        _ => second,
    }
}

fn examine(device: &dyn Device, pages: &[PageNo]) -> Result<Vec<SuperblockSlot>> {
    let bytes = read_pages(device, pages)?;
    let pages = bytes.pages().enumerate();
    Ok(pages
        .map(|(slot, page)| Superblock::examine(page, slot))
        .collect())
}

fn judge(slots: Vec<SuperblockSlot>) -> Result<Found> {
    let (mut best, mut wrong): (Option<Superblock>, Vec<String>) = (None, Vec::new());
    let (mut is_marked, mut newer) = (false, None);
    for (number, slot) in slots.into_iter().enumerate() {
        match slot {
            SuperblockSlot::Valid(found) if best.is_none_or(|b| b.epoch < found.epoch) => {
                best = Some(found);
            }
            SuperblockSlot::Valid(_) | SuperblockSlot::Blank => {}
            SuperblockSlot::Foreign => {
                wrong.push(format!("superblock slot {number}: not a superblock"));
            }
            SuperblockSlot::Newer { version } => newer = Some(version),
            SuperblockSlot::Damaged(error) => {
                is_marked = true;
                wrong.push(error.to_string());
            }
        }
    }
    if let Some(version) = newer {
        return Err(Error::invalid(format!(
            "the store was written by a newer format, {version}; this build reads up to {}",
            kreon_format::FORMAT_VERSION
        )));
    }
    let told = || format!("no superblock slot is whole: {}", wrong.join("; "));
    match best {
        Some(superblock) => Ok(Found::Store(superblock, wrong)),
        None => Ok(Found::Other(is_marked.then(told))),
    }
}

/// What the slots tell of a store if the device ends among them.
fn cut_off(device: &dyn Device) -> Result<Option<String>> {
    let pages = SUPERBLOCK_PAGES.iter().copied();
    let pages: Vec<PageNo> = pages.filter(|page| is_there(device, *page)).collect();
    let slots = examine(device, &pages)?;
    let is_ours =
        |slot: &SuperblockSlot| !matches!(slot, SuperblockSlot::Blank | SuperblockSlot::Foreign);
    Ok(slots.iter().any(is_ours).then(|| {
        format!(
            "the volume was cut off after {} bytes, between its superblock slots",
            device.len_bytes()
        )
    }))
}

/// The newest state of a whole slot, and what is wrong with the slots. A slot with an older state is wrong, too: the
/// device lost a write or restored old content.
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

/// Writes the slot that counts from now on, and flushes. Everything that it reaches must be durable before.
pub fn commit(device: &dyn Device, superblock: &Superblock) -> Result<()> {
    let slot = superblock.epoch.0 as usize % SUPERBLOCK_PAGES.len();
    write_pages(device, &[(SUPERBLOCK_PAGES[slot], superblock.encode(slot))])?;
    planted!(FlushSkippedAfterSuperblock => return Ok(()));
    device.flush()
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
