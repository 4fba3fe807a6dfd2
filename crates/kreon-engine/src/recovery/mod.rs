//! From a volume to an open store: superblock, catalogue, bitmap, levels, replay of the log.
//!
//! - [`open`]: an existing store
//! - [`read`]: an existing store, to be read only
//! - [`create`]: a new store
//! - [`mod@image`]: loads the image of L0
//! - [`made`]: regions created by log records
//! - [`replayed`]: puts replayed records into L0
//! - [`mod@examine`]: what a volume holds, without opening it
//! - [`crew`]: threads that insert replayed records into L0
//! - [`assemble`]: builds the storage from the recovered state

mod assemble;
mod create;
mod crew;
mod examine;
mod image;
mod made;
mod open;
mod read;
mod replayed;

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::Device;

pub use examine::{Examined, examine};

use crate::options::{MemorySplit, Options};
use crate::state::Storage;
use kreon_volume::remains;
use kreon_volume::superblock::{self, Found};

/// Opens the store on `device`. With `Options::create` it creates one on an empty device and after an interrupted
/// creation; with `Options::format` as well, over anything without a valid superblock.
///
/// On return a checkpoint of this run is durable, so the log may be written. With `Options::read_only` nothing is, and
/// nothing may be.
///
/// # Errors
/// `NotFound` if there is no store and `Options::create` is not set; `Corruption` if data needed for the open does not
/// verify, or for the remains of a store without superblock; `InvalidArgument` if the device holds other data; those of
/// [`superblock::read`].
pub fn open_or_create(
    device: Arc<dyn Device>,
    options: &Options,
    split: &MemorySplit,
) -> Result<Storage> {
    // Unflushed writes of a killed process are readable now but may vanish in a power cut. If its last superblock
    // vanished after this open trusted it, the first checkpoint might have overwritten pages of the superblock before.
    // A reader overwrites nothing: what vanishes meanwhile is what a crash may take.
    if device.len_bytes() != 0 && !options.read_only {
        device.flush()?;
    }
    match superblock::read(device.as_ref())? {
        Found::Store(superblock, damaged_slots) => {
            for slot in damaged_slots {
                tracing::warn!(%slot, "a superblock slot is damaged; another one is whole");
            }
            match options.read_only {
                true => read::open(device, options, split, &superblock),
                false => open::open(device, options, split, &superblock),
            }
            .map_err(needs_repair)
        }
        Found::Other(told) if options.read_only || !(options.create && options.format) => {
            Err(needs_repair(remains::refusal(device.as_ref(), told)?))
        }
        Found::Nothing | Found::Other(_) if options.create && !options.read_only => {
            create::create(device, options, split)
        }
        Found::Nothing | Found::Other(_) => Err(Error::new(
            ErrorKind::NotFound,
            "there is no store here, and none is to be made",
        )),
    }
}

/// Adds the advice to run `kreon repair` to a `Corruption`.
fn needs_repair(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Corruption => {
            error.within("needs repair (`kreon repair` salvages what is readable into a new store)")
        }
        _ => error,
    }
}
