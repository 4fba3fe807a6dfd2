//! Partitions on a simulated device, driven by hand.

mod large;
mod recovery;
mod recovery_in_passes;
mod recovery_of_torn;

use std::sync::Arc;

use kreon_device::Device;
use kreon_format::StoreId;
use kreon_sim::{Call, Effect, Fault, Keep, SimDevice, SimOptions};
use kvell::Durability;
use kvell::format::{EXTENT_BYTES, ItemSeal, key_hash};
use kvell::index::Location;
use kvell::opening::{Opened, Opening, open};
use kvell::partition::{FlushWish, Partition, Reply, Request, Task, Ticket, Transfer};

const STORE: StoreId = StoreId(7);

fn opened(device: &Arc<SimDevice>) -> Opened {
    let opening = Opening {
        partitions: 1,
        atomic_bytes: 512,
        index_key_bytes: 32,
        memory_bytes: 4 << 20,
        is_lossless: false,
        store: Some(STORE),
        creates: true,
        formats: false,
        threads: 1,
    };
    open(Arc::clone(device) as _, &opening).expect("a sound volume")
}

fn device() -> Arc<SimDevice> {
    let options = SimOptions {
        block_bytes: 512,
        ..SimOptions::default()
    };
    Arc::new(SimDevice::new(options))
}

fn submit(partition: &mut Partition, ticket: u64, key: u64, task: Task) {
    let key = key.to_be_bytes().to_vec();
    partition.submit(Request {
        ticket: Some(Ticket(ticket)),
        key_hash: key_hash(ItemSeal { store: STORE }, &key),
        key,
        task,
    });
}

fn put(value_bytes: usize) -> Task {
    Task::Put {
        value: vec![1; value_bytes],
        durability: Durability::Sync,
    }
}

fn carry_out(device: &SimDevice, partition: &mut Partition, transfer: Transfer) {
    match transfer {
        Transfer::Read {
            tag,
            offset,
            mut buffer,
        } => {
            let outcome = device.read_at(offset, &mut buffer);
            partition.ended(tag, outcome, Some(buffer));
        }
        Transfer::Write {
            tag,
            offset,
            buffer,
        } => {
            let outcome = device.write_at(offset, &buffer);
            partition.ended(tag, outcome, Some(buffer));
        }
    }
}

/// Carries out all that is under way.
fn settle(device: &SimDevice, opened: &mut Opened) -> Vec<(Ticket, Reply)> {
    loop {
        let mut transfers = Vec::new();
        opened.partitions[0].transfers(64, &mut transfers);
        let is_done = transfers.is_empty();
        for transfer in transfers {
            carry_out(device, &mut opened.partitions[0], transfer);
        }
        if is_done && opened.partitions[0].flush_wish() == FlushWish::None {
            return opened.partitions[0].replies();
        }
        if is_done {
            let flush = opened.clock.begin().expect("no flush under way");
            device.flush().expect("a sound device");
            assert!(opened.clock.end(flush));
            opened.partitions[0].flushed(flush, Ok(()));
        }
    }
}

/// A store of `keys` items, opened again, so that none is in memory.
fn store_of(keys: u64, value_bytes: usize) -> (Arc<SimDevice>, Opened) {
    let device = device();
    let mut first = opened(&device);
    for key in 0..keys {
        submit(&mut first.partitions[0], key, key, put(value_bytes));
    }
    assert_eq!(settle(&device, &mut first).len() as u64, keys);
    drop(first);
    let second = opened(&device);
    (device, second)
}

/// Where the item of a key is.
fn place_of(opened: &Opened, key: u64) -> Option<Location> {
    let index = &opened.partitions[0].parts().index;
    index.find(&key.to_be_bytes()).next()
}

#[test]
fn a_get_whose_item_has_moved_during_its_read_finds_it_again() {
    let (device, mut opened) = store_of(10, 700);
    let place = place_of(&opened, 0);
    submit(&mut opened.partitions[0], 0, 0, Task::Get);
    let mut transfers = Vec::new();
    opened.partitions[0].transfers(1, &mut transfers);
    let read = transfers.pop().expect("a read");
    // The item goes to another slot, and that of another key comes into its own.
    submit(&mut opened.partitions[0], 1, 0, put(701));
    settle(&device, &mut opened);
    submit(&mut opened.partitions[0], 2, 1, put(702));
    settle(&device, &mut opened);
    assert!(place.is_some() && place_of(&opened, 1) == place);
    carry_out(&device, &mut opened.partitions[0], read);
    let replies = opened.partitions[0].replies();
    let [(Ticket(0), Reply::Value(Some(value)))] = replies.as_slice() else {
        panic!("{replies:?}");
    };
    assert_eq!(value.len(), 701);
}

#[test]
fn writes_have_their_turn_beside_any_number_of_reads() {
    let (_device, mut opened) = store_of(100, 700);
    let partition = &mut opened.partitions[0];
    for key in 0..100 {
        submit(partition, key, key, Task::Get);
    }
    submit(partition, 100, 100, put(700));
    let mut transfers = Vec::new();
    partition.transfers(4, &mut transfers);
    let is_write = |transfer: &Transfer| matches!(transfer, Transfer::Write { .. });
    assert_eq!(transfers.iter().filter(|it| is_write(it)).count(), 1);
}

/// Of four classes, and so of four extents.
const SIZES: [usize; 4] = [20, 100, 200, 400];

#[test]
fn every_dirty_cell_has_its_turn_beside_changes_of_others() {
    let (device, mut opened) = store_of(4, 700);
    let partition = &mut opened.partitions[0];
    // Each has a new slot; the first ones are changed again while the last one waits.
    let mut written = Vec::new();
    for round in 0..8 {
        for key in 0..4 {
            submit(
                partition,
                round * 4 + key,
                key * 1000,
                put(SIZES[key as usize]),
            );
        }
        let mut transfers = Vec::new();
        partition.transfers(1, &mut transfers);
        for transfer in transfers {
            if let Transfer::Write { offset, .. } = &transfer {
                written.push(offset / EXTENT_BYTES as u64);
            }
            carry_out(&device, partition, transfer);
        }
    }
    written.sort_unstable();
    written.dedup();
    assert_eq!(written.len(), 4);
}

#[test]
fn a_change_at_the_start_of_the_device_is_written_beside_a_stream_of_new_items() {
    let (device, mut opened) = store_of(1, 8);
    submit(&mut opened.partitions[0], 0, 0, Task::Get);
    settle(&device, &mut opened);
    let partition = &mut opened.partitions[0];
    let (mut written_in, first_cell) = (None, EXTENT_BYTES as u64 + 4096);
    for round in 0..40 {
        // More than is written meanwhile, in slots that do not touch each other: they are written one by one.
        for key in [1000 + 2 * round, 1001 + 2 * round] {
            submit(partition, key, key, put(4200));
        }
        if round == 5 {
            submit(partition, 1, 0, put(9));
        }
        let mut transfers = Vec::new();
        partition.transfers(1, &mut transfers);
        for transfer in transfers {
            if let Transfer::Write { offset, .. } = &transfer
                && *offset == first_cell
            {
                written_in = Some(round);
            }
            carry_out(&device, partition, transfer);
        }
    }
    assert!(written_in.is_some_and(|round| round < 20), "{written_in:?}");
}

#[test]
fn a_put_goes_elsewhere_if_the_cell_of_its_slot_cannot_be_read() {
    let (device, mut opened) = store_of(1, 8);
    let first_cell = EXTENT_BYTES as u64 + 4096;
    let fault = Fault::nth(1, Call::Read, Effect::Io).for_ever();
    device.inject(fault.within(first_cell..first_cell + 512));
    for key in 1..4 {
        submit(&mut opened.partitions[0], key, key, put(8));
    }
    let replies = settle(&device, &mut opened);
    assert_eq!(replies.len(), 3);
    assert!(
        replies.iter().all(|it| matches!(it.1, Reply::Done)),
        "{replies:?}"
    );
    submit(&mut opened.partitions[0], 9, 0, Task::Get);
    let replies = settle(&device, &mut opened);
    assert!(
        matches!(replies[..], [(_, Reply::Failed(_))]),
        "{replies:?}"
    );
    assert_eq!(
        device.faults_met(),
        2,
        "one by the puts together, one by the get"
    );
}

#[test]
fn a_store_of_smaller_units_than_the_blocks_of_a_device_is_refused() {
    let device = device();
    drop(opened(&device));
    let coarse = SimOptions {
        block_bytes: 4096,
        ..SimOptions::default()
    };
    let history = device.history();
    let mut crash = history.crash();
    while crash.advance() {}
    let image = crash.image(&mut Keep::All);
    let device = Arc::new(SimDevice::from_image(image, coarse));
    let opening = Opening {
        partitions: 1,
        atomic_bytes: 4096,
        index_key_bytes: 32,
        memory_bytes: 4 << 20,
        is_lossless: false,
        store: None,
        creates: true,
        formats: false,
        threads: 1,
    };
    let error = open(device as _, &opening).err().expect("refused");
    assert!(error.to_string().contains("512"), "{error}");
}
