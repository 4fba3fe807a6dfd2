//! The four slots of the superblock.
//!
//! A commit writes the next slot in turn and flushes: from then on the new state counts. Then the other slots get the same
//! content without a flush: any good one opens the store. The slot of the last flush is never the next to be written.

use kreon_base::{Error, ErrorKind, PageBytes, Result};
use kreon_device::Device;
use kreon_format::SUPERBLOCK_PAGES;
use kreon_volume::creation;
use kreon_volume::page_io::{is_there, read_pages, write_pages};

use crate::format::{Superblock, slot_of};

/// What a device holds.
pub(super) enum Found {
    /// Nothing, or a store whose creation was cut short.
    Nothing,
    /// A store, and its newest durable state.
    Store(Superblock),
}

/// Reads the slots.
///
/// # Errors
/// `InvalidArgument` if the device holds something else; `Corruption` if no slot is whole; `Io`.
pub(super) fn read(device: &dyn Device) -> Result<Found> {
    if device.len_bytes() == 0 {
        return Ok(Found::Nothing);
    }
    let error = match is_there(device, SUPERBLOCK_PAGES[3]) {
        true => {
            // A read error that passes must not make an older slot count.
            let (first, second) = (newest(device)?, newest(device)?);
            match [first, second] {
                [Ok(one), Ok(other)] if one.commit > other.commit => return Ok(Found::Store(one)),
                [_, Ok(found)] | [Ok(found), _] => return Ok(Found::Store(found)),
                [Err(error), Err(_)] => error,
            }
        }
        false => Error::invalid("the device holds something else than a store of tucana"),
    };
    match creation::is_unfinished(device)? {
        true => Ok(Found::Nothing),
        false => Err(error),
    }
}

/// The newest whole slot, or why there is none.
///
/// # Errors
/// `Io`.
fn newest(device: &dyn Device) -> Result<Result<Superblock>> {
    let read = read_pages(device, &SUPERBLOCK_PAGES)?;
    let slots = read.pages().enumerate();
    let slots: Vec<_> = slots
        .map(|(slot, page)| Superblock::decode(page, slot))
        .collect();
    let best = slots.iter().flatten().max_by_key(|found| found.commit);
    if let Some(best) = best {
        return Ok(Ok(*best));
    }
    // Damage says more than a slot that was never written.
    let errors = slots.into_iter().filter_map(Result::err);
    let worst = errors.max_by_key(|error| match error.kind() {
        ErrorKind::NotFound => 0,
        ErrorKind::InvalidArgument => 1,
        _ => 2,
    });
    Ok(Err(worst.unwrap_or_else(|| {
        Error::invalid("the device holds no store")
    })))
}

/// Makes a superblock the one that counts. Everything that it reaches is durable.
///
/// # Errors
/// Those of the device and of `flush`.
pub(super) fn commit(
    device: &dyn Device,
    superblock: &Superblock,
    flush: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let own = slot_of(superblock.commit);
    let page = |slot| (SUPERBLOCK_PAGES[slot], superblock.encode(slot));
    write_pages(device, &[page(own)])?;
    flush()?;
    let others: Vec<(_, Box<PageBytes>)> = (0..SUPERBLOCK_PAGES.len())
        .filter(|slot| *slot != own)
        .map(page)
        .collect();
    write_pages(device, &others)
}
