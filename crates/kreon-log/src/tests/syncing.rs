use std::time::Instant;

use super::*;

/// No byte is ever written twice, and blocks are written in the order of the log.
fn assert_written_once(device: &MemoryDevice) {
    let mut writes = device.writes();
    writes.sort_unstable();
    for pair in writes.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{pair:?} overlap");
    }
}

#[test]
fn a_sync_is_one_write_and_one_flush_and_makes_durable_what_it_says() {
    for block_bytes in [512, 4096] {
        let bench = Setup {
            block_bytes,
            ..Setup::default()
        }
        .open();
        for round in 1..20 {
            let (_, end) = bench.put(b"key", &noise(round * 37, round));
            assert!(bench.log.durable() < end);
            bench.log.sync(end).unwrap();
            assert!(bench.log.durable() >= end);
            assert_eq!(bench.device.flushes(), round);
            assert_eq!(bench.device.writes().len(), round);
            assert_eq!(bench.device.done.lock().last(), Some(&Done::Flush));
            bench.log.sync(end).unwrap();
            assert_eq!(
                bench.device.flushes(),
                round,
                "a second sync has nothing to do"
            );
        }
        assert_written_once(&bench.device);
    }
}

#[test]
fn a_sync_covers_all_that_was_appended_before() {
    let bench = Setup::default().open();
    let ends: Vec<_> = (0..10).map(|i| bench.put(b"key", &noise(i, i)).1).collect();
    bench.log.sync(ends[0]).unwrap();
    assert!(bench.log.durable() >= ends[9]);
    for end in ends {
        bench.log.sync(end).unwrap();
    }
    assert_eq!(bench.device.flushes(), 1);
}

#[test]
fn a_flush_that_takes_along_part_of_a_record_claims_nothing_of_it() {
    let bench = Setup::default().open();
    let (_, end) = bench.put(b"before", b"value");
    bench.put(b"behind", &noise(200_001, 9));
    // Whole blocks only.
    while bench.log.write_ready(0).unwrap() {}
    bench.log.sync(end).unwrap();
    let rest = bench.log.tail().0 - bench.log.durable().0;
    assert!((1..512).contains(&rest), "{rest}: not in its last block");
    let record = bench.log.checkpoint_record(LOG_START);
    let (seen, _) = replay_with(&bench.device, &record, &bench.log.segments()).unwrap();
    assert_eq!(keys(&seen), ["before"]);
    // Nor does a check of the open log find damage there.
    let segments = bench.log.segments();
    let start = start_of(&bench.device, &record, &segments);
    check_replay(&start, bench.log.claim()).unwrap();
    assert!(check_replay(&start, bench.log.durable()).is_err());
}

#[test]
fn a_sync_does_not_wait_for_what_is_buffered_far_behind_it() {
    let bench = Setup::default().open();
    let (_, end) = bench.put(b"waits", &noise(1000, 1));
    for seed in 0..20 {
        bench.put(b"buffered", &noise(50_000, seed));
    }
    bench.log.sync(end).unwrap();
    assert!(bench.log.durable() >= end);
    assert!(bench.log.written().0 - end.0 < 512, "the rest of its block");
    assert_eq!(bench.device.writes().len(), 1);
    // Records that follow closely come along: their writer is about to ask for them.
    let (_, end) = bench.put(b"waits", &noise(1000, 1));
    let (_, close) = bench.put(b"close", &noise(1000, 2));
    bench.log.sync(end).unwrap();
    assert!(bench.log.durable() >= close);
    assert_eq!(bench.device.flushes(), 2);
}

#[test]
fn whoever_comes_during_a_flush_waits_for_that_one_and_the_next() {
    let bench = Setup::default().open();
    let (_, first) = bench.put(b"first", b"value");
    let log = &bench.log;
    std::thread::scope(|scope| {
        let mut no_flush_ends = bench.device.flushes_left.lock();
        let leading = scope.spawn(|| bench.log.sync(first));
        while bench.log.written() < first {
            std::thread::yield_now();
        }
        // Others buffer much between and behind those who wait.
        let mut waiting = Vec::new();
        for seed in 0..6 {
            bench.put(b"buffered", &noise(150_000, seed));
            let (_, end) = bench.put(b"waits", b"value");
            waiting.push(scope.spawn(move || (end, sync_and_look(log, end))));
            bench.put(b"buffered", &noise(150_000, seed));
        }
        while bench.log.commit().waiters().waiting() < 6 {
            std::thread::yield_now();
        }
        // The flush under way, the next, and none behind those.
        *no_flush_ends = Some(2);
        drop(no_flush_ends);
        leading.join().unwrap().unwrap();
        for thread in waiting {
            let (end, durable) = thread.join().unwrap();
            assert!(durable.unwrap() >= end);
        }
    });
    assert_eq!(bench.device.flushes(), 2);
    assert!(bench.log.durable() < bench.log.tail());
}

/// Syncs, and tells what is durable then.
fn sync_and_look(log: &Log, upto: Lsn) -> Result<Lsn> {
    log.sync(upto).map(|()| log.durable())
}

#[test]
fn a_position_beyond_the_tail_is_no_reason_to_wait() {
    let bench = Setup::default().open();
    bench.put(b"key", b"value");
    bench.log.sync(Lsn::MAX).unwrap();
    bench.log.write_out(Lsn::MAX).unwrap();
    assert_eq!(bench.log.durable(), bench.log.tail());
}

#[test]
fn write_out_writes_without_a_flush_and_a_later_sync_only_flushes() {
    let bench = Setup::default().open();
    let (_, end) = bench.put(b"key", b"value");
    bench.log.write_out(end).unwrap();
    assert!(bench.log.written() >= end && bench.log.durable() < end);
    assert_eq!(
        (bench.device.writes().len(), bench.device.flushes()),
        (1, 0)
    );
    bench.log.sync(end).unwrap();
    assert_eq!(
        (bench.device.writes().len(), bench.device.flushes()),
        (1, 1)
    );
}

#[test]
fn pads_end_at_the_border_of_a_block_and_only_where_it_is_not_reached() {
    let bench = Setup::default().open();
    let (_, end) = bench.put(b"", &noise(512 - 16, 1));
    bench.log.sync(end).unwrap();
    assert_eq!(bench.log.tail(), end, "the record fills its block: no pad");
    let (_, end) = bench.put(b"", &noise(512 - 16 - 8, 1));
    bench.log.sync(end).unwrap();
    assert_eq!(bench.log.tail(), Lsn(end.0 + 8));
}

#[test]
fn after_a_failed_write_everything_but_reading_fails() {
    let bench = Setup::default().open();
    let (place, end) = bench.put(b"key", b"value");
    *bench.device.writes_left.lock() = Some(0);
    let first = bench.log.sync(end).unwrap_err();
    assert_eq!(first.kind(), ErrorKind::Poisoned);
    *bench.device.writes_left.lock() = None;
    assert_poisoned(&bench, place, end);
    assert_eq!(
        (bench.device.writes().len(), bench.device.flushes()),
        (0, 0),
        "never tried again"
    );
}

#[test]
fn after_a_failed_flush_everything_but_reading_fails() {
    let bench = Setup::default().open();
    let (place, end) = bench.put(b"key", b"value");
    *bench.device.flushes_left.lock() = Some(0);
    assert_eq!(bench.log.sync(end).unwrap_err().kind(), ErrorKind::Poisoned);
    *bench.device.flushes_left.lock() = None;
    assert_poisoned(&bench, place, end);
    assert!(bench.log.durable() < end);
    assert_eq!(bench.device.flushes(), 0, "a flush is never tried again");
}

fn assert_poisoned(bench: &Bench, place: Place, end: Lsn) {
    let failures = [
        bench.log.append_one(&put(b"k", b"v")).unwrap_err(),
        bench
            .log
            .append_one(&put(b"k", &noise(3 << 20, 1)))
            .unwrap_err(),
        bench.log.sync(end).unwrap_err(),
        bench.log.write_out_step().unwrap_err(),
    ];
    for failure in failures {
        assert_eq!(failure.kind(), ErrorKind::Poisoned);
        assert!(
            failure.to_string().contains("os error 5"),
            "tells the cause: {failure}"
        );
    }
    assert_eq!(bench.read(place, b"key", 5).unwrap(), b"value");
}

#[test]
fn a_failed_write_ends_a_long_unit_that_waits_for_buffers() {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    *bench.device.writes_left.lock() = Some(1);
    let error = bench
        .log
        .append_one(&put(b"long", &noise(12 << 20, 1)))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
}

#[test]
fn streaming_writes_are_large_and_every_byte_is_written_once() {
    let bench = Setup::default().open();
    // The clock stands still: records that have waited long are written however few they are.
    let now = Instant::now();
    for seed in 0..6000 {
        bench.put(b"key", &noise(1000, seed));
        while bench.log.write_out_step_at(now).unwrap() {}
    }
    let streamed = bench.device.writes().len();
    bench.log.sync(bench.log.tail()).unwrap();
    assert_written_once(&bench.device);
    let writes = bench.device.writes();
    let (streamed, synced) = writes.split_at(streamed);
    for (start, end) in streamed {
        let ends_segment = end.is_multiple_of(SEGMENT_BYTES);
        assert!(
            ends_segment || end - start >= 256 << 10,
            "{start}..{end} of {writes:?}"
        );
        assert!(end - start <= 512 << 10);
    }
    let is_short = |(start, end): &(u64, u64)| end - start <= 256 << 10;
    assert!(streamed.len() > 5 && synced.iter().all(is_short));
}

/// A log whose last unit was left half written by a thread that died, and a checkpoint before it.
fn with_a_hole() -> (Bench, Checkpoint, Place) {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    let checkpoint = bench.checkpoint(LOG_START);
    let (before, end) = bench.put(b"before", b"value");
    bench.log.sync(end).unwrap();
    let unit = [put(b"a", b"of the batch"), put(b"b", b"of the batch")];
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        bench.log.append(&unit, |_| panic!("a planned death"))
    }));
    assert!(died.is_err());
    (bench, checkpoint, before)
}

#[test]
fn a_thread_that_dies_in_the_middle_of_a_unit_stops_the_log_and_hangs_nobody() {
    let (bench, checkpoint, before) = with_a_hole();
    let (_, end) = bench.put(b"behind", b"value");
    let error = bench.log.sync(end).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    assert!(error.to_string().contains("a thread died"), "{error}");
    let refused = bench.log.append_one(&put(b"later", b"value"));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Poisoned);

    // Reads go on, and what was durable is what a replay finds.
    assert_eq!(bench.read(before, b"before", 5).unwrap(), b"value");
    let (seen, _) = checkpoint.replay(&bench.device).unwrap();
    assert_eq!(keys(&seen), ["before"]);
}

#[test]
fn writers_that_wait_for_room_behind_a_dead_thread_are_told() {
    let (bench, checkpoint, _) = with_a_hole();
    let value = noise(60_000, 1);
    let refused = (0..200).find_map(|_| bench.log.append_one(&put(b"k", &value)).err());
    assert_eq!(refused.unwrap().kind(), ErrorKind::Poisoned);
    let (seen, _) = checkpoint.replay(&bench.device).unwrap();
    assert_eq!(keys(&seen), ["before"]);
}
