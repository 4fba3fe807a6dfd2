//! Segments that are used again while their buffers are in memory.

use super::*;
use kreon_base::LogOffset;

const BUFFERS: usize = 10;

fn bench() -> Bench {
    Setup {
        options: with_buffers(BUFFERS),
        ..Setup::default()
    }
    .open()
}

/// Appends until `segment`, which the log does not have, is its newest.
fn use_again(bench: &Bench, segment: SegmentId) {
    bench.space.returned.lock().push(segment);
    while bench.log.segments().last().unwrap().0 != segment {
        bench.put(b"fill", &noise(60_000, 2));
    }
}

/// Appends until the newest segment is another, and releases it.
fn leave_and_release(bench: &Bench, segment: SegmentId) {
    while bench.log.segments().last().unwrap().0 == segment {
        bench.put(b"fill", &noise(60_000, 3));
    }
    bench.log.sync(bench.log.tail()).unwrap();
    bench.log.release(segment).unwrap();
}

#[test]
fn a_segment_is_read_as_it_was_written_last_however_many_of_its_buffers_live() {
    let bench = bench();
    let (first, _) = bench.put(b"key", &noise(100, 10));
    let segment = first.offset.segment();
    for round in 1..6 {
        leave_and_release(&bench, segment);
        let gone = bench.read(first, b"key", 100).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::Corruption);
        use_again(&bench, segment);
        let value = noise(100, 10 + round);
        let (place, _) = bench.put(b"key", &value);
        assert_eq!(place.offset.segment(), segment);
        assert_eq!(
            bench.read(place, b"key", 100).unwrap(),
            value,
            "use {round}"
        );
        assert_eq!(
            bench.reader().on_device(place.offset, 103),
            None,
            "not on the device"
        );
    }
    // Each use took two segments: all of them are still in memory, and nothing of this came from the device.
    assert!(bench.pages.kept.lock().is_empty());
}

#[test]
fn moved_records_are_not_read_from_the_buffer_of_an_earlier_use() {
    let bench = bench();
    let (first, _) = bench.put(b"key", b"value");
    let segment = first.offset.segment();
    leave_and_release(&bench, segment);
    use_again(&bench, segment);
    leave_and_release(&bench, segment);
    bench.space.returned.lock().push(segment);
    let mut stream = MovedStream::new(&[], 64 << 10, Backing::Ahead);
    let record = MovedRecord {
        region: REGION,
        is_deletion: false,
        key: b"key",
        payload_bytes: 103,
        has_attributes: false,
    };
    let payload: Vec<u8> = b"key".iter().copied().chain(noise(100, 5)).collect();
    let fill = |room: &mut [u8]| {
        room.copy_from_slice(&payload);
        Ok(())
    };
    let offset = stream
        .append(&bench.log, &bench.pages, &record, fill)
        .unwrap();
    stream.flush(&bench.log, &bench.pages).unwrap();
    assert_eq!(offset.segment(), segment);
    let place = Place {
        lsn: Lsn(0),
        offset,
    };
    assert!(bench.reader().on_device(offset, 103).is_some());
    assert_eq!(bench.read(place, b"key", 100).unwrap(), noise(100, 5));
}

#[test]
fn a_buffer_that_comes_into_use_again_shows_its_new_segment_only() {
    let bench = bench();
    let mut newest = Vec::new();
    // Far more segments than buffers, some of them used again and again.
    for round in 0..4 * BUFFERS {
        let (place, _) = bench.put(b"key", &noise(50, round));
        newest.retain(|(at, _): &(Place, usize)| at.offset.segment() != place.offset.segment());
        newest.push((place, round));
        let segment = place.offset.segment();
        while bench.log.segments().last().unwrap().0 == segment {
            bench.put(b"fill", &noise(60_000, round));
        }
        bench.log.sync(bench.log.tail()).unwrap();
        if newest.len() > 3 {
            let (old, _) = newest.remove(round % 3);
            let segment = old.offset.segment();
            bench.log.release(segment).unwrap();
            bench.space.returned.lock().push(segment);
            bench.pages.kept.lock().retain(|page, _| {
                LogOffset(page * kreon_base::PAGE_BYTES as u64).segment() != segment
            });
        }
        for (place, round) in &newest {
            assert_eq!(bench.read(*place, b"key", 50).unwrap(), noise(50, *round));
        }
    }
}
