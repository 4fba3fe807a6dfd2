//! What the dice of a simulated queue may do, and what a power cut finds then.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kreon_base::ErrorKind;
use kreon_device::{AlignedBuf, Device, TransferQueue, Transferred};
use kreon_sim::{Call, Effect, Fault, Image, Keep, SimDevice, SimOptions};
use support::{PAGE, filled, firsts, put, sectors};

/// An empty device of 1 MiB and a queue of it.
fn with_queue(queue_seed: u64) -> (Arc<SimDevice>, Box<dyn TransferQueue>) {
    let options = SimOptions {
        queue_seed,
        ..SimOptions::default()
    };
    let device = Arc::new(SimDevice::from_image(Image::new(1 << 20), options));
    let queue = Arc::clone(&device).transfer_queue(64);
    (device, queue)
}

/// Pushes a write of a page full of `byte`.
fn write(queue: &mut dyn TransferQueue, tag: u64, page: u64, byte: u8) {
    queue.write(tag, page * PAGE, filled(PAGE, byte), PAGE as usize);
}

fn finish(queue: &mut dyn TransferQueue) -> Vec<Transferred> {
    let mut ended = Vec::new();
    while queue.in_flight() > 0 {
        queue.wait(Duration::ZERO);
        queue.reap(&mut ended);
    }
    ended
}

fn tags(ended: &[Transferred]) -> Vec<u64> {
    ended.iter().map(|one| one.tag).collect()
}

#[test]
fn the_same_seed_takes_the_same_course_and_another_one_another() {
    let course = |seed| {
        let (device, mut queue) = with_queue(seed);
        for tag in 0..20 {
            write(&mut *queue, tag, tag % 5, tag as u8);
            if tag % 6 == 0 {
                queue.flush(100 + tag);
                queue.submit();
            }
        }
        (tags(&finish(&mut *queue)), device.history().events)
    };
    let courses: Vec<_> = (0..10).map(course).collect();
    assert!((0..10).map(course).eq(courses.iter().cloned()));
    let orders: BTreeSet<_> = courses.iter().map(|(tags, _)| tags).collect();
    assert_eq!(orders.len(), 10);
}

#[test]
fn the_queues_of_a_device_have_dice_of_their_own() {
    let (device, _) = with_queue(1);
    let course = |device: &Arc<SimDevice>| {
        let mut queue = Arc::clone(device).transfer_queue(64);
        (0..20).for_each(|tag| queue.read(tag, 0, AlignedBuf::new(512), 512));
        tags(&finish(&mut *queue))
    };
    assert_ne!(course(&device), course(&device));
}

#[test]
fn transfers_end_in_every_order() {
    let mut orders = BTreeSet::new();
    for seed in 0..200 {
        let (_, mut queue) = with_queue(seed);
        (0..3).for_each(|tag| write(&mut *queue, tag, tag, 1));
        orders.insert(tags(&finish(&mut *queue)));
    }
    assert_eq!(orders.len(), 6);
}

#[test]
fn every_wait_ends_one_at_least_unless_it_was_woken() {
    let (mut alone, mut idle) = (0, 0);
    for seed in 0..100 {
        let (_, mut queue) = with_queue(seed);
        (0..5).for_each(|tag| write(&mut *queue, tag, tag, 1));
        queue.waker().wake();
        let mut ended = Vec::new();
        queue.wait(Duration::ZERO);
        queue.reap(&mut ended);
        idle += u32::from(ended.is_empty());
        while queue.in_flight() > 0 {
            let before = ended.len();
            queue.wait(Duration::ZERO);
            queue.reap(&mut ended);
            assert!(ended.len() > before);
            alone += u32::from(ended.len() == before + 1);
        }
    }
    assert!(alone > 0 && idle > 0, "{alone} {idle}");
}

#[test]
fn any_part_of_a_write_in_flight_may_be_on_the_device() {
    let (mut begun, mut open) = (0, 0);
    for seed in 0..100 {
        let (device, mut queue) = with_queue(seed);
        put(&device, 0, 1);
        device.flush().unwrap();
        let before = device.events();
        write(&mut *queue, 1, 0, 2);
        write(&mut *queue, 2, 1, 2);
        assert_eq!(
            device.events(),
            before,
            "nothing begins before it is submitted"
        );
        queue.wait(Duration::ZERO);
        let mut ended = Vec::new();
        queue.reap(&mut ended);
        // Of what has not ended, and of what has: until a flush there is no difference.
        let history = device.history();
        let crash = history.crash();
        assert_eq!(firsts(&crash.image(&mut Keep::Nothing), 2), [1, 0]);
        if let Some(write) = crash.pending().iter().find(|write| write.offset == 0) {
            let torn = crash.image(&mut Keep::Torn {
                write: write.write,
                sectors: 3,
            });
            assert_eq!(sectors(&torn, 0), [2, 2, 2, 1, 1, 1, 1, 1]);
            begun += u32::from(!tags(&ended).contains(&1));
        } else {
            open += 1;
        }
    }
    assert!(begun > 0, "some writes have begun and not ended");
    assert!(open > 0, "some writes have not begun");
}

#[test]
fn a_flush_speaks_only_for_what_had_ended_when_it_was_pushed() {
    let mut late = 0;
    for seed in 0..100 {
        let (device, mut queue) = with_queue(seed);
        write(&mut *queue, 1, 0, 1);
        assert_eq!(tags(&finish(&mut *queue)), [1]);
        write(&mut *queue, 2, 1, 2);
        write(&mut *queue, 3, 2, 3);
        queue.submit();
        let mut ended = Vec::new();
        queue.reap(&mut ended);
        queue.flush(4);
        let reaped = tags(&ended);
        assert!(finish(&mut *queue).iter().all(|one| one.outcome.is_ok()));
        let image = device.history().crash().image(&mut Keep::Nothing);
        let durable = |tag: u64| if reaped.contains(&tag) { tag as u8 } else { 0 };
        assert_eq!(firsts(&image, 3), [1, durable(2), durable(3)]);
        assert_eq!(firsts(&device.image(), 3), [1, 2, 3]);
        late += u32::from(!reaped.is_empty());
    }
    assert!((1..100).contains(&late), "{late}");
}

#[test]
fn what_is_reaped_is_durable_once_a_flush_after_it_is_reaped() {
    for seed in 0..50 {
        let (device, mut queue) = with_queue(seed);
        for page in 0..8 {
            write(&mut *queue, page, page, 7);
        }
        let (mut reaped, mut ended) = (Vec::new(), Vec::new());
        while queue.in_flight() > 0 {
            queue.wait(Duration::ZERO);
            queue.reap(&mut ended);
            for one in ended.drain(..) {
                match one.buffer {
                    Some(_) => reaped.push(one.tag),
                    // The tag of a flush says how many writes it speaks for.
                    None => {
                        let image = device.history().crash().image(&mut Keep::Nothing);
                        let found = firsts(&image, 8);
                        let covered = &reaped[..(one.tag - 100) as usize];
                        assert!(covered.iter().all(|&page| found[page as usize] == 7));
                    }
                }
            }
            if queue.in_flight() > 0 {
                queue.flush(100 + reaped.len() as u64);
            }
            if reaped.len() == 8 {
                finish(&mut *queue);
            }
        }
    }
}

#[test]
fn overlapping_transfers_see_either_content() {
    let (mut read, mut left) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..50 {
        let (device, mut queue) = with_queue(seed);
        write(&mut *queue, 1, 0, 1);
        write(&mut *queue, 2, 0, 2);
        queue.read(3, 0, AlignedBuf::new(512), 512);
        let ended = finish(&mut *queue);
        let found = ended.iter().find(|one| one.tag == 3).unwrap();
        read.insert(found.buffer.as_ref().unwrap()[0]);
        left.insert(firsts(&device.image(), 1)[0]);
    }
    assert!(read.iter().eq(&[0, 1, 2]) && left.iter().eq(&[1, 2]));
}

#[test]
fn each_transfer_can_fail_alone() {
    for call in [Call::Read, Call::Write, Call::Flush] {
        let mut failed_tags = BTreeSet::new();
        for nth in 1.. {
            let (device, mut queue) = with_queue(nth);
            device.inject(Fault::nth(nth, call, Effect::Io));
            for n in 0..5 {
                write(&mut *queue, n, n, 1);
                queue.read(10 + n, n * PAGE, AlignedBuf::new(512), 512);
                queue.flush(20 + n);
            }
            let ended = finish(&mut *queue);
            assert_eq!(ended.len(), 15);
            let failed: Vec<_> = ended.iter().filter(|one| one.outcome.is_err()).collect();
            if device.faults_met() == 0 {
                assert!(failed.is_empty() && nth == 6);
                break;
            }
            assert_eq!(failed.len(), 1);
            let error = failed[0].outcome.as_ref().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            failed_tags.insert(failed[0].tag / 10);
        }
        assert_eq!(failed_tags.len(), 1, "of that kind only");
    }
}

#[test]
fn a_failed_flush_leaves_in_doubt_what_it_spoke_for() {
    let (device, mut queue) = with_queue(3);
    write(&mut *queue, 1, 0, 1);
    finish(&mut *queue);
    device.inject(Fault::nth(1, Call::Flush, Effect::Io));
    queue.flush(2);
    assert!(finish(&mut *queue)[0].outcome.is_err());
    write(&mut *queue, 3, 1, 2);
    finish(&mut *queue);
    queue.flush(4);
    finish(&mut *queue)[0].outcome.as_ref().unwrap();
    let history = device.history();
    assert_eq!(
        firsts(&history.crash().image(&mut Keep::Nothing), 2),
        [0, 2]
    );
    assert_eq!(firsts(&history.crash().image(&mut Keep::All), 2), [1, 2]);
}

#[test]
fn transfers_are_counted_as_those_of_calls_are() {
    let (device, mut queue) = with_queue(3);
    (0..4).for_each(|n| write(&mut *queue, n, n, 1));
    queue.read(5, 0, AlignedBuf::new(512), 512);
    queue.flush(6);
    finish(&mut *queue);
    let stats = device.stats();
    assert_eq!((stats.writes.count, stats.writes.bytes), (4, 4 * PAGE));
    assert_eq!((stats.reads.count, stats.reads.bytes), (1, 512));
    assert_eq!(stats.flushes, 1);
    assert!((2..=6).contains(&stats.depth_max), "{stats:?}");
    let calls = [Call::Read, Call::Write, Call::Flush].map(|call| device.calls(call));
    assert_eq!(calls, [1, 4, 1]);
}
