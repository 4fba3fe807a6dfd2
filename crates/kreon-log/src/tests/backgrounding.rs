use std::time::{Duration, Instant};

use super::*;
use crate::output::UNWRITTEN_MAX_WAITED;

#[test]
fn what_has_waited_long_enough_is_written_without_a_sync() {
    let bench = Setup::default().open();
    let (_, end) = bench.put(b"key", b"value");
    let start = Instant::now();
    let step = |ms| {
        bench
            .log
            .write_out_step_at(start + Duration::from_millis(ms))
            .unwrap()
    };
    assert!(!step(0));
    assert!(!step(60));
    assert!(bench.log.written() < end);
    assert!(step(110));
    assert!(bench.log.written() >= end);
    assert!(!step(500), "nothing is left to write");
    assert_eq!(bench.device.flushes(), 0);
}

#[test]
fn records_that_come_later_wait_their_own_time() {
    let bench = Setup::default().open();
    let start = Instant::now();
    let step = |ms| {
        bench
            .log
            .write_out_step_at(start + Duration::from_millis(ms))
            .unwrap()
    };
    bench.put(b"key", b"value");
    step(0);
    let (_, later) = bench.put(b"key", &noise(4000, 2));
    assert!(step(120));
    assert!(bench.log.written() < later);
    assert!(!step(121) && !step(200));
    assert!(step(221 + 1));
    assert!(bench.log.written() >= later);
}

/// How far a writer gets ahead of a device that stands still, with buffers of 16 MiB.
fn ahead_of_a_stalled_device(somebody_waits: bool) -> u64 {
    let bench = Setup {
        options: with_buffers(8),
        ..Setup::default()
    }
    .open();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let ahead = || bench.log.tail().0 - bench.log.written().0;
    bench.log.begin_writing();
    std::thread::scope(|scope| {
        let stalled = bench.device.unflushed.lock();
        let background = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                bench.log.wait_for_work();
                bench.log.write_out_step().unwrap();
            }
        });
        let writer = scope.spawn(|| {
            for seed in 0..800 {
                if somebody_waits {
                    bench.log.expect_wait();
                }
                bench.put(b"key", &noise(10_000, seed));
            }
        });
        // It stands still when it is far enough ahead.
        let (mut seen, mut since) = (0, Instant::now());
        while since.elapsed() < Duration::from_millis(100) && !writer.is_finished() {
            if ahead() > seen || seen == 0 {
                (seen, since) = (ahead(), Instant::now());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(stalled);
        writer.join().unwrap();
        is_over.store(true, Ordering::SeqCst);
        bench.log.wake_writer();
        background.join().unwrap();
        seen
    })
}

#[test]
fn little_is_buffered_while_somebody_waits_for_durability() {
    assert!(ahead_of_a_stalled_device(false) > 4 << 20);
    let ahead = ahead_of_a_stalled_device(true);
    assert!(ahead <= UNWRITTEN_MAX_WAITED + (256 << 10), "{ahead}");
}

#[test]
fn a_long_run_is_written_at_once() {
    let bench = Setup::default().open();
    for seed in 0..1100 {
        bench.put(b"key", &noise(1000, seed));
    }
    assert!(bench.log.write_out_step_at(Instant::now()).unwrap());
    let (start, end) = bench.device.writes()[0];
    assert!(end - start >= 512 << 10);
}

#[test]
fn where_buffers_are_few_a_shorter_run_is_written_at_once() {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    for seed in 0..150 {
        bench.put(b"key", &noise(1000, seed));
    }
    assert!(bench.log.write_out_step_at(Instant::now()).unwrap());
}

/// Appends so many records of 40 KiB while a thread waits for work; ends when that has found some.
fn wake_by_appending(records: usize, somebody_waits: bool) {
    let options = LogOptions {
        age_max: Duration::from_secs(3600),
        ..LogOptions::default()
    };
    let bench = Setup {
        options,
        ..Setup::default()
    }
    .open();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| bench.log.wait_for_work());
        for seed in 0..records {
            if somebody_waits {
                bench.log.expect_wait();
            }
            bench.put(b"key", &noise(40 << 10, seed));
        }
        waiting.join().unwrap();
    });
    bench.log.wake_writer();
    bench.log.wait_for_work();
}

#[test]
fn an_append_that_completes_a_long_run_wakes_the_waiting_thread() {
    wake_by_appending(28, false);
}

#[test]
fn while_somebody_waits_for_durability_a_shorter_run_wakes_it() {
    wake_by_appending(7, true);
}
