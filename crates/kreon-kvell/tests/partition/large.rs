//! Large values, with transfers and flushes in an order that the test chooses.

use std::sync::Arc;

use kreon_base::ErrorKind;
use kreon_device::Device;
use kreon_sim::{Image, Keep, SimDevice, SimOptions, Survival};
use kvell::Durability;
use kvell::format::State;
use kvell::opening::Opened;
use kvell::partition::{Reply, Task, Ticket, Transfer};

use crate::{carry_out, device, opened, settle, submit};

/// Eight parts, the last one short.
const LARGE_BYTES: usize = 1_900_000;

fn put_of(byte: u8, value_bytes: usize) -> Task {
    Task::Put {
        value: vec![byte; value_bytes],
        durability: Durability::Sync,
    }
}

fn put(device: &SimDevice, opened: &mut Opened, key: u64, byte: u8, value_bytes: usize) {
    submit(&mut opened.partitions[0], 0, key, put_of(byte, value_bytes));
    let replies = settle(device, opened);
    assert!(matches!(replies[..], [(_, Reply::Done)]), "{replies:?}");
}

fn get(device: &SimDevice, opened: &mut Opened, key: u64) -> kreon_base::Result<Option<Vec<u8>>> {
    submit(&mut opened.partitions[0], 99, key, Task::Get);
    match settle(device, opened).pop() {
        Some((_, Reply::Value(value))) => Ok(value),
        Some((_, Reply::Failed(error))) => Err(error),
        other => panic!("{other:?}"),
    }
}

fn transfers(opened: &mut Opened) -> Vec<Transfer> {
    let mut all = Vec::new();
    opened.partitions[0].transfers(64, &mut all);
    all
}

fn flush(device: &SimDevice, opened: &mut Opened) {
    let flush = opened.clock.begin().expect("no flush under way");
    device.flush().expect("a sound device");
    assert!(opened.clock.end(flush));
    opened.partitions[0].flushed(flush, Ok(()));
}

fn cut(device: &SimDevice, keep: &mut dyn Survival) -> Arc<SimDevice> {
    let history = device.history();
    let mut crash = history.crash();
    while crash.advance() {}
    from_image(crash.image(keep))
}

fn from_image(image: Image) -> Arc<SimDevice> {
    let options = SimOptions {
        block_bytes: 512,
        ..SimOptions::default()
    };
    Arc::new(SimDevice::from_image(image, options))
}

#[test]
fn a_head_is_written_when_the_writes_of_all_parts_have_ended_and_keeps_the_mark_back_meanwhile() {
    let device = device();
    let mut opened = opened(&device);
    let before = opened.partitions[0].durable_mark();
    submit(&mut opened.partitions[0], 1, 0, put_of(7, 6_000_000));
    // 23 parts: 16 at a time.
    let first = transfers(&mut opened);
    assert_eq!(first.len(), 16);
    // The others are taken up as these end, whatever other requests do.
    submit(&mut opened.partitions[0], 2, 1, put_of(1, 10));
    let mut ended = 0;
    let mut under_way = first;
    while let Some(transfer) = under_way.pop() {
        carry_out(&device, &mut opened.partitions[0], transfer);
        ended += 1;
        if ended % 7 == 3 {
            flush(&device, &mut opened);
        }
        // Of parts, of the small item, and then the head.
        under_way.extend(transfers(&mut opened));
        assert!(under_way.len() <= 17);
        if ended < 24 {
            assert_eq!(opened.partitions[0].durable_mark(), before);
        } else if ended == 24 {
            assert_eq!(under_way.len(), 1, "the head");
        }
    }
    assert_eq!(ended, 23 + 1 + 1);
    assert_eq!(opened.partitions[0].durable_mark(), before);
    flush(&device, &mut opened);
    let last = opened.partitions[0].parts().last;
    assert_eq!(opened.partitions[0].durable_mark(), last);
    assert_eq!(opened.partitions[0].replies().len(), 2);
}

#[test]
fn a_cut_in_the_midst_of_a_large_put_leaves_the_old_value() {
    for ended in [0, 1, 4, 8] {
        let device = device();
        let mut first = opened(&device);
        put(&device, &mut first, 0, 1, LARGE_BYTES);
        submit(&mut first.partitions[0], 1, 0, put_of(2, LARGE_BYTES));
        for transfer in transfers(&mut first).into_iter().take(ended) {
            carry_out(&device, &mut first.partitions[0], transfer);
        }
        // All parts, and no head.
        let device = cut(&device, &mut Keep::All);
        let mut second = opened(&device);
        let found = get(&device, &mut second, 0).expect("a get");
        assert!(found == Some(vec![1; LARGE_BYTES]), "{ended} parts");
        assert_eq!(second.partitions[0].parts().large.parts(), 8);
        // Their slots are free.
        let extents = second.extents.counts();
        put(&device, &mut second, 1, 3, LARGE_BYTES);
        assert!(second.extents.counts().0 <= extents.0.max(5), "{extents:?}");
    }
}

/// A store whose key has a value of `old` bytes, durably, and then a large one of which all was written and nothing
/// flushed. And the places of what was written last: the parts and the head.
fn unflushed(old: usize) -> (Arc<SimDevice>, Vec<u64>) {
    let device = device();
    let mut first = opened(&device);
    put(&device, &mut first, 5, 5, 40);
    put(&device, &mut first, 0, 1, old);
    submit(&mut first.partitions[0], 1, 0, put_of(2, LARGE_BYTES));
    let mut places = Vec::new();
    loop {
        let all = transfers(&mut first);
        if all.is_empty() {
            return (device, places);
        }
        for transfer in all {
            let Transfer::Write { offset, .. } = &transfer else {
                panic!("a read");
            };
            places.push(*offset);
            carry_out(&device, &mut first.partitions[0], transfer);
        }
    }
}

#[test]
fn a_head_whose_part_was_lost_does_not_count() {
    // Large, as small as the head of a large value and so of its class, and in between.
    for old in [LARGE_BYTES, 70, 5000] {
        let (device, places) = unflushed(old);
        assert_eq!(places.len(), 9);
        for lost in places[..8].iter().copied() {
            // One sector of a part: the first, or a later one.
            for sector in [0, 3] {
                let lost = lost / 512 + sector;
                let mut keep = |sector: u64, versions: &[kreon_sim::Version]| {
                    (sector != lost).then(|| versions.len().saturating_sub(1))
                };
                let device = cut(&device, &mut keep);
                // The second opening finds what the first has wiped.
                for _ in 0..2 {
                    let mut opened = opened(&device);
                    let found = get(&device, &mut opened, 0).expect("a get");
                    assert!(found == Some(vec![1; old]), "{old}: {lost}");
                    let neighbour = get(&device, &mut opened, 5).expect("a get");
                    assert_eq!(neighbour, Some(vec![5; 40]));
                    let parts = if old == LARGE_BYTES { 8 } else { 0 };
                    assert_eq!(opened.partitions[0].parts().large.parts(), parts);
                    // Later marks must not take it for damaged.
                    put(&device, &mut opened, 6, 6, 10);
                    mark(&mut opened);
                }
            }
        }
        let device = cut(&device, &mut Keep::All);
        let found = get(&device, &mut opened(&device), 0).expect("a get");
        assert!(found == Some(vec![2; LARGE_BYTES]));
    }
}

fn mark(opened: &mut Opened) {
    let mark = opened.partitions[0].durable_mark();
    let written = opened.superblocks.write_marks(State::Dirty, &[mark]);
    written.expect("a superblock");
}

#[test]
fn a_durable_value_with_a_damaged_part_is_corruption_until_it_is_replaced() {
    let device = device();
    let mut first = opened(&device);
    put(&device, &mut first, 0, 1, LARGE_BYTES);
    mark(&mut first);
    let (_, _, parts) = first.partitions[0]
        .parts()
        .large
        .iter()
        .next()
        .expect("one");
    let damaged = parts[3].offset();
    drop(first);
    // Its prefix, and its piece.
    for at in [30, 100_000] {
        let device = cut(&device, &mut Keep::All);
        device.flip_bit(damaged + at, 3);
        let mut second = opened(&device);
        let error = get(&device, &mut second, 0).expect_err("damaged");
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert_eq!(second.partitions[0].parts().large.parts(), 7);
        put(&device, &mut second, 0, 2, 10);
        assert_eq!(second.partitions[0].parts().large.parts(), 0);
        let found = get(&device, &mut second, 0).expect("a get");
        assert_eq!(found, Some(vec![2; 10]));
    }
}

#[test]
fn a_value_that_is_being_read_stays_whole_when_it_is_replaced_and_its_space_is_wanted() {
    let device = device();
    let mut opened = opened(&device);
    put(&device, &mut opened, 0, 1, LARGE_BYTES);
    submit(&mut opened.partitions[0], 50, 0, Task::Get);
    let mut reads = transfers(&mut opened);
    if reads.len() == 1 {
        // The head was not in memory.
        carry_out(&device, &mut opened.partitions[0], reads.remove(0));
        reads = transfers(&mut opened);
    }
    assert_eq!(reads.len(), 8);
    let before = opened.extents.counts().0;
    for round in 0..6 {
        put(&device, &mut opened, 0, 10 + round, LARGE_BYTES);
    }
    assert_eq!(opened.partitions[0].parts().large.outdated_parts(), 8);
    for read in reads {
        carry_out(&device, &mut opened.partitions[0], read);
    }
    let replies = opened.partitions[0].replies();
    let [(Ticket(50), Reply::Value(Some(value)))] = &replies[..] else {
        panic!("{replies:?}");
    };
    assert!(*value == vec![1; LARGE_BYTES]);
    let large = &opened.partitions[0].parts().large;
    assert_eq!((large.parts(), large.outdated_parts()), (8, 0));
    // Slots of parts are used again at once: three values are on the device at most.
    assert!(opened.extents.counts().0 <= before + 5);
}

#[test]
fn requests_of_a_key_keep_their_order_behind_a_large_put_and_gets_do_not_wait() {
    let device = device();
    let mut opened = opened(&device);
    put(&device, &mut opened, 0, 1, 30);
    let partition = &mut opened.partitions[0];
    submit(partition, 1, 0, put_of(2, LARGE_BYTES));
    submit(partition, 2, 0, put_of(3, LARGE_BYTES));
    submit(
        partition,
        3,
        0,
        Task::Delete {
            durability: Durability::Sync,
        },
    );
    submit(partition, 4, 0, put_of(4, 20));
    submit(partition, 5, 0, Task::Get);
    let seen = partition.replies();
    assert!(
        matches!(&seen[..], [(Ticket(5), Reply::Value(Some(value)))] if *value == [1; 30]),
        "{seen:?}"
    );
    let replies = settle(&device, &mut opened);
    assert_eq!(replies.len(), 4);
    let found = get(&device, &mut opened, 0).expect("a get");
    assert_eq!(found, Some(vec![4; 20]));
    assert_eq!(opened.partitions[0].parts().large.parts(), 0);
}

#[test]
fn a_large_value_without_room_in_memory_is_refused_and_the_old_one_stays() {
    let device = device();
    let mut opened = opened(&device);
    put(&device, &mut opened, 0, 1, 30);
    let parts = opened.partitions[0].parts_mut();
    parts.memory_bytes = parts.memory_in_use() - parts.cells.memory_bytes();
    submit(&mut opened.partitions[0], 1, 0, put_of(2, LARGE_BYTES));
    let replies = settle(&device, &mut opened);
    let [(_, Reply::Failed(error))] = &replies[..] else {
        panic!("{replies:?}");
    };
    assert_eq!(error.kind(), ErrorKind::OutOfSpace);
    let found = get(&device, &mut opened, 0).expect("a get");
    assert_eq!(found, Some(vec![1; 30]));
}
