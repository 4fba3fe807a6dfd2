use std::time::{Duration, Instant};

use super::*;

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

#[test]
fn a_long_run_is_written_at_once() {
    let bench = Setup::default().open();
    for seed in 0..300 {
        bench.put(b"key", &noise(1000, seed));
    }
    assert!(bench.log.write_out_step_at(Instant::now()).unwrap());
    let (start, end) = bench.device.writes()[0];
    assert!(end - start >= 256 << 10);
}

#[test]
fn an_append_that_completes_a_long_run_wakes_the_waiting_thread() {
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
        for seed in 0..7 {
            bench.put(b"key", &noise(40 << 10, seed));
        }
        waiting.join().unwrap();
    });
    bench.log.wake_writer();
    bench.log.wait_for_work();
}
