//! What a volume holds, without opening it.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Lsn, Result, SegmentId};
use kreon_device::{Backing, Device};
use kreon_format::Superblock;
use kreon_log::{ReplayStart, replay};
use kreon_volume::Allocator;
use kreon_volume::superblock::{self, Found};

use super::open::check_length;
use crate::checkpoint::catalogue::{self, MAIN_LOG};

/// What an opening would begin with.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The newest superblock in a whole slot.
    pub superblock: Superblock,
    /// What is wrong with other slots.
    pub damaged_slots: Vec<String>,
    /// Behind the last whole unit of the log.
    pub log_end: Lsn,
    /// Segments of the log with their sequences, in its order, up to the one in which the next run goes on, unless that is
    /// to be begun anew.
    pub log_segments: Vec<(SegmentId, u64)>,
}

/// See [`Engine::examine`](crate::Engine::examine). Reads the log behind the image of L0 but not the image, and reads no
/// tree.
pub fn examine(device: &Arc<dyn Device>) -> Result<Examined> {
    let (superblock, damaged_slots) = match superblock::read(device.as_ref())? {
        Found::Store(superblock, damaged) => (superblock, damaged),
        Found::Nothing | Found::Other(_) => {
            return Err(Error::new(ErrorKind::NotFound, "there is no store here"));
        }
    };
    let (store, count) = (superblock.store, superblock.segments);
    check_length(device.as_ref(), count)?;
    let bytes = superblock.catalogue_bytes;
    let read = catalogue::read(device.as_ref(), store, superblock.catalogue, bytes)?;
    let record = catalogue::main_log(&read.catalogue)?;
    let groups = &read.catalogue.groups;
    let allocator = Allocator::load(Arc::clone(device), count, store, count, groups)?;
    let start = ReplayStart {
        device: device.as_ref(),
        store,
        record,
        newest: superblock.incarnation,
        segments: &allocator.log_segments(MAIN_LOG),
        taken: &allocator.taken_segments(),
        value_bytes_max: 0,
        backing: Backing::Sparse,
        has_image: !record.image.is_empty(),
    };
    let end = replay(&start, |_| Ok(()))?;
    Ok(Examined {
        superblock,
        damaged_slots,
        log_end: end.history.end,
        log_segments: end.history.segments,
    })
}
