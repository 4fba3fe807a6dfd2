use super::*;

const AHEAD: u64 = 256 << 10;

/// Zeroes lie where nothing was written yet, and no zeroes either.
fn assert_zeroed_before_written(device: &MemoryDevice) {
    let mut earlier: Vec<(u64, u64)> = Vec::new();
    for done in &*device.done.lock() {
        match *done {
            Done::Write { start, end } => earlier.push((start, end)),
            Done::Zeroes { start, end } => {
                let over = |other: &&(u64, u64)| other.0 < end && start < other.1;
                let found = earlier.iter().find(over);
                assert_eq!(found, None, "zeroes from {start} to {end}");
                earlier.push((start, end));
            }
            Done::Flush => {}
        }
    }
}

#[test]
fn small_flushes_overwrite_zeroes_that_were_written_ahead_of_them() {
    for block_bytes in [512, 4096] {
        let setup = Setup {
            block_bytes,
            ..Setup::default()
        };
        let bench = setup.open();
        let count = 900;
        for seed in 0..count {
            let (_, end) = bench.put(b"key", &noise(3000, seed));
            bench.log.sync(end).unwrap();
        }
        assert_zeroed_before_written(&bench.device);
        let zeroes = bench.device.zeroes();
        // Four in the first segment, each as long as all before it, and one in the second.
        assert_eq!(bench.log.segments().len(), 2);
        let ends: Vec<_> = zeroes.iter().map(|(_, end)| end % SEGMENT_BYTES).collect();
        assert_eq!(ends, [AHEAD, 2 * AHEAD, 4 * AHEAD, 0, 0], "{zeroes:?}");
        // All that was written lies in zeroes, or was what the zeroes were written with.
        let ends_ahead = |&(_, end): &(u64, u64)| end.is_multiple_of(AHEAD);
        assert!(zeroes.iter().all(ends_ahead), "{zeroes:?}");
        for (start, end) in bench.device.writes() {
            let over = |zeroed: &&(u64, u64)| zeroed.0 <= start && end <= zeroed.1;
            let with = |zeroed: &&(u64, u64)| zeroed.0 == end;
            let found = zeroes.iter().find(over).or(zeroes.iter().find(with));
            assert!(
                found.is_some() || end.is_multiple_of(AHEAD),
                "{start}..{end}"
            );
        }
        let record = bench.log.checkpoint_record(LOG_START);
        let (seen, end) = replay_with(&bench.device, &record, &bench.log.segments()).unwrap();
        assert_eq!(seen.len(), count);
        assert_eq!(end.history.end, bench.log.tail());
    }
}

#[test]
fn large_flushes_and_writes_without_a_flush_write_no_zeroes() {
    let bench = Setup::default().open();
    for seed in 0..20 {
        let (_, end) = bench.put(b"key", &noise(100 << 10, seed));
        bench.log.sync(end).unwrap();
    }
    for seed in 0..100 {
        let (_, end) = bench.put(b"key", &noise(17 << 10, seed));
        bench.log.write_out(end).unwrap();
    }
    assert_eq!(bench.device.zeroes(), []);
}

#[test]
fn a_small_flush_beside_much_that_is_buffered_writes_no_zeroes() {
    let bench = Setup::default().open();
    for seed in 0..100 {
        let (_, end) = bench.put(b"key", &noise(1000, seed));
        bench.put(b"buffered", &noise(20 << 10, seed));
        bench.log.sync(end).unwrap();
    }
    assert_eq!(bench.device.zeroes(), []);
    // Nor is a pause of the others of a few flushes enough.
    bench.log.sync(bench.log.tail()).unwrap();
    for count in 1..=9 {
        assert_eq!(bench.device.zeroes(), [], "{count}");
        let (_, end) = bench.put(b"key", b"value");
        bench.log.sync(end).unwrap();
    }
    assert_eq!(bench.device.zeroes().len(), 1);
}

#[test]
fn segments_that_were_written_before_get_no_zeroes() {
    let bench = Setup::default().open();
    bench.space.returned.lock().push(SegmentId(39));
    while bench.log.segments().len() < 4 {
        let (_, end) = bench.put(b"key", &noise(12 << 10, 1));
        bench.log.sync(end).unwrap();
    }
    let segments = bench.log.segments();
    let zeroes = bench.device.zeroes();
    let count = |segment: SegmentId| {
        let starts = zeroes.iter().map(|(start, _)| start / SEGMENT_BYTES);
        starts.filter(|start| *start == segment.0.into()).count()
    };
    for (segment, sequence) in &segments[..3] {
        let expected = usize::from(*segment != SegmentId(39));
        assert_eq!(count(*segment).min(1), expected, "number {sequence}");
    }
    let is_used = |(segment, _): &(SegmentId, u64)| *segment == SegmentId(39);
    assert!(segments[..3].iter().any(is_used), "{segments:?}");
}

#[test]
fn nothing_is_written_beside_zeroes_that_are_under_way() {
    let bench = Setup::default().open();
    let (_, end) = bench.put(b"first", b"value");
    std::thread::scope(|scope| {
        let no_write_ends = bench.device.unflushed.lock();
        let syncing = scope.spawn(|| bench.log.sync(end));
        while bench.device.done.lock().is_empty() {
            std::thread::yield_now();
        }
        bench.put(b"behind", &noise(200 << 10, 1));
        assert!(!bench.log.write_ready(0).unwrap(), "into the zeroes");
        drop(no_write_ends);
        syncing.join().unwrap().unwrap();
    });
    assert_eq!(bench.device.zeroes().len(), 1);
    assert!(bench.log.write_ready(0).unwrap());
    assert_zeroed_before_written(&bench.device);
}
