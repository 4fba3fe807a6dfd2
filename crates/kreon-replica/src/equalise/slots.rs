//! The superblock slots of one member.
//!
//! A checkpoint may have reached some members only. If a member kept a slot that the others do not have, the next primary
//! would use the pages that it points at again, on all members; if it kept an older one, those that this one needs. When
//! that primary dies, too, the member could not be opened.

use kreon_base::{Result, planted};
use kreon_device::Device;
use kreon_engine::{Examined, Superblock};
use kreon_volume::superblock;
use kreon_wire::{Extent, Slot};

/// What a member has, to be compared with others.
pub fn extent_of(examined: &Examined) -> Extent {
    Extent {
        slot: slot_of(&examined.superblock),
        log_end: examined.log_end,
    }
}

fn slot_of(superblock: &Superblock) -> Slot {
    Slot {
        incarnation: superblock.incarnation,
        epoch: superblock.epoch,
    }
}

/// Writes `chosen` into all four slots of a volume, first into the one of its epoch, and flushes twice: a power cut leaves
/// one whole slot, with this state or the one before. The end of the log is to be computed afterwards: it depends on the
/// slot.
///
/// # Errors
/// Those of the device; the member is not equal then.
pub fn repair_slots(device: &dyn Device, chosen: &Superblock) -> Result<()> {
    planted!(OlderSlotsRepairedAlone => if is_newer(device, chosen)? { return Ok(()); });
    superblock::commit(device, chosen)?;
    superblock::mirror(device, chosen)?;
    device.flush()
}

/// Whether a volume has a slot above `chosen`.
fn is_newer(device: &dyn Device, chosen: &Superblock) -> Result<bool> {
    let (newest, _) = superblock::inspect(device)?;
    Ok(newest.is_some_and(|newest| slot_of(&newest) > slot_of(chosen)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kreon_base::Epoch;
    use kreon_engine::{Engine, MEMORY_BYTES_MIN, Options};
    use kreon_sim::{SimDevice, SimOptions};

    use super::*;

    #[test]
    fn a_slot_above_the_chosen_one_goes_and_all_four_are_whole() {
        let sim = Arc::new(SimDevice::new(SimOptions::default()));
        let device: Arc<dyn Device> = sim.clone();
        let options = Options {
            memory_bytes: MEMORY_BYTES_MIN,
            backing: kreon_device::Backing::Sparse,
            ..Options::default()
        };
        let engine = Engine::open(Arc::clone(&device), options).unwrap();
        engine.close().unwrap();
        drop(engine);
        let before = Engine::examine(&device).unwrap().superblock;
        let newer = Superblock {
            epoch: Epoch(before.epoch.0 + 1),
            ..before
        };
        superblock::commit(&*device, &newer).unwrap();
        assert_eq!(superblock::inspect(&*device).unwrap().0, Some(newer));
        repair_slots(&*device, &before).unwrap();
        let (newest, wrong) = superblock::inspect(&*device).unwrap();
        assert_eq!((newest, wrong), (Some(before), Vec::new()));
    }
}
