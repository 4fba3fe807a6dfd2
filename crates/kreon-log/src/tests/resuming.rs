use super::*;

#[test]
fn a_new_run_goes_on_in_the_same_segment_at_the_next_page() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    let (first, end) = bench.put(b"first", &noise(5000, 1));
    bench.log.sync(end).unwrap();
    let (again, seen) = bench.reopen(&checkpoint);
    assert_eq!(keys(&seen), ["first"]);
    assert_eq!(
        again.log.tail(),
        Lsn(bench.log.tail().0.next_multiple_of(4096))
    );
    assert_eq!(again.log.durable(), again.log.tail());
    let checkpoint = again.checkpoint(LOG_START);
    let (second, end) = again.put(b"second", &noise(100, 2));
    assert_eq!(second.offset.segment(), first.offset.segment());
    assert_eq!(again.read(first, b"first", 5000).unwrap(), noise(5000, 1));
    again.log.sync(end).unwrap();
    assert_eq!(again.read(second, b"second", 100).unwrap(), noise(100, 2));
    let (third, seen) = again.reopen(&checkpoint);
    assert_eq!(keys(&seen), ["first", "second"]);
    assert_eq!(third.read(second, b"second", 100).unwrap(), noise(100, 2));
    third.push_out(4);
    assert_eq!(third.read(first, b"first", 5000).unwrap(), noise(5000, 1));
}

#[test]
fn opening_without_writing_takes_no_space_and_leaves_no_trace() {
    let mut bench = Setup::default().open();
    let mut checkpoint = bench.checkpoint(LOG_START);
    for round in 0..6 {
        if round == 3 {
            let (_, end) = bench.put(b"key", b"value");
            bench.log.sync(end).unwrap();
        }
        let seen;
        (bench, seen) = bench.reopen(&checkpoint);
        assert_eq!(seen.len(), usize::from(round >= 3));
        checkpoint = bench.checkpoint(LOG_START);
        assert_eq!(checkpoint.record.resumes.len(), usize::from(round >= 3));
    }
    assert_eq!(bench.space.given.load(Ordering::SeqCst), 2);
    assert_eq!(checkpoint.record.resumes[0].incarnation, Incarnation(7));
}

#[test]
fn resumes_that_the_marker_has_passed_are_dropped() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    bench.log.sync(bench.put(b"a", b"1").1).unwrap();
    let (bench, _) = bench.reopen(&checkpoint);
    let start = bench.log.tail();
    let record = bench.log.checkpoint_record(LOG_START);
    assert_eq!(
        (record.incarnation, record.resumes.len()),
        (Incarnation(1), 1)
    );
    assert_eq!(record.resumes[0].resume, start);
    let record = bench.log.checkpoint_record(start);
    assert_eq!(
        (record.incarnation, record.resumes.len()),
        (Incarnation(2), 0)
    );
}

/// The first run leaves whole records behind a torn one; the second writes one of the same length in
/// place of the torn one, so that the old ones follow it without a gap.
#[test]
fn records_behind_a_torn_one_never_come_back_after_two_crashes() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    bench
        .log
        .sync(bench.put(b"", &noise(4096 - 16, 1)).1)
        .unwrap();
    let (torn, _) = bench.put(b"torn ", &noise(600, 2));
    bench
        .log
        .write_out(bench.put(b"stale", &noise(600, 3)).1)
        .unwrap();
    bench.device.change(torn.offset.0 + 40, |byte| *byte = 0);
    let (bench, seen) = bench.reopen(&checkpoint);
    assert_eq!(keys(&seen), [""]);
    let checkpoint = bench.checkpoint(LOG_START);
    let (new, _) = bench.put(b"newer", &noise(600, 4));
    assert_eq!(new.offset, torn.offset);
    // Cut the write to the new record alone: the stale one follows it on the device.
    let stale_from = torn.offset.0 as usize + 624;
    let stale = bench.device.bytes.lock()[stale_from..stale_from + 700].to_vec();
    bench.log.write_out(bench.log.tail()).unwrap();
    bench.device.bytes.lock()[stale_from..stale_from + 700].copy_from_slice(&stale);
    let (bench, seen) = bench.reopen(&checkpoint);
    assert_eq!(keys(&seen), ["", "newer"]);
    assert_eq!(bench.log.tail().0 - LOG_START.0, 8192);
}

#[test]
fn a_stale_segment_behind_a_torn_one_never_comes_back() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    bench
        .log
        .sync(bench.put(b"a", &noise(4096 - 24, 1)).1)
        .unwrap();
    let (torn, _) = bench.put(b"torn", &noise((2 << 20) - 8192 - 20 - 4096, 2));
    bench.put(b"fills", &noise(4096 - 24, 2));
    bench
        .log
        .write_out(bench.put(b"stale", &noise(600, 3)).1)
        .unwrap();
    let segments = bench.log.segments();
    assert_eq!(
        segments.len(),
        2,
        "the stale record stands at the start of the second"
    );
    bench.device.change(torn.offset.0 + 40, |byte| *byte ^= 1);
    let (bench, seen) = bench.reopen(&checkpoint);
    assert_eq!(keys(&seen), ["a"]);
    assert_eq!(bench.log.segments(), segments[..1]);
    let checkpoint = bench.checkpoint(LOG_START);
    bench.put(b"newer", &noise((2 << 20) - 8192 - 24, 4));
    bench.log.write_out(bench.log.tail()).unwrap();
    let (_, end) = checkpoint.replay(&bench.device).unwrap();
    let second = segments[1].0;
    assert_eq!(
        end.history.reserved,
        [second],
        "what the old header names is not of the log"
    );
    let (bench, seen) = bench.reopen(&checkpoint);
    assert_eq!(keys(&seen), ["a", "newer"], "the old header ends the log");
    // The segment is begun anew, and what is written there counts.
    let checkpoint = bench.checkpoint(LOG_START);
    let (_, end) = bench.put(b"last", b"value");
    assert_eq!(bench.log.segments(), segments);
    bench.log.sync(end).unwrap();
    assert_eq!(keys(&bench.reopen(&checkpoint).1), ["a", "newer", "last"]);
}

#[test]
fn a_torn_unit_over_several_segments_is_resumed_where_it_began() {
    for is_late in [false, true] {
        let bench = Setup::default().open();
        let early = bench.checkpoint(LOG_START);
        bench.put(b"a", b"value");
        let (long, _) = bench.put(b"long", &noise(7 << 20, 1));
        bench.log.write_out(bench.log.tail()).unwrap();
        let late = bench.checkpoint(LOG_START);
        let segments = bench.log.segments();
        let third = segments[2].0.offset_bytes() + 9000;
        bench.device.change(third, |byte| *byte ^= 1);
        let checkpoint = if is_late { late } else { early };
        let (again, seen) = bench.reopen(&checkpoint);
        assert_eq!(keys(&seen), ["a"]);
        assert_eq!(again.log.tail(), Lsn(LOG_START.0 + 4096));
        let checkpoint = again.checkpoint(LOG_START);
        let (place, end) = again.put(b"new", &noise(3 << 20, 2));
        assert_eq!(
            again.log.segments(),
            segments[..2],
            "the segments are used again"
        );
        again.log.sync(end).unwrap();
        assert_eq!(
            again.read(place, b"new", 3 << 20).unwrap(),
            noise(3 << 20, 2)
        );
        assert!(again.read(long, b"long", 7 << 20).is_err());
        assert_eq!(keys(&again.reopen(&checkpoint).1), ["a", "new"]);
    }
}

/// A checkpoint from before a run that wrote `key` and `value` is refused once a later run has written, too.
fn assert_refused_behind_a_run(key: &[u8], value: &[u8]) {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    let (_, end) = bench.put(key, value);
    bench.log.sync(end).unwrap();
    let (again, _) = bench.reopen(&checkpoint);
    let newer = again.checkpoint(LOG_START);
    let (_, end) = again.put(b"second", b"value");
    again.log.sync(end).unwrap();
    assert_eq!(newer.replay(&bench.device).unwrap().0.len(), 2);
    let refused = checkpoint.replay(&bench.device).unwrap_err();
    assert_eq!(refused.kind(), kreon_base::ErrorKind::Corruption);
    let told = refused.to_string();
    assert!(told.contains("older than the log"), "{told}");
}

#[test]
fn a_checkpoint_from_before_the_last_run_is_refused() {
    assert_refused_behind_a_run(b"first", b"value");
}

#[test]
fn a_checkpoint_from_before_a_run_that_began_a_segment_is_refused() {
    assert_refused_behind_a_run(b"", &noise((2 << 20) - 4096 - 16, 1));
}

#[test]
fn a_log_that_ends_with_its_segment_goes_on_in_the_next() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    let value = noise((2 << 20) - 4096 - 16, 1);
    let (first, end) = bench.put(b"", &value);
    bench.log.sync(end).unwrap();
    let (again, seen) = bench.reopen(&checkpoint);
    assert_eq!(seen.len(), 1);
    assert_eq!(again.log.tail(), end);
    let checkpoint = again.checkpoint(LOG_START);
    let (second, end) = again.put(b"second", b"value");
    assert_eq!(second.lsn, bench.log.tail());
    again.log.sync(end).unwrap();
    assert_eq!(again.read(first, b"", value.len()).unwrap(), value);
    assert_eq!(keys(&again.reopen(&checkpoint).1), ["", "second"]);
}

#[test]
fn segments_that_were_reserved_ahead_are_used_again_or_told() {
    let bench = Setup::default().open();
    let mut checkpoint = bench.checkpoint(LOG_START);
    let next = checkpoint.record.next.unwrap();
    // As if the checkpoint had come in the middle of a long unit: reserved, but never reached.
    checkpoint
        .segments
        .extend([(next, 2), (SegmentId(30), 3), (SegmentId(31), 9)]);
    let (_, end) = checkpoint.replay(&bench.device).unwrap();
    let first = checkpoint.segments[0].0;
    assert_eq!(end.history.reserved, [first, next, SegmentId(30)]);
    assert_eq!(end.unused, [SegmentId(31)]);
    assert!(end.found.is_empty());
}

#[test]
fn a_reserved_segment_behind_the_end_of_the_volume_is_not_used() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    bench.log.sync(bench.put(b"key", b"value").1).unwrap();
    let next = checkpoint.record.next.unwrap();
    // The volume had grown for the reserved segment, and the growth was lost.
    bench
        .device
        .bytes
        .lock()
        .truncate(next.offset_bytes() as usize);
    let (seen, end) = checkpoint.replay(&bench.device).unwrap();
    assert_eq!(keys(&seen), ["key"]);
    assert!(end.history.reserved.is_empty() && end.found.is_empty());
}

#[test]
fn a_damaged_record_before_the_resume_does_not_make_later_pages_be_read_too_early() {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    let checkpoint = bench.checkpoint(LOG_START);
    let (old, end) = bench.put(b"old", &noise(100, 1));
    bench.log.sync(end).unwrap();
    let (bench, _) = bench.reopen(&checkpoint);
    // Its length now reaches far into what this run writes.
    bench.device.change(old.offset.0 + 5, |byte| *byte = 0xf0);
    let error = bench
        .reader()
        .read_key(&bench.pages, old.offset, 3, &mut Vec::new())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let wrong = bench.read(old, b"old", 60_000).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Corruption);
    let placed: Vec<_> = (0..20)
        .map(|seed| bench.put(b"new", &noise(3000, seed)).0)
        .collect();
    bench.push_out(2);
    for (seed, place) in placed.into_iter().enumerate() {
        assert_eq!(bench.read(place, b"new", 3000).unwrap(), noise(3000, seed));
    }
}
