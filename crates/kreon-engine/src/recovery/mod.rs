//! From a volume to an open store: superblock, catalogue, bitmap, levels, replay of the log.
//!
//! - [`open`]: an existing store
//! - [`create`]: a new one
//! - [`mod@image`]: the image of L0, if there is a whole one
//! - [`made`]: regions whose making is in the log
//! - [`crew`]: threads that put what is replayed into L0
//! - [`assemble`]: the parts, once it is known what they start from

mod assemble;
mod create;
mod crew;
mod image;
mod made;
mod open;

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, LogOffset, Lsn, RegionId, Result};
use kreon_device::Device;
use kreon_l0::L0;

use crate::options::{MemorySplit, Options};
use crate::state::Parts;
use crate::volume::remains;
use crate::volume::superblock::{self, Found};

/// What stands in a replayed record, for L0.
pub struct Replayed<'a> {
    /// Its order.
    pub lsn: Lsn,
    /// Where it stands.
    pub offset: LogOffset,
    /// Its region, which exists.
    pub region: RegionId,
    /// Its key.
    pub key: &'a [u8],
    /// Length of the value; `None` for a deletion.
    pub value_bytes: Option<u32>,
    /// The value, if it is short.
    pub value: Option<&'a [u8]>,
}

/// Puts replayed records into L0, at most [`TOGETHER`] of them. L0 orders the versions of a key by their LSNs: records
/// may come in any order, and from many threads.
pub type Insert<'a> = &'a (dyn Fn(&L0, &[Replayed<'_>]) + Sync);

/// As many as the processor fetches at once.
pub const TOGETHER: usize = 8;

/// Opens the store on `device`, or makes it: on an empty device, where a creation was cut short, and, with
/// `Options::format`, over whatever is not a store that could be opened. `insert` puts replayed records into L0.
///
/// When it returns, a checkpoint of this run is durable: from then on the log may be written.
///
/// # Errors
/// `NotFound` if there is no store and none is to be made; `Corruption` if what an open needs does not
/// verify, or if there are traces of a store without superblock; `InvalidArgument` if the device holds something else;
/// those of [`superblock::read`].
pub fn open_or_create(
    device: Arc<dyn Device>,
    options: &Options,
    split: &MemorySplit,
    insert: Insert<'_>,
) -> Result<Parts> {
    // What a killed process wrote and did not flush can be read now and be gone after a power cut. If
    // its last superblock were believed and lost, the first checkpoint would have overwritten what the
    // one before needs.
    if device.len_bytes() != 0 {
        device.flush()?;
    }
    match superblock::read(device.as_ref())? {
        Found::Store(superblock, damaged_slots) => {
            for slot in damaged_slots {
                tracing::warn!(%slot, "a superblock slot is damaged; another one is whole");
            }
            open::open(device, options, split, &superblock, insert).map_err(needs_repair)
        }
        Found::Other(told) if !(options.create && options.format) => {
            Err(needs_repair(remains::refusal(device.as_ref(), told)?))
        }
        Found::Nothing | Found::Other(_) if options.create => {
            create::create(device, options, split)
        }
        Found::Nothing | Found::Other(_) => Err(Error::new(
            ErrorKind::NotFound,
            "there is no store here, and none is to be made",
        )),
    }
}

/// Tells the way out of damage that keeps a store from being opened.
fn needs_repair(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Corruption => {
            error.within("needs repair (`kreon repair` salvages what is readable into a new store)")
        }
        _ => error,
    }
}

/// Segments that the volume may grow to.
fn segments_max(options: &Options) -> u32 {
    let segments = options.volume_bytes_max / kreon_base::SEGMENT_BYTES;
    segments.min(u64::from(kreon_format::VOLUME_SEGMENTS_MAX)) as u32
}
