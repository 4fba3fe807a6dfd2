use std::collections::BTreeMap;

use super::*;

const THREADS: usize = 4;

/// Runs `work` in several threads, with one more that writes out.
fn with_writer<T: Send>(bench: &Bench, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let ended = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while ended.load(Ordering::SeqCst) == 0 {
                if !bench.log.write_out_step().unwrap() {
                    bench.log.wait_for_work();
                }
            }
        });
        let threads: Vec<_> = (0..THREADS)
            .map(|t| {
                scope.spawn({
                    let work = &work;
                    move || work(t)
                })
            })
            .collect();
        let results = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        ended.store(1, Ordering::SeqCst);
        bench.log.wake_writer();
        writer.join().unwrap();
        results
    })
}

#[test]
fn appends_of_many_threads_leave_no_hole_and_are_readable_at_once() {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    let checkpoint = bench.checkpoint(LOG_START);
    let placed = with_writer(&bench, |thread| {
        let mut placed = Vec::new();
        for round in 0..400 {
            let key = format!("{thread} {round}").into_bytes();
            let len = if round % 100 == 99 {
                700_000
            } else {
                (round * 37) % 5000
            };
            let value = noise(len, thread + round);
            let (place, end) = bench.put(&key, &value);
            assert_eq!(bench.read(place, &key, len).unwrap(), value);
            assert!(bench.log.tail() >= end);
            placed.push((place.lsn, key, len));
        }
        assert!(placed.is_sorted_by(|a, b| a.0 < b.0));
        placed
    });
    bench.log.sync(bench.log.tail()).unwrap();
    let expected: BTreeMap<_, _> = placed
        .into_iter()
        .flatten()
        .map(|(lsn, key, len)| (lsn, (key, len)))
        .collect();
    let (seen, _) = checkpoint.replay(&bench.device).unwrap();
    let found: BTreeMap<_, _> = seen
        .into_iter()
        .map(|seen| (seen.lsn, (seen.key, seen.value_bytes as usize)))
        .collect();
    assert_eq!(found.len(), THREADS * 400);
    assert!(found == expected);
}

#[test]
fn writers_that_sync_share_flushes_and_each_is_durable_when_it_returns() {
    let bench = Setup::default().open();
    with_writer(&bench, |thread| {
        for round in 0..200 {
            let (_, end) = bench.put(&[thread as u8], &noise(round, round));
            bench.log.sync(end).unwrap();
            assert!(bench.log.durable() >= end);
        }
    });
    assert!(bench.device.flushes() <= THREADS * 200);
    let mut writes = bench.device.writes();
    writes.sort_unstable();
    assert!(
        writes.windows(2).all(|pair| pair[0].1 <= pair[1].0),
        "no block is written twice"
    );
}

#[test]
fn long_units_of_several_threads_do_not_mix() {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    let checkpoint = bench.checkpoint(LOG_START);
    with_writer(&bench, |thread| {
        for round in 0..2 {
            let key = [thread as u8; 4];
            let value = noise(2 << 20, thread * 8 + round);
            let (place, end) = bench.put(&key, &value);
            bench.put(&key, b"short");
            bench.log.sync(end).unwrap();
            assert_eq!(bench.read(place, &key, value.len()).unwrap(), value);
        }
    });
    let (seen, _) = checkpoint.replay(&bench.device).unwrap();
    assert_eq!(
        seen.iter()
            .filter(|seen| seen.value_bytes == 2 << 20)
            .count(),
        2 * THREADS
    );
}

#[test]
fn all_who_wait_for_a_failed_flush_are_told() {
    let bench = Setup::default().open();
    *bench.device.flushes_left.lock() = Some(3);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let bench = &bench;
            scope.spawn(move || {
                let failed = (0..100).find_map(|round| {
                    let append = bench
                        .log
                        .append_one(&put(&[thread as u8], &noise(9, round)));
                    append.and_then(|(_, end)| bench.log.sync(end)).err()
                });
                assert_eq!(failed.unwrap().kind(), ErrorKind::Poisoned);
            });
        }
    });
}

#[test]
fn a_long_unit_that_finds_a_new_segment_open_ends_behind_its_bytes() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    let log = &bench.log;
    // Room for 64 KiB, and not for the unit.
    let first = noise(SEGMENT_BYTES as usize - (100 << 10), 1);
    bench.put(b"first", &first);
    let value = noise(150 << 10, 2);
    let rolling = log.roller().lock().unwrap();
    let (place, end) = std::thread::scope(|scope| {
        let long = scope.spawn(|| bench.put(b"long", &value));
        // It waits for the lock by now.
        std::thread::sleep(std::time::Duration::from_millis(50));
        rolling.supply(2, Purpose::Put).unwrap();
        let next = rolling.open_segment().unwrap();
        rolling.end_current();
        rolling.publish(Arc::new(next));
        drop(rolling);
        long.join().unwrap()
    });
    assert!(end.0 >= place.lsn.0 + value.len() as u64, "{place:?} {end}");
    log.sync(end).unwrap();
    assert!(log.durable() >= end);
    let (seen, _) = checkpoint.replay(&bench.device).unwrap();
    assert_eq!(seen.len(), 2);
    // What is left of the segment is not lost.
    let (next, _) = bench.put(b"next", b"");
    assert_eq!(next.offset.segment(), place.offset.segment());
}
