//! Whether the superblock is older than the log: the device has lost all newer copies of it, or put old ones back.
//!
//! A run writes to the log only when a superblock that names the run is durable, and a segment that a checkpoint names is
//! used again only when a later checkpoint is durable. A crash therefore never leaves a record of a run that the superblock
//! does not know, nor a later segment of the log in the place of one that it knows. An open with the old superblock would
//! take acknowledged records for a torn tail, and overwrite them.

use kreon_base::{Error, Incarnation, Lsn, PageBytes, Result};
use kreon_format::{Fragment, LogSegmentHeader, incarnation_mark, place_of};

use super::start::ReplayStart;
use super::walk::Image;
use crate::cut::PAYLOAD_START;

/// Records carry only 16 bits of their run. A record that seems to be of a run up to this many ahead is of that run: a
/// stale one could seem so only if it had outlived more than 64,000 runs.
const RUNS_AHEAD_MAX: u16 = 1024;

/// # Errors
/// `Corruption` if the header of `image` is newer than the superblock.
pub(super) fn check_header(image: &Image, start: &ReplayStart<'_>) -> Result<()> {
    let page: Option<&PageBytes> = image.bytes.first_chunk();
    let header = page.map(|page| LogSegmentHeader::decode(page, start.store, image.segment));
    let Some(Ok(header)) = header else {
        return Ok(());
    };
    // The search through all segments comes last: it is the slowest.
    let is_later = header.incarnation == start.newest
        && header.log == start.record.id
        && header.sequence > image.sequence
        && start.segments.contains(&(image.segment, image.sequence));
    if header.incarnation > start.newest || is_later {
        let (sequence, run) = (header.sequence, header.incarnation);
        let text = format!("{run} wrote segment number {sequence} of the log there");
        return Err(older(start.newest, &text));
    }
    Ok(())
}

/// Checks the place where the next run goes on, `resume`, which lies in `image`.
///
/// # Errors
/// `Corruption` if one went on there that the superblock does not know.
pub(super) fn check_resume(image: &Image, resume: Lsn, start: &ReplayStart<'_>) -> Result<()> {
    let within = place_of(resume).1;
    if within == PAYLOAD_START {
        return check_header(image, start);
    }
    if let Ok(Fragment::Record { header, .. }) = image.decode(within, start.store) {
        let newest = incarnation_mark(start.newest);
        let ahead = header.incarnation.wrapping_sub(newest);
        if (1..=RUNS_AHEAD_MAX).contains(&ahead) {
            let offset = image.offset(within);
            let text = format!("a run {ahead} later wrote the record at {offset}");
            return Err(older(start.newest, &text));
        }
    }
    Ok(())
}

fn older(newest: Incarnation, proof: &str) -> Error {
    Error::corruption(format!(
        "the superblock is older than the log: it knows runs up to {newest}, but {proof}; the device \
         lost newer superblocks, or put this one back"
    ))
}
