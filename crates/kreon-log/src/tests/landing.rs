//! What stays in memory, and who waits, until the mirror has landed it.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::twin::Twin;
use super::*;
use crate::cut::SEGMENT;

fn open(buffers_max: usize) -> (Arc<Twin>, Bench) {
    let twin = Twin::new();
    let setup = Setup {
        options: with_buffers(buffers_max),
        ..Setup::default()
    };
    let bench = setup.open_with(twin.as_mirror());
    (twin, bench)
}

/// Ends the thread that waits, too.
struct AbandonedIfPanicking<'a>(&'a Log);

impl Drop for AbandonedIfPanicking<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abandon();
        }
    }
}

/// Runs `appends` in a thread that will wait for the mirror; `then` is called when it does.
fn until_it_waits<T: Send>(
    bench: &Bench,
    appends: impl FnOnce() -> T + Send,
    then: impl FnOnce(&dyn Fn() -> bool),
) -> T {
    std::thread::scope(|scope| {
        let appends = scope.spawn(appends);
        let (mut tail, mut since) = (Lsn(0), Instant::now());
        while since.elapsed() < Duration::from_millis(60) {
            if bench.log.tail() > tail {
                (tail, since) = (bench.log.tail(), Instant::now());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ends = AbandonedIfPanicking(&bench.log);
        assert!(!appends.is_finished(), "nobody waits");
        then(&|| appends.is_finished());
        appends.join().unwrap()
    })
}

#[test]
fn a_buffer_is_not_used_again_before_the_mirror_has_landed_it() {
    let (twin, bench) = open(3);
    let fill = || (0..120).for_each(|seed| _ = bench.put(b"key", &noise(60_000, seed)));
    until_it_waits(&bench, fill, |_| {
        let first = bench.reader().run(LOG_START, u32::MAX, |run| {
            assert_eq!(run.bytes.len(), SEGMENT as usize);
            twin.land(&bench.log, run.end);
        });
        assert!(first.unwrap(), "the first segment is in memory");
        let mut at = kreon_format::lsn_at(2, 4096);
        // What landed may go, what did not may not.
        while bench
            .reader()
            .run(at, u32::MAX, |run| at = run.end)
            .unwrap()
        {
            twin.land(&bench.log, at);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn a_writer_that_waits_for_the_mirror_does_not_hold_the_roll_lock() {
    let (twin, bench) = open(2);
    // A rest of 40,000 bytes is left in the second segment.
    let rest = 40_000;
    bench.put(b"key", &noise((SEGMENT - 4096) as usize - 40, 1));
    bench.put(b"key", &noise((SEGMENT - 4096 - rest) as usize - 40, 2));
    bench.log.write_out(bench.log.tail()).unwrap();
    let long = || bench.put(b"long", &noise(50_000, 3));
    until_it_waits(&bench, long, |is_over| {
        drop(bench.log.roller().lock().unwrap());
        let before = bench.log.tail();
        bench.put(b"short", b"value");
        assert!(!is_over(), "the short one went into the rest");
        assert!(bench.log.tail() > before);
        twin.land(&bench.log, kreon_format::lsn_at(2, 4096));
    });
}

#[test]
fn a_unit_longer_than_the_buffers_waits_for_the_mirror_in_between() {
    let (twin, bench) = open(2);
    let value = noise(9 << 20, 5);
    let (place, end) = until_it_waits(
        &bench,
        || bench.put(b"long", &value),
        |is_over| {
            let mut at = LOG_START;
            while !is_over() {
                bench
                    .reader()
                    .run(at, u32::MAX, |run| at = run.end)
                    .unwrap();
                twin.land(&bench.log, at);
                std::thread::yield_now();
            }
        },
    );
    bench.log.write_out(end).unwrap();
    assert_eq!(bench.read(place, b"long", 9 << 20).unwrap(), value);
}

#[test]
fn a_writer_that_waits_for_the_mirror_is_told_that_the_log_was_abandoned() {
    let (_twin, bench) = open(2);
    let fill = || {
        (0..90)
            .map(|seed| bench.log.append_one(&put(b"key", &noise(60_000, seed))))
            .find_map(Result::err)
    };
    let error = until_it_waits(&bench, fill, |_| bench.log.abandon());
    assert_eq!(error.unwrap().kind(), ErrorKind::Closed);
}

#[test]
fn writers_stay_as_near_to_the_mirror_as_to_the_device() {
    let (twin, bench) = open(8);
    let is_over = AtomicBool::new(false);
    bench.log.begin_writing();
    std::thread::scope(|scope| {
        let background = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                bench.log.wait_for_work();
                while bench.log.write_out_step().unwrap() {}
            }
        });
        let fill = || (0..1500).for_each(|seed| _ = bench.put(b"key", &noise(10_000, seed)));
        until_it_waits(&bench, fill, |is_over| {
            let ahead = || bench.log.tail().0 - LOG_START.0;
            let most = 6 * u64::from(SEGMENT);
            // A thread that got no processor for a while does not wait yet.
            let begun = Instant::now();
            while ahead() <= most && begun.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(20));
            let ahead = ahead();
            assert!(ahead > most && ahead <= most + (256 << 10), "{ahead}");
            let mut at = LOG_START;
            while !is_over() {
                let is_there = bench.reader().run(at, 100_000, |run| at = run.end);
                if is_there.unwrap() {
                    twin.land(&bench.log, at);
                }
            }
        });
        is_over.store(true, Ordering::SeqCst);
        bench.log.wake_writer();
        background.join().unwrap();
    });
}

#[test]
fn the_mirror_is_told_of_all_that_is_committed() {
    let (twin, bench) = open(4);
    twin.make_durable(Lsn::MAX);
    let mut at = LOG_START;
    for round in 0..60 {
        let before = twin.grown();
        let len = if round % 20 == 19 { 3 << 20 } else { 1000 };
        let (_, end) = bench.put(b"key", &noise(len, round));
        assert!(twin.grown() > before, "a record");
        let before = twin.grown();
        bench.log.sync(end).unwrap();
        assert_eq!(twin.grown() > before, bench.log.tail() > end, "a pad");
        while bench
            .reader()
            .run(at, u32::MAX, |run| at = run.end)
            .unwrap()
        {}
        twin.land(&bench.log, at);
    }
}

/// The units of a log: where each starts and ends.
struct Units(Vec<(Lsn, Lsn)>);

impl Units {
    /// `found` is the start of the oldest unit that ends behind `landed`, or between that and the end of the one before:
    /// pads are there.
    fn assert_first_unlanded(&self, found: Lsn, landed: Lsn) {
        let first = self.0.partition_point(|(_, end)| *end <= landed);
        let start = self.0.get(first).map_or(Lsn::MAX, |unit| unit.0);
        let before = first.checked_sub(1).map_or(LOG_START, |at| self.0[at].1);
        assert!(
            before <= found && found <= start,
            "landed {landed}: {found} is not from {before} to {start}"
        );
        assert!(start <= landed || found <= landed.max(start));
    }
}

#[test]
fn the_oldest_unit_that_has_not_landed_is_found_wherever_landing_stops() {
    for stride in [1, 3, 50] {
        let (twin, bench) = open(4);
        twin.make_durable(Lsn::MAX);
        let (mut units, mut landed, mut dice) = (Units(Vec::new()), LOG_START, 5_u64);
        let mut last = Lsn(0);
        for round in 0..600_usize {
            dice = dice.wrapping_mul(6364136223846793005).wrapping_add(11);
            let len = match round % 100 {
                17 => 5 << 20,
                40 => 100_000,
                _ => (dice >> 33) as usize % 8000,
            };
            let value = noise(len / 3, round);
            let unit = [
                put(b"one", &value),
                put(b"two", &value),
                put(b"three", &value),
            ];
            let unit = &unit[..1 + round % 3];
            let mut start = None;
            let long = len > 4 << 20;
            if long {
                // Its segments need the buffers of those before.
                twin.land(&bench.log, Lsn::MAX);
            }
            let end = bench.log.append(unit, |place| {
                start.get_or_insert(place.lsn);
            });
            units.0.push((start.unwrap(), end.unwrap()));
            if round % 7 == 0 {
                bench.log.sync(bench.log.tail()).unwrap();
            }
            bench.log.write_out(bench.log.tail()).unwrap();
            // Somewhere between what had landed and the tail.
            let tail = bench.log.tail();
            landed = Lsn(landed.0 + (dice >> 20) % (tail.0 - landed.0 + 1));
            let kept = tail.0.saturating_sub(u64::from(SEGMENT));
            landed = landed.max(Lsn(kept)).min(tail);
            twin.land(&bench.log, landed);
            if round % stride == 0 {
                let found = bench.log.unlanded_from();
                assert!(found >= last, "it fell");
                last = found;
                units.assert_first_unlanded(found, landed);
            }
            if bench.space.given.load(Ordering::SeqCst) > SEGMENTS - 12 {
                break;
            }
        }
        twin.land(&bench.log, Lsn::MAX);
        assert_eq!(bench.log.unlanded_from(), bench.log.tail());
    }
}
