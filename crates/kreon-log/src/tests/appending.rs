use super::*;
use crate::cut::WHOLE_UNIT_BYTES_MAX;

const SEGMENT: usize = SEGMENT_BYTES as usize;

/// Lengths around every border that matters.
fn edge_lengths() -> Vec<usize> {
    let borders = [
        0,
        8,
        480,
        4096 - 16,
        4096,
        WHOLE_UNIT_BYTES_MAX,
        SEGMENT - 4096,
        SEGMENT,
    ];
    let mut lengths: Vec<usize> = borders
        .iter()
        .flat_map(|border| (border.saturating_sub(26)..border + 10).step_by(3))
        .collect();
    lengths.dedup();
    lengths
}

#[test]
fn values_of_every_length_come_back_from_buffers_and_from_the_device() {
    let bench = Setup {
        segments: 10_000,
        ..Setup::default()
    }
    .open();
    let mut placed = Vec::new();
    for (seed, len) in edge_lengths().into_iter().enumerate() {
        if bench.space.given.load(Ordering::SeqCst) > SEGMENTS - 12 {
            break;
        }
        let (key, value) = (noise(seed % 40, seed), noise(len, seed));
        let (place, _) = bench.put(&key, &value);
        assert_eq!(
            bench.read(place, &key, len).unwrap(),
            value,
            "{len} bytes, in memory"
        );
        placed.push((place, key, value));
    }
    assert!(placed.len() > 80);
    bench.push_out(4);
    for (place, key, value) in &placed {
        assert_eq!(
            &bench.read(*place, key, value.len()).unwrap(),
            value,
            "{}",
            value.len()
        );
        let mut into = vec![1, 2, 3];
        let at = value_at(*place, key, value.len());
        bench
            .reader()
            .read_value_into(&bench.pages, &at, &mut into)
            .unwrap();
        assert_eq!(&into, value);
    }
}

#[test]
fn every_rest_of_a_segment_takes_a_spanning_record() {
    // The first record leaves `rest` bytes of the segment; the second needs more than one segment.
    for rest in (0..64).step_by(8) {
        let bench = Setup::default().open();
        bench.put(b"", &noise(SEGMENT - 4096 - 16 - rest, 1));
        let (key, value) = (noise(9, 3), noise(SEGMENT + 5, 2));
        let (place, end) = bench.put(&key, &value);
        assert_eq!(bench.log.tail(), end);
        assert_eq!(
            bench.read(place, &key, value.len()).unwrap(),
            value,
            "rest {rest}"
        );
        let charged: Vec<_> = bench
            .reader()
            .charges(place.offset, 9, value.len() as u32)
            .collect();
        let fragments = charged.len();
        let sum: u32 = charged.iter().map(|(_, bytes)| bytes).sum();
        assert!(sum as usize >= 9 + value.len() + 16 * fragments);
        assert!(sum as usize <= 9 + value.len() + 16 * fragments + 7);
        let order: Vec<_> = bench
            .log
            .segments()
            .iter()
            .map(|(segment, _)| *segment)
            .collect();
        let first = order
            .iter()
            .position(|segment| *segment == charged[0].0)
            .unwrap();
        assert!(
            charged
                .iter()
                .map(|(segment, _)| segment)
                .eq(&order[first..first + fragments])
        );
    }
}

#[test]
fn units_up_to_64_kib_are_never_cut() {
    let bench = Setup::default().open();
    let value = noise(60_000, 5);
    for _ in 0..100 {
        let (place, _) = bench.put(b"key", &value);
        assert_eq!(bench.reader().charges(place.offset, 3, 60_000).count(), 1);
    }
    assert_eq!(bench.log.segments().len(), 3);
}

#[test]
fn lsns_grow_and_the_end_of_a_unit_is_the_start_of_the_next() {
    let bench = Setup::default().open();
    assert_eq!(bench.log.tail(), LOG_START);
    let (first, end) = bench.put(b"a", b"1");
    assert_eq!(first.lsn, LOG_START);
    assert_eq!(bench.log.tail(), end);
    let (second, _) = bench.put(b"b", b"2");
    assert_eq!(second.lsn, end);
}

#[test]
fn a_batch_tells_every_place_and_spans_segments_if_it_must() {
    let bench = Setup::default().open();
    let keys: Vec<_> = (0..5000).map(|i| format!("key {i}").into_bytes()).collect();
    let value = noise(1000, 1);
    let unit: Vec<_> = keys.iter().map(|key| put(key, &value)).collect();
    let mut places = Vec::new();
    let end = bench.log.append(&unit, |place| places.push(place)).unwrap();
    assert_eq!(end, bench.log.tail());
    assert_eq!(places.len(), keys.len());
    assert!(places.is_sorted_by(|a, b| a.lsn < b.lsn));
    for (key, place) in keys.iter().zip(places) {
        assert_eq!(bench.read(place, key, 1000).unwrap(), value);
    }
}

#[test]
fn an_empty_unit_changes_nothing() {
    let bench = Setup::default().open();
    assert_eq!(bench.log.append(&[], |_| panic!()).unwrap(), LOG_START);
}

#[test]
fn lengths_out_of_range_are_refused() {
    let bench = Setup::default().open();
    let key = vec![0; kreon_base::KEY_BYTES_MAX + 1];
    let long = bench.log.append_one(&put(&key, b"")).unwrap_err();
    assert_eq!(long.kind(), ErrorKind::InvalidArgument);
    let deletion = NewRecord {
        kind: RecordKind::Delete,
        ..put(b"k", b"value")
    };
    assert_eq!(
        bench.log.append_one(&deletion).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(bench.log.tail(), LOG_START);
}

#[test]
fn a_full_volume_fails_cleanly_and_the_log_goes_on_when_there_is_room() {
    let bench = Setup {
        segments: 2,
        ..Setup::default()
    }
    .open();
    let value = noise(50_000, 1);
    let mut puts = 0;
    let error = loop {
        match bench.log.append_one(&put(b"key", &value)) {
            Ok(_) => puts += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((puts, error.kind()), (41, ErrorKind::OutOfSpace));
    let tail = bench.log.tail();
    let long = noise(3 << 20, 2);
    assert_eq!(
        bench
            .log
            .append_one(&put(b"key", &long))
            .unwrap_err()
            .kind(),
        ErrorKind::OutOfSpace
    );
    assert_eq!(bench.log.tail(), tail, "nothing was written");
    assert_eq!(
        bench.space.given.load(Ordering::SeqCst),
        2,
        "and nothing taken"
    );
    bench.put(b"small", b"still fits");
    let deletion = NewRecord {
        kind: RecordKind::Delete,
        ..put(&[7; 60_000], b"")
    };
    bench.log.append_one(&deletion).unwrap();
    assert_eq!(bench.space.asked.lock().last().unwrap().1, Purpose::Delete);
    bench.space.limit.store(12, Ordering::SeqCst);
    bench.put(b"key", &long);
    bench.log.sync(bench.log.tail()).unwrap();
}

#[test]
fn ten_mib_values_pass_through_two_buffers() {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    let values: Vec<_> = (0..3).map(|seed| noise(10 << 20, seed)).collect();
    let places: Vec<_> = values
        .iter()
        .map(|value| bench.put(b"long", value).0)
        .collect();
    for (place, value) in places.iter().zip(&values) {
        assert_eq!(&bench.read(*place, b"long", value.len()).unwrap(), value);
    }
}

#[test]
fn a_closure_that_holds_a_buffer_may_append_more_than_all_buffers_hold() {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    let (place, _) = bench.put(b"key", b"value");
    let at = value_at(place, b"key", 5);
    let read = bench.reader().with_value(
        &bench.pages,
        &at,
        Show(|value: &[u8]| {
            for seed in 0..4 {
                bench.put(b"long", &noise(3 << 20, seed));
            }
            value.to_vec()
        }),
    );
    assert_eq!(read.unwrap(), b"value");
}

#[test]
fn a_released_segment_is_forgotten_even_while_its_buffer_lives() {
    let bench = Setup::default().open();
    let (place, _) = bench.put(b"key", b"value");
    bench.put(b"long", &noise(3 << 20, 1));
    let segment = place.offset.segment();
    assert_eq!(
        bench.log.release(segment).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    bench.log.sync(bench.log.tail()).unwrap();
    bench.log.release(segment).unwrap();
    assert_eq!(
        bench.read(place, b"key", 5).unwrap_err().kind(),
        ErrorKind::Corruption
    );
    assert!(bench.log.segments().iter().all(|(s, _)| *s != segment));
    bench.push_out(4);
    let open = bench.log.segments().last().unwrap().0;
    assert!(bench.log.release(open).is_err());
}

#[test]
fn a_segment_that_comes_back_while_its_old_buffer_lives_is_read_anew() {
    let bench = Setup {
        options: with_buffers(8),
        ..Setup::default()
    }
    .open();
    let (old, _) = bench.put(b"key", b"old value");
    let segment = old.offset.segment();
    bench.put(b"long", &noise(3 << 20, 1));
    bench.log.sync(bench.log.tail()).unwrap();
    bench.log.release(segment).unwrap();
    bench.space.returned.lock().push(segment);
    while bench.log.segments().last().unwrap().0 != segment {
        bench.put(b"fill", &noise(60_000, 2));
    }
    let (new, _) = bench.put(b"key", b"new value");
    assert_eq!(new.offset.segment(), segment);
    assert_eq!(bench.read(new, b"key", 9).unwrap(), b"new value");
    let first = kreon_base::LogOffset(segment.offset_bytes() + 4096);
    let at = ValueAt {
        offset: first,
        ..value_at(new, b"fill", 60_000)
    };
    let read = bench.reader().with_value(&bench.pages, &at, Own);
    assert_eq!(read.unwrap(), noise(60_000, 2));
}

#[test]
fn padding_ends_at_the_border_of_a_block() {
    let bench = Setup::default().open();
    let (_, end) = bench.put(b"key", b"value");
    let padded = bench.log.pad_to_block(end);
    assert_eq!((padded.0 % 512, bench.log.tail()), (0, padded));
    assert_eq!(bench.log.pad_to_block(padded), padded);
}

#[test]
#[should_panic(expected = "behind the tail")]
fn padding_behind_the_tail_is_refused() {
    let bench = Setup::default().open();
    bench.log.pad_to_block(Lsn(bench.log.tail().0 + 8));
}
