//! The simulated device as a device, and its faults.

mod support;

use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use kreon_base::{ErrorKind, Result};
use kreon_device::{AlignedBuf, Device, Read, Write};
use kreon_sim::{Call, Effect, Fault, Image, Keep, Moment, SimDevice, SimOptions, Turns};
use support::{PAGE, device, filled, firsts, put, sectors};

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn get(device: &SimDevice, page: u64) -> Result<u8> {
    let mut bytes = AlignedBuf::new(PAGE as usize);
    device.read_at(page * PAGE, &mut bytes)?;
    Ok(bytes[0])
}

#[test]
fn batches_go_each_to_its_place_and_have_outcomes() {
    let device = device();
    let (a, b) = (filled(PAGE, 1), filled(PAGE, 2));
    device
        .write(&[Write::vectored(0, vec![&a, &b]), Write::new(4 * PAGE, &a)])
        .unwrap();
    assert_eq!(firsts(&device.image(), 5), [1, 2, 0, 0, 1]);

    let mut found = AlignedBuf::new(3 * PAGE as usize);
    let mut parts = found.chunks_mut(PAGE as usize);
    let mut part = || parts.next().unwrap();
    let mut reads = [
        Read::new(PAGE, part()),
        Read::new(1 << 20, part()),
        Read::new(0, part()),
    ];
    assert_eq!(
        kind(device.read(&mut reads)),
        Some(ErrorKind::InvalidArgument)
    );
    assert_eq!(
        reads.each_ref().map(|r| r.outcome.is_ok()),
        [true, false, true]
    );
    assert_eq!([0, 2].map(|page| found[page * PAGE as usize]), [2, 1]);

    let stats = device.stats();
    assert_eq!((stats.writes.count, stats.writes.bytes), (2, 3 * PAGE));
    assert_eq!((stats.writes.sizes[12], stats.writes.sizes[13]), (1, 1));
    assert_eq!(stats.reads.count, 2);
}

#[test]
fn bad_transfers_do_nothing() {
    let device = device();
    let page = filled(PAGE, 1);
    let good = Write::new(0, &page);
    let bad = [
        Write::new(8, &page),
        Write::new(0, &page[..100]),
        Write::new(0, &page[8..520]),
        Write::new(1 << 20, &page),
    ];
    for bad in bad {
        assert_eq!(
            kind(device.write(&[good.clone(), bad])),
            Some(ErrorKind::InvalidArgument)
        );
    }
    for result in [device.allocate(0, 2 << 20), device.discard(1, PAGE)] {
        assert_eq!(kind(result), Some(ErrorKind::InvalidArgument));
    }
    assert_eq!(device.events(), 0);
}

#[test]
fn it_grows_to_its_limit_and_never_shrinks() {
    let options = SimOptions {
        len_bytes_max: 8 * PAGE,
        ..SimOptions::default()
    };
    let device = SimDevice::new(options);
    assert_eq!((device.len_bytes(), device.len_bytes_max()), (0, 8 * PAGE));
    device.grow(8 * PAGE).unwrap();
    device.grow(PAGE).unwrap();
    assert_eq!(kind(device.grow(9 * PAGE)), Some(ErrorKind::OutOfSpace));
    assert_eq!(device.len_bytes(), 8 * PAGE);
}

#[test]
fn the_nth_call_fails_once() {
    let device = device();
    device.inject(Fault::nth(3, Call::Write, Effect::Io));
    device.inject(Fault::nth(2, Call::Read, Effect::Io));
    device.inject(Fault::nth(1, Call::Allocate, Effect::OutOfSpace));
    device.inject(Fault::nth(1, Call::Grow, Effect::OutOfSpace));
    let page = filled(PAGE, 1);
    let writes: Vec<_> = (0..5).map(|n| Write::new(n * PAGE, &page)).collect();
    assert_eq!(kind(device.write(&writes)), Some(ErrorKind::Io));
    assert_eq!(
        firsts(&device.image(), 5),
        [1, 1, 0, 0, 0],
        "later ones were not begun"
    );
    device.write(&writes).unwrap();
    let reads: Vec<_> = (0..3).map(|page| kind(get(&device, page))).collect();
    assert_eq!(reads, [None, Some(ErrorKind::Io), None]);
    assert_eq!(kind(device.allocate(0, PAGE)), Some(ErrorKind::OutOfSpace));
    device.allocate(0, PAGE).unwrap();
    assert_eq!(kind(device.grow(2 << 20)), Some(ErrorKind::OutOfSpace));
    device.grow(2 << 20).unwrap();
    assert_eq!((device.faults_met(), device.calls(Call::Write)), (4, 3 + 5));
}

#[test]
fn a_run_without_a_fault_ends_the_enumeration() {
    let mut runs = 0;
    loop {
        runs += 1;
        let device = device();
        device.inject(Fault::nth_of_all(runs, Effect::Io));
        let _ = device.write_at(0, &filled(PAGE, 1));
        let _ = device.flush();
        let _ = get(&device, 0);
        if device.faults_met() == 0 {
            break;
        }
    }
    assert_eq!(runs, 4);
}

#[test]
fn faults_may_stay_and_may_be_local() {
    let device = device();
    let bad_page = 3 * PAGE..4 * PAGE;
    device.inject(
        Fault::nth(1, Call::Read, Effect::Io)
            .for_ever()
            .within(bad_page),
    );
    for _ in 0..3 {
        let failed: Vec<_> = (0..5).map(|page| get(&device, page).is_err()).collect();
        assert_eq!(failed, [false, false, false, true, false]);
    }
    device.clear_faults();
    get(&device, 3).unwrap();
}

#[test]
fn nothing_works_without_power() {
    let device = device();
    put(&device, 0, 1);
    let events = device.events();
    device.power_off();
    assert!(get(&device, 0).is_err());
    assert!(device.write_at(0, &filled(PAGE, 2)).is_err());
    assert!(device.discard(0, PAGE).is_err());
    assert!(device.flush().is_err());
    let history = device.history();
    let crash = history.crash_after(events);
    assert_eq!(firsts(&crash.image(&mut Keep::All), 1), [1]);
}

#[test]
fn a_partial_write_fails_and_a_later_flush_does_not_settle_it() {
    let device = device();
    device.inject(Fault::nth(1, Call::Write, Effect::Partial { sectors: 3 }));
    assert_eq!(
        kind(device.write_at(0, &filled(PAGE, 1))),
        Some(ErrorKind::Io)
    );
    assert_eq!(sectors(&device.image(), 0), [1, 1, 1, 0, 0, 0, 0, 0]);
    device.flush().unwrap();
    let history = device.history();
    assert_eq!(
        sectors(&history.crash().image(&mut Keep::Nothing), 0),
        [0; 8]
    );
}

#[test]
fn lies_are_reported_as_done() {
    let device = device();
    put(&device, 0, 1);
    device.inject(Fault::nth(1, Call::Write, Effect::Lost));
    put(&device, 0, 2);
    assert_eq!(get(&device, 0).unwrap(), 1, "a lost write");

    device.inject(Fault::nth(
        1,
        Call::Write,
        Effect::Misdirected { offset: 4 * PAGE },
    ));
    put(&device, 0, 3);
    assert_eq!(
        firsts(&device.image(), 5),
        [1, 0, 0, 0, 3],
        "a misdirected write"
    );

    device.inject(Fault::nth(1, Call::Flush, Effect::Lost));
    device.flush().unwrap();
    let left = firsts(&device.history().crash().image(&mut Keep::Nothing), 1);
    assert_eq!(left, [0], "a flush that flushed nothing");
}

#[test]
fn bits_flip_in_transfers_and_at_rest() {
    let device = device();
    device.inject(Fault::nth(2, Call::Read, Effect::FlippedBit { bit: 1 }));
    let reads: Vec<_> = (0..3).map(|_| get(&device, 0).unwrap()).collect();
    assert_eq!(reads, [0, 2, 0]);
    device.inject(Fault::nth(
        1,
        Call::Write,
        Effect::FlippedBit { bit: 8 * PAGE },
    ));
    put(&device, 0, 6);
    assert_eq!(get(&device, 0).unwrap(), 7, "modulo the length");
    device.flip_bit(0, 7);
    assert_eq!(get(&device, 0).unwrap(), 7 | 0x80);
}

#[test]
fn a_full_device_is_out_of_space_until_room_is_made() {
    let options = SimOptions {
        space_bytes_max: 4 * PAGE,
        ..SimOptions::default()
    };
    let device = SimDevice::from_image(Image::new(1 << 20), options);
    device.allocate(0, 3 * PAGE).unwrap();
    assert_eq!(device.space_bytes(), 3 * PAGE);
    assert_eq!(
        kind(device.allocate(3 * PAGE, 2 * PAGE)),
        Some(ErrorKind::OutOfSpace)
    );
    assert_eq!(device.space_bytes(), 3 * PAGE, "all or nothing");
    put(&device, 3, 1);
    assert_eq!(
        kind(device.write_at(9 * PAGE, &filled(PAGE, 1))),
        Some(ErrorKind::OutOfSpace)
    );
    put(&device, 0, 2);
    device.discard(0, PAGE).unwrap();
    put(&device, 9, 3);
    device.set_space_bytes_max(5 * PAGE);
    put(&device, 10, 4);
}

#[test]
fn without_recording_there_is_no_history() {
    let options = SimOptions {
        record: false,
        ..SimOptions::default()
    };
    let device = SimDevice::from_image(Image::new(1 << 20), options);
    put(&device, 0, 1);
    device.flush().unwrap();
    assert_eq!((device.events(), get(&device, 0).unwrap()), (0, 1));
}

#[test]
fn a_stale_read_shows_what_was_there_some_flushes_ago() {
    let device = device();
    for byte in 1..=4 {
        put(&device, 0, byte);
        device.flush().unwrap();
    }
    put(&device, 0, 5);
    for (flushes, expected) in [(1, 4), (2, 3), (4, 1), (5, 0), (900, 0)] {
        device.inject(Fault::nth(1, Call::Read, Effect::Stale { flushes }));
        assert_eq!(get(&device, 0).unwrap(), expected);
        assert_eq!(device.past(flushes).bytes(0, 1), [expected]);
        assert_eq!(get(&device, 0).unwrap(), 5, "one read only");
    }
}

#[test]
fn a_slow_call_takes_its_time_and_holds_up_nobody_else() {
    let device = device();
    let time = Duration::from_millis(200);
    device.inject(Fault::nth(1, Call::Flush, Effect::Slow { time }));
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let start = Instant::now();
            device.flush().unwrap();
            start.elapsed()
        });
        std::thread::sleep(Duration::from_millis(20));
        put(&device, 0, 1);
        let is_flushed = device.history().crash().pending().is_empty();
        assert!(!is_flushed, "the flush takes longer");
        assert!(slow.join().unwrap() >= time);
    });
}

/// Lets one thread through at a time: the other one's write comes within the first one's flush.
struct WriteWithinFlush {
    first: ThreadId,
    wrote: (Mutex<bool>, Condvar),
}

impl Turns for WriteWithinFlush {
    fn wait(&self, moment: Moment) -> bool {
        let mut wrote = self.wrote.0.lock().unwrap();
        let is_first = std::thread::current().id() == self.first;
        match moment {
            Moment::Within(Call::Flush) if is_first => {
                *wrote = true;
                self.wrote.1.notify_all();
                while *wrote {
                    wrote = self.wrote.1.wait(wrote).unwrap();
                }
            }
            Moment::Before(Call::Write) if !is_first => {
                while !*wrote {
                    wrote = self.wrote.1.wait(wrote).unwrap();
                }
            }
            _ => {}
        }
        true
    }
}

#[test]
fn a_write_within_a_flush_is_not_covered_by_it() {
    let device = device();
    let turns = Arc::new(WriteWithinFlush {
        first: std::thread::current().id(),
        wrote: Default::default(),
    });
    device.set_turns(Some(Arc::clone(&turns) as Arc<dyn Turns>));
    put(&device, 0, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            put(&device, 1, 2);
            *turns.wrote.0.lock().unwrap() = false;
            turns.wrote.1.notify_all();
        });
        device.flush().unwrap();
    });
    let history = device.history();
    let left = history.crash().image(&mut Keep::Nothing);
    assert_eq!(firsts(&left, 2), [1, 0]);
}

#[test]
fn calls_of_a_killed_process_fail_and_do_nothing() {
    struct Dead;
    impl Turns for Dead {
        fn wait(&self, _: Moment) -> bool {
            false
        }
    }
    let device = device();
    put(&device, 0, 1);
    device.set_turns(Some(Arc::new(Dead)));
    assert_eq!(
        kind(device.write_at(0, &filled(PAGE, 2))),
        Some(ErrorKind::Io)
    );
    assert_eq!(kind(device.flush()), Some(ErrorKind::Io));
    device.set_turns(None);
    assert_eq!(get(&device, 0).unwrap(), 1);
    assert_eq!(device.history().crash().pending().len(), 1);
}
