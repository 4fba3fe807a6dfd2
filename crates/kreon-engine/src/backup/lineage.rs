//! Whether a store goes on from the state that a backup has.
//!
//! A store that was restored from an older backup and written to has the identity of the first one, and segments with the
//! same numbers, but its log is another one from there on. What such a segment holds is not to be shared. So the bytes in
//! which the log of the backup ends are compared with those of the store; a store whose log went on from there has them.

use kreon_base::{PAGE_BYTES, PageNo, Result, SEGMENT_BYTES};
use kreon_device::AlignedBuf;
use kreon_format::{BackupManifest, BackupPiece, LOG_HEADER_BYTES, place_of};

use super::data::read_runs;
use super::moment::LogSegment;
use super::shelf::{Access, Name, Shelf};
use crate::checkpoint::catalogue::MAIN_LOG;
use crate::state::Storage;

/// Whether the log in `segments` goes on from the end that `before` has. Also false where that cannot be told, as its last
/// segment was freed or the backup cannot be read: then the log is to be copied anew.
///
/// # Errors
/// Those of reading the store.
pub fn goes_on(
    storage: &Storage,
    shelf: &dyn Shelf,
    before: &BackupManifest,
    segments: &[LogSegment],
) -> Result<bool> {
    let (last, within) = place_of(before.log_end);
    let (sequence, end) = match within > LOG_HEADER_BYTES {
        true => (last, within),
        // The last segment was opened and has no record.
        false => (last.saturating_sub(1), SEGMENT_BYTES as u32),
    };
    let is_last = |segment: &&LogSegment| {
        segment.log == MAIN_LOG && segment.sequence == sequence && segment.end >= end
    };
    let Some(segment) = segments.iter().find(is_last) else {
        return Ok(false);
    };
    let pieces = before.pieces.iter();
    let pieces = pieces.filter(|piece| (piece.segment, piece.sequence) == (segment.id, sequence));
    let mut kept = AlignedBuf::new(SEGMENT_BYTES as usize);
    let mut had = 0;
    for piece in pieces {
        let first = usize::from(piece.first) * PAGE_BYTES;
        had = first + usize::from(piece.count) * PAGE_BYTES;
        let room = kept.get_mut(first..had).unwrap_or_default();
        if read_piece(shelf, piece, room).is_err() {
            return Ok(false);
        }
    }
    let end = had.min(end as usize);
    let first = segment.id.first_page().0;
    let pages = first..first + end.div_ceil(PAGE_BYTES) as u64;
    let pages: Vec<PageNo> = pages.map(PageNo).collect();
    let mut found = AlignedBuf::new(SEGMENT_BYTES as usize);
    let room = found.get_mut(..pages.len() * PAGE_BYTES);
    read_runs(storage.device.as_ref(), &pages, room.unwrap_or_default())?;
    Ok(end > 0 && kept.get(..end) == found.get(..end))
}

fn read_piece(shelf: &dyn Shelf, piece: &BackupPiece, room: &mut [u8]) -> Result<()> {
    let device = shelf.open(&Name::Data(piece.place.file).text(), Access::Read)?;
    device.read_at(piece.place.page * PAGE_BYTES as u64, room)
}
