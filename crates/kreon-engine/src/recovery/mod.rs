//! From a volume to an open store: superblock, catalogue, bitmap, levels, replay of the log.
//!
//! - [`open`]: an existing store
//! - [`create`]: a new one
//! - [`mod@image`]: the image of L0, if there is a whole one
//! - [`made`]: regions whose making is in the log
//! - [`replayed`]: records on their way into L0
//! - [`crew`]: threads that put what is replayed into L0
//! - [`assemble`]: the storage, once it is known what it starts from

mod assemble;
mod create;
mod crew;
mod image;
mod made;
mod open;
mod replayed;

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::Device;

pub use replayed::{Insert, Replayed, TOGETHER};

use crate::options::{MemorySplit, Options};
use crate::state::Storage;
use kreon_volume::remains;
use kreon_volume::superblock::{self, Found};

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
) -> Result<Storage> {
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
