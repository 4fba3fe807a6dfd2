use super::*;

/// A log with one record on the device only, and the record's place.
fn written_out(key: &[u8], value: &[u8]) -> (Bench, Place) {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    let (place, _) = bench.put(key, value);
    bench.push_out(2);
    (bench, place)
}

#[test]
fn a_flipped_bit_anywhere_in_a_record_is_corruption() {
    let (key, value) = (b"key", noise(60, 1));
    let (bench, place) = written_out(key, &value);
    for at in place.offset.0..place.offset.0 + 80 {
        for bit in [0, 3, 7] {
            bench.device.change(at, |byte| *byte ^= 1 << bit);
            bench.pages.kept.lock().clear();
            let error = bench.read(place, key, 60).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "byte {at}: {error}");
            bench.device.change(at, |byte| *byte ^= 1 << bit);
        }
    }
    bench.pages.kept.lock().clear();
    assert_eq!(bench.read(place, key, 60).unwrap(), value);
}

#[test]
fn a_pointer_to_another_record_is_corruption_and_says_where() {
    let (bench, place) = written_out(b"some key", b"value");
    let read = |at: ValueAt<'_>| {
        bench
            .reader()
            .with_value(&bench.pages, &at, Show(<[u8]>::len))
            .unwrap_err()
    };
    let right = value_at(place, b"some key", 5);
    let segment = place.offset.segment();
    let wrong = [
        ValueAt {
            region: RegionId(8),
            ..right
        },
        ValueAt {
            key: b"same len",
            ..right
        },
        ValueAt {
            key: b"some",
            value_bytes: 9,
            ..right
        },
        ValueAt {
            value_bytes: 6,
            ..right
        },
        ValueAt {
            value_bytes: 3 << 20,
            ..right
        },
        ValueAt {
            offset: kreon_base::LogOffset(place.offset.0 + 8),
            ..right
        },
        ValueAt {
            offset: kreon_base::LogOffset(segment.offset_bytes()),
            ..right
        },
        ValueAt {
            offset: kreon_base::LogOffset(0),
            ..right
        },
    ];
    for at in wrong {
        let error = read(at);
        assert_eq!(error.kind(), ErrorKind::Corruption, "{at:?}");
        let text = error.to_string();
        assert!(
            text.contains("segment") && text.contains("offset") && text.contains("s"),
            "{text}"
        );
    }
    let text = read(ValueAt {
        key: b"same len",
        ..right
    })
    .to_string();
    assert!(
        text.contains("\"same len\"") && text.contains(&segment.to_string()),
        "{text}"
    );
}

#[test]
fn the_key_of_a_deletion_and_of_a_long_record_can_be_read() {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    let long_key = noise(64 << 10, 9);
    let deletion = NewRecord {
        kind: RecordKind::Delete,
        ..put(&long_key, b"")
    };
    let (deleted, _) = bench.log.append_one(&deletion).unwrap();
    // The key itself is cut by the end of the segment.
    let rest = (2 << 20) - bench.log.tail().0 as usize % ((2 << 20) - 4096) - 4096;
    bench.put(b"", &noise(rest - 16 - 4096, 3));
    let value = noise(3 << 20, 4);
    let (cut, _) = bench.put(&long_key, &value);
    assert!(
        bench
            .reader()
            .charges(cut.offset, 64 << 10, 3 << 20)
            .next()
            .unwrap()
            .1
            < 64 << 10
    );
    for round in 0..2 {
        let mut key = vec![1];
        bench
            .reader()
            .read_key(&bench.pages, deleted.offset, 64 << 10, &mut key)
            .unwrap();
        assert_eq!(key, long_key, "round {round}");
        bench
            .reader()
            .read_key(&bench.pages, cut.offset, 64 << 10, &mut key)
            .unwrap();
        assert_eq!(key, long_key, "round {round}");
        assert_eq!(bench.read(cut, &long_key, value.len()).unwrap(), value);
        let shorter = bench
            .reader()
            .read_key(&bench.pages, cut.offset, 1000, &mut key);
        assert_eq!(shorter.unwrap_err().kind(), ErrorKind::Corruption);
        bench.push_out(2);
    }
    let error = bench.read(deleted, &long_key, 0).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Corruption,
        "a deletion has no value"
    );
}

#[test]
fn damaged_lengths_never_read_beyond_the_segment() {
    let (bench, place) = written_out(b"key", b"value");
    for byte in 4..8 {
        bench
            .device
            .change(place.offset.0 + byte, |byte| *byte = 0xff);
        bench.pages.kept.lock().clear();
        let error = bench
            .reader()
            .read_key(&bench.pages, place.offset, 3, &mut Vec::new());
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Corruption);
    }
}

#[test]
fn a_pointer_to_filler_is_corruption() {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    let (place, end) = bench.put(b"key", b"value");
    // The flush fills the block up.
    bench.log.sync(end).unwrap();
    let filler = Place {
        lsn: end,
        offset: kreon_base::LogOffset(place.offset.0 + end.0 - place.lsn.0),
    };
    // As long as a record in its place would be: a shorter one is cut off.
    let value_bytes = 512 - filler.offset.0 as usize % 512 - 16 - 3;
    for round in 0..2 {
        let read = bench.read(filler, b"key", value_bytes).unwrap_err();
        let mut key = Vec::new();
        let pages = &bench.pages;
        let keyed = bench.reader().read_key(pages, filler.offset, 3, &mut key);
        for error in [read, keyed.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Corruption, "round {round}");
            assert!(error.to_string().contains("filler"), "{error}");
        }
        bench.push_out(2);
    }
    assert_eq!(bench.read(place, b"key", 5).unwrap(), b"value");
}

#[test]
fn a_pointer_into_a_long_record_is_corruption() {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    let value = noise(7 << 20, 5);
    let (place, _) = bench.put(b"key", &value);
    let second = bench.log.segments()[1].0;
    let inside = Place {
        lsn: place.lsn,
        offset: kreon_base::LogOffset(
            second.offset_bytes() + u64::from(super::super::cut::PAYLOAD_START),
        ),
    };
    let read = bench.read(inside, b"key", value.len() / 2).unwrap_err();
    let pages = &bench.pages;
    let keyed = bench
        .reader()
        .read_key(pages, inside.offset, 3, &mut Vec::new());
    for error in [read, keyed.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("stands here"), "{error}");
    }
    assert_eq!(bench.read(place, b"key", value.len()).unwrap(), value);
}
