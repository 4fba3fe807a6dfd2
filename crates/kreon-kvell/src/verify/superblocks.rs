//! The superblocks: each slot is blank or whole, and the newest is there.

use std::time::Duration;

use kreon_base::{PAGE_BYTES, PageBytes, Result};
use kreon_device::{AlignedBuf, Device};

use super::report::VerifyReport;
use super::volume::Volume;
use crate::format::{SUPERBLOCK_SLOTS, Superblock};

/// Looks, as one slot may just be written, and the time between two.
const LOOKS_MAX: usize = 20;
const PAUSE: Duration = Duration::from_millis(1);

/// Checks all slots. An opening writes over what a power cut has torn.
pub fn verify(volume: &Volume<'_>, report: &mut VerifyReport) {
    let mut wrong = Vec::new();
    for _ in 0..LOOKS_MAX {
        let known = (volume.sequence)();
        wrong = match read(&*volume.device) {
            Ok(slots) => problems(&slots, known),
            Err(error) => vec![(0, format!("the superblocks cannot be read: {error}"))],
        };
        if wrong.is_empty() {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    report.bytes += (SUPERBLOCK_SLOTS * PAGE_BYTES) as u64;
    for (offset, what) in wrong {
        report.damaged(offset, None, what);
    }
}

fn read(device: &dyn Device) -> Result<AlignedBuf> {
    let mut bytes = AlignedBuf::new(SUPERBLOCK_SLOTS * PAGE_BYTES);
    device.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// What is wrong with the slots, when the last superblock that was made has the sequence `known`.
fn problems(bytes: &[u8], known: u64) -> Vec<(u64, String)> {
    let mut wrong = Vec::new();
    let mut newest = None;
    let (pages, _): (&[PageBytes], _) = bytes.as_chunks();
    for (slot, page) in pages.iter().enumerate() {
        match Superblock::decode(page, slot) {
            Err(error) => wrong.push(((slot * PAGE_BYTES) as u64, error.to_string())),
            Ok(found) => newest = newest.max(found.map(|it| it.sequence)),
        }
    }
    // Some may be under way, and slots are passed over.
    let least = known.saturating_sub(2 * SUPERBLOCK_SLOTS as u64);
    if newest.is_none_or(|newest| newest < least) {
        let text = format!("the newest superblock has sequence {newest:?}, the store {known}");
        wrong.push((0, text));
    }
    wrong
}
