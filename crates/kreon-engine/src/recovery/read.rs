//! An existing store, to be read only.
//!
//! It is what an opening for writing would make of the volume, but in memory alone: the log is replayed, and no checkpoint
//! follows. Nothing is taken from the allocator, which knows what a writer's would.

use std::sync::Arc;

use kreon_base::{Result, planted};
use kreon_device::Device;
use kreon_format::Superblock;
use kreon_volume::Allocator;

use super::assemble::{Parts, assemble, first_checkpoint, new_mapping};
use super::image::{self, Restored};
use super::open::{Durable, settle_segments};
use crate::image::load::LongEntry;
use crate::image::room::Room;
use crate::options::{MemorySplit, Options, Replayed};
use crate::state::Storage;

/// What threads that replay put into L0 beside each other once it is full, at the most.
const UNDER_WAY_BYTES: usize = 1 << 20;

/// Opens the store that `superblock` describes. `device` refuses all writes.
pub fn open(
    device: Arc<dyn Device>,
    options: &Options,
    split: &MemorySplit,
    superblock: &Superblock,
) -> Result<Storage> {
    let store = superblock.store;
    let mut durable = Durable::read(&device, options, superblock, superblock.incarnation)?;
    let limit_bytes = options.l0_bytes_of_reader(split);
    let mut room = Room::new(limit_bytes);
    // No later L0 takes its memory over.
    let image = image::restore(device.as_ref(), store, &mut durable.ledger, (0, &mut room));
    let Restored { l0, long, damaged } = image;
    // As the first checkpoint of a writer does.
    durable.allocator.drop_pages(&damaged)?;
    let end = durable.replay(device.as_ref(), options, superblock, (&l0, &room))?;
    let Durable {
        mut allocator,
        ledger,
        levels,
        ..
    } = durable;
    let replayed = replayed(l0.bytes(), &room, &long, limit_bytes);
    let split = options.split_of_reader(split, replayed)?;
    let extend = |allocator: &mut Allocator, count| {
        allocator.know(count);
        Ok(())
    };
    let history = settle_segments(&device, &mut allocator, end, extend)?;
    let mapping = new_mapping(&device, options, &split)?;
    let parts = Parts {
        device,
        store,
        allocator,
        levels,
        ledger,
        history,
        l0,
        mapping,
    };
    let storage = assemble(parts, options, &split)?;
    image::insert_long(&storage, &long)?;
    planted!(ReadOnlyOpenWrites => first_checkpoint(&storage, Vec::new())?);
    Ok(storage)
}

/// What L0 takes, with the entries that go there last.
fn replayed(bytes: usize, room: &Room, long: &[LongEntry], limit_bytes: usize) -> Replayed {
    let long_bytes: usize = long.iter().map(LongEntry::bytes_max).sum();
    let l0_bytes = bytes.saturating_add(long_bytes);
    // A limit is kept but for entries that go in at the same time; deleted ranges and long entries do not ask for room.
    let allowed = limit_bytes.saturating_add(UNDER_WAY_BYTES);
    let beyond = match l0_bytes > allowed {
        true => (l0_bytes - limit_bytes) as u64,
        false => 0,
    };
    Replayed {
        l0_bytes,
        left_out_bytes: room.left_out_bytes() + beyond,
    }
}
