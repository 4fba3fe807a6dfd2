use super::*;

/// Appends the unit of these keys, each with the same value.
fn batch(bench: &Bench, keys: &[&str], value: &[u8]) -> Lsn {
    let unit: Vec<_> = keys.iter().map(|key| put(key.as_bytes(), value)).collect();
    bench.log.append(&unit, |_| {}).unwrap()
}

#[test]
fn replay_gives_every_record_with_its_place_and_only_short_values() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    let (short, _) = bench.put(b"short", &noise(100, 1));
    let (long, _) = bench.put(b"long", &noise(101, 2));
    batch(&bench, &["a", "b"], b"in a batch");
    let deletion = NewRecord {
        kind: RecordKind::Delete,
        ..put(b"gone", b"")
    };
    bench.log.append_one(&deletion).unwrap();
    let (spanning, end) = bench.put(b"spanning", &noise(5 << 20, 3));
    bench.log.write_out(end).unwrap();
    let (seen, end) = checkpoint.replay(&bench.device).unwrap();
    assert_eq!(keys(&seen), ["short", "long", "a", "b", "gone", "spanning"]);
    assert_eq!(
        (seen[0].lsn, seen[0].value.clone()),
        (short.lsn, Some(noise(100, 1)))
    );
    assert_eq!(
        (seen[1].lsn, seen[1].value.clone(), seen[1].value_bytes),
        (long.lsn, None, 101)
    );
    assert_eq!(seen[3].value.as_deref(), Some(&b"in a batch"[..]));
    assert_eq!(
        (seen[4].value_bytes, seen[4].value.as_deref()),
        (0, Some(&b""[..]))
    );
    assert_eq!((seen[5].lsn, seen[5].value_bytes), (spanning.lsn, 5 << 20));
    assert_eq!(end.record_count, 6);
    assert_eq!(end.history.end, bench.log.tail());
}

#[test]
fn replay_may_start_at_any_record() {
    let bench = Setup::default().open();
    let mut starts = vec![bench.put(b"0", b"value").0.lsn];
    let unit: Vec<_> = [b"1", b"2", b"3"]
        .iter()
        .map(|key| put(*key, b"value"))
        .collect();
    bench
        .log
        .append(&unit, |place| starts.push(place.lsn))
        .unwrap();
    starts.push(bench.put(b"4", &noise(3 << 20, 1)).0.lsn);
    starts.push(bench.put(b"5", b"value").0.lsn);
    starts.push(bench.log.tail());
    bench.log.sync(bench.log.tail()).unwrap();
    for (first, marker) in starts.into_iter().enumerate() {
        let (seen, _) = bench.checkpoint(marker).replay(&bench.device).unwrap();
        let expected: Vec<_> = (first..6).map(|key| key.to_string()).collect();
        assert_eq!(keys(&seen), expected);
    }
}

#[test]
fn segments_behind_the_checkpoint_are_found_by_the_chain_of_headers() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    for key in 0..150 {
        bench.put(key.to_string().as_bytes(), &noise(60_000, key));
    }
    bench.log.write_out(bench.log.tail()).unwrap();
    let (seen, end) = checkpoint.replay(&bench.device).unwrap();
    assert_eq!(seen.len(), 150);
    let segments = bench.log.segments();
    assert_eq!(segments.len(), 5);
    assert_eq!(end.history.segments, segments);
    let next = bench.log.checkpoint_record(LOG_START).next.unwrap();
    assert_eq!(end.history.reserved, [next]);
    let mut found = segments[1..].to_vec();
    found.push((next, 6));
    found.sort();
    assert_eq!(end.found, found);
    assert!(end.unused.is_empty());
}

#[test]
fn a_log_cut_at_any_byte_gives_the_whole_units_before() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    let mut ends = vec![(bench.log.tail(), 0)];
    for seed in 0..4 {
        let value = noise(seed * 17, seed);
        let unit: Vec<_> = (0..seed % 2 + 1).map(|_| put(b"key", &value)).collect();
        let payload_end = Mutex::new(Lsn(0));
        let end = bench
            .log
            .append(&unit, |place| {
                *payload_end.lock() = Lsn(place.lsn.0 + 16 + 3 + value.len() as u64);
            })
            .unwrap();
        if seed % 2 == 1 {
            bench.log.write_out(end).unwrap();
        }
        let records = ends.last().unwrap().1 + unit.len();
        ends.push((*payload_end.lock(), records));
    }
    let (seen, _) = checkpoint.replay(&bench.device).unwrap();
    let start = checkpoint.segments[0].0.offset_bytes() + 4096;
    for cut in (0..bench.log.tail().0 - LOG_START.0).rev() {
        bench.device.change(start + cut, |byte| *byte = 0);
        let (found, end) = checkpoint.replay(&bench.device).unwrap();
        let whole = ends
            .iter()
            .rev()
            .find(|(end, _)| end.0 - LOG_START.0 <= cut)
            .unwrap();
        assert_eq!(found, seen[..whole.1], "cut at byte {cut}");
        assert!(end.history.end.0 - LOG_START.0 <= cut.next_multiple_of(512));
    }
}

#[test]
fn a_log_cut_at_any_block_of_several_segments_gives_a_prefix_of_its_units() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    let mut units = Vec::new();
    for seed in 0..20 {
        let len = [300_000, 70_000, 5, 2_500_000][seed % 4] + seed * 100;
        let (_, end) = bench.put(seed.to_string().as_bytes(), &noise(len, seed));
        units.push(end);
    }
    bench.log.write_out(bench.log.tail()).unwrap();
    let segments = bench.log.segments();
    // Every 31st block, counted from behind; the blocks after it are gone already.
    let blocks = segments.iter().flat_map(|(segment, sequence)| {
        (0..4096).map(move |block| (segment.offset_bytes() + block * 512, *sequence, block * 512))
    });
    let blocks: Vec<_> = blocks.collect();
    for (index, (offset, sequence, within)) in blocks.into_iter().enumerate().rev() {
        let start = offset as usize;
        bench.device.bytes.lock()[start..start + 512].fill(0);
        if !index.is_multiple_of(311) && within != 0 {
            continue;
        }
        let (seen, end) = checkpoint.replay(&bench.device).unwrap();
        let cut = kreon_format::lsn_at(sequence, within as u32);
        let whole = units.iter().filter(|end| **end <= cut).count();
        let expected: Vec<_> = (0..whole).map(|seed| seed.to_string()).collect();
        assert_eq!(keys(&seen), expected, "cut at {cut}");
        assert!(end.history.end <= cut);
    }
}

#[test]
fn damage_before_the_durable_position_of_the_checkpoint_is_corruption() {
    let bench = Setup::default().open();
    for key in ["a", "b", "c"] {
        batch(&bench, &[key], &noise(30, 1));
    }
    bench.log.sync(bench.log.tail()).unwrap();
    let checkpoint = bench.checkpoint(LOG_START);
    let segment = checkpoint.segments[0].0.offset_bytes();
    for at in [
        0,
        8,
        4095,
        4096,
        4100,
        4096 + 17,
        4096 + 60,
        4096 + 150,
        4096 + 300,
    ] {
        bench.device.change(segment + at, |byte| *byte ^= 0x10);
        let error = checkpoint.replay(&bench.device).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("lsn"), "{error}");
        bench.device.change(segment + at, |byte| *byte ^= 0x10);
    }
    let (place, end) = bench.put(b"unsynced", b"value");
    bench.log.write_out(end).unwrap();
    let at = place.offset.0 + 20;
    bench.device.change(at, |byte| *byte ^= 0x10);
    let (seen, _) = checkpoint.replay(&bench.device).unwrap();
    assert_eq!(keys(&seen), ["a", "b", "c"], "behind it, damage is the end");
}

#[test]
fn damage_that_a_later_sync_proves_to_be_durable_is_corruption() {
    for gap in [0, 3 << 20] {
        let bench = Setup::default().open();
        let checkpoint = bench.checkpoint(LOG_START);
        let (first, end) = bench.put(b"first", &noise(40, 1));
        bench.log.sync(end).unwrap();
        bench.put(b"gap", &noise(gap, 2));
        let (second, end) = bench.put(b"second", &noise(40, 3));
        bench.log.sync(end).unwrap();
        assert_eq!(checkpoint.replay(&bench.device).unwrap().0.len(), 3);
        bench.device.change(first.offset.0 + 30, |byte| *byte ^= 1);
        let error = checkpoint.replay(&bench.device).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "gap {gap}");
        bench.device.change(first.offset.0 + 30, |byte| *byte ^= 1);
        bench.device.change(second.offset.0 + 30, |byte| *byte ^= 1);
        let (seen, _) = checkpoint.replay(&bench.device).unwrap();
        assert_eq!(
            keys(&seen),
            ["first", "gap"],
            "nothing tells that the last sync ended"
        );
    }
}

#[test]
fn a_damaged_segment_header_that_was_durable_is_corruption() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    bench.put(b"long", &noise(3 << 20, 1));
    let (_, end) = bench.put(b"a", b"value");
    bench.log.sync(end).unwrap();
    let (_, end) = bench.put(b"b", b"value");
    bench.log.sync(end).unwrap();
    let second = bench.log.segments()[1].0;
    bench
        .device
        .change(second.offset_bytes() + 30, |byte| *byte ^= 1);
    let error = checkpoint.replay(&bench.device).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

#[test]
fn a_failed_read_is_no_end_of_the_log() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    bench.put(b"long", &noise(5 << 20, 1));
    bench.log.write_out(bench.log.tail()).unwrap();
    // Four segments, and once more the page where the log ends.
    for reads in 0..5 {
        *bench.device.reads_left.lock() = Some(reads);
        let error = checkpoint.replay(&bench.device).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "read {reads}: {error}");
    }
    *bench.device.reads_left.lock() = Some(5);
    assert_eq!(checkpoint.replay(&bench.device).unwrap().0.len(), 1);
}

#[test]
fn an_error_of_the_visitor_ends_the_replay() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    let (_, end) = bench.put(b"key", b"value");
    bench.log.write_out(end).unwrap();
    let start = ReplayStart {
        has_image: false,
        device: &*bench.device,
        store: STORE,
        record: &checkpoint.record,
        newest: super::newest(&checkpoint.record),
        segments: &checkpoint.segments,
        taken: &[],
        value_bytes_max: 0,
        backing: Backing::Ahead,
    };
    let outcome = replay(&start, |_| Err(Error::new(ErrorKind::Closed, "enough")));
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_volume_that_ends_before_a_reserved_segment_is_no_error() {
    let bench = Setup::default().open();
    let checkpoint = bench.checkpoint(LOG_START);
    let (_, end) = bench.put(b"key", b"value");
    bench.log.write_out(end).unwrap();
    let last = checkpoint.segments[0].0;
    bench
        .device
        .bytes
        .lock()
        .truncate(last.offset_bytes() as usize + (1 << 20));
    assert_eq!(checkpoint.replay(&bench.device).unwrap().0.len(), 1);
}

#[test]
fn a_log_that_never_had_a_segment_is_empty() {
    let mut record = Setup::default().open().log.checkpoint_record(LOG_START);
    (record.open, record.next) = (None, None);
    let (seen, end) = replay_with(&MemoryDevice::new(512, 1), &record, &[]).unwrap();
    assert!(seen.is_empty());
    assert_eq!(end.history.end, LOG_START);
}
