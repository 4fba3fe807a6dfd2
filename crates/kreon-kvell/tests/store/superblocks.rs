//! Who writes to which slot of the superblock.

use std::sync::Arc;

use kreon_base::PAGE_BYTES;
use kreon_device::Device;
use kreon_format::StoreId;
use kreon_sim::{Call, Dice, Effect, Fault, SimDevice};
use kvell::format::{State, Superblock, Timestamp, newest};
use kvell::space::{FlushClock, SuperblockPage, Superblocks};

use crate::world::simulated;

fn first() -> Superblock {
    Superblock {
        store: StoreId(5),
        sequence: 0,
        incarnation: 1,
        extents_end: 1,
        atomic_bytes: 512,
        index_key_bytes: 32,
        state: State::Dirty,
        image: None,
        durable: vec![Timestamp(1)],
    }
}

fn superblocks(device: &Arc<SimDevice>) -> Superblocks {
    device.grow(1 << 20).expect("room");
    let clock = Arc::new(FlushClock::default());
    Superblocks::new(Arc::clone(device) as _, clock, first())
}

/// What an opening would go by.
pub fn on_device(device: &SimDevice) -> Option<Superblock> {
    let image = device.image();
    let mut slots = [[0; PAGE_BYTES]; 4];
    for (slot, page) in slots.iter_mut().enumerate() {
        image.read((slot * PAGE_BYTES) as u64, page);
    }
    newest(&slots).expect("no damage")
}

fn put(device: &SimDevice, SuperblockPage { offset, page, .. }: SuperblockPage) {
    device.write_at(offset, &page).expect("a write");
}

#[test]
fn a_superblock_written_late_replaces_no_newer_one() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let device = simulated(1 << 20);
        let superblocks = superblocks(&device);
        let (mut end, mut pending) = (1, None);
        for mark in 2..60 {
            match (dice.below(3), pending.take()) {
                (0, None) => pending = superblocks.begin(&[Timestamp(mark)]),
                // Its write ends at any time: then it may be flushed.
                (0, Some(page)) => {
                    let sequence = page.sequence;
                    put(&device, page);
                    superblocks.is_durable(sequence);
                }
                (_, still) => {
                    pending = still;
                    assert!(pending.is_none() || superblocks.begin(&[]).is_none());
                    end += 1;
                    let written = superblocks.write(|it| it.extents_end = end);
                    written.expect("a write");
                }
            }
            let found = on_device(&device).map_or(1, |it| it.extents_end);
            assert_eq!((found, superblocks.extents_end()), (end, end));
        }
    }
}

#[test]
fn superblocks_that_failed_for_want_of_room_leave_the_durable_one() {
    let device = simulated(1 << 20);
    let superblocks = superblocks(&device);
    superblocks.write(|it| it.extents_end = 7).expect("a write");
    let torn = Fault::nth(1, Call::Write, Effect::OutOfSpace).for_ever();
    device.inject(torn);
    for _ in 0..9 {
        assert!(superblocks.write(|it| it.extents_end = 99).is_err());
        assert_eq!(superblocks.extents_end(), 7);
    }
    device.clear_faults();
    assert_eq!(on_device(&device).map(|it| it.extents_end), Some(7));
    superblocks
        .write(|it| it.extents_end = 8)
        .expect("room again");
    assert_eq!(on_device(&device).map(|it| it.extents_end), Some(8));
}

#[test]
fn marks_never_fall() {
    let device = simulated(1 << 20);
    let superblocks = superblocks(&device);
    let mark = |mark| superblocks.write_marks(State::Clean, &[Timestamp(mark)]);
    mark(9).expect("a write");
    assert!(superblocks.would_change(&[Timestamp(10)]));
    assert!(!superblocks.would_change(&[Timestamp(4)]));
    mark(4).expect("a write");
    let found = on_device(&device).expect("a superblock");
    assert_eq!(
        (found.durable, found.state),
        (vec![Timestamp(9)], State::Clean)
    );
}
