//! A log whose end lies on the border of two segments.

use kreon_base::SEGMENT_BYTES;
use kreon_format::place_of as place_of_lsn;

use super::*;

/// Bytes of the log's open segment behind its end.
fn rest_bytes(engine: &Engine) -> usize {
    let (_, within) = place_of_lsn(engine.log_tail());
    SEGMENT_BYTES as usize - within as usize
}

/// A region, whose log ends with a record on the border of its first segment; and the length of the value in it.
fn on_border(options: &Options) -> (Bench, Arc<RegionState>, usize) {
    let bench = Bench::open(Image::default(), options.clone()).unwrap();
    let region = bench.engine.region("r").unwrap();
    let (first, _) = place_of_lsn(bench.engine.log_tail());
    let put = |len_bytes: usize| {
        let before = bench.engine.log_tail();
        let value = vec![7; len_bytes];
        bench.put(&region, b"a key", &value).unwrap();
        (bench.engine.log_tail().0 - before.0) as usize - len_bytes
    };
    let mut record_bytes = put(8000);
    while rest_bytes(&bench.engine) >= 16_000 {
        record_bytes = put(8000);
    }
    let len_bytes = rest_bytes(&bench.engine) - record_bytes;
    put(len_bytes);
    let (sequence, _) = place_of_lsn(Lsn(bench.engine.log_tail().0 - 1));
    let (next, _) = place_of_lsn(bench.engine.log_tail());
    assert_eq!((first, sequence, next), (1, 1, 2), "not on the border");
    (bench, region, len_bytes)
}

fn border_options() -> Options {
    Options {
        memory_bytes: 64 << 20,
        l0_bytes: Some(8 << 20),
        ..options()
    }
}

#[test]
fn a_full_segment_keeps_its_blocks_when_the_log_ended_on_its_border() {
    let options = border_options();
    let (bench, _, len_bytes) = on_border(&options);
    bench.engine.sync().unwrap();

    let bench = Bench::open(bench.device.image(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let found = bench.get(&region, b"a key").unwrap();
    assert_eq!(found.map(|value| value.len()), Some(len_bytes));
    let occupied = bench.engine.occupied().unwrap();
    let full = occupied.log.iter().find(|log| log.sequence == 1);
    assert_eq!(full.map(|log| log.bytes), Some(SEGMENT_BYTES));
    let id = full.map(|log| log.segment);
    let backed = occupied
        .backed
        .iter()
        .find(|(segment, _)| Some(*segment) == id);
    assert_eq!(backed.map(|(_, bytes)| *bytes), Some(SEGMENT_BYTES));
}

#[test]
fn an_open_segment_that_is_full_and_dead_stays_until_the_next_record() {
    let options = border_options();
    let (bench, region, len_bytes) = on_border(&options);
    bench.engine.compact_all(&mut |_| ()).unwrap();
    let sequences = |bench: &Bench| -> Vec<u64> {
        let occupied = bench.engine.occupied().unwrap();
        occupied.log.iter().map(|log| log.sequence).collect()
    };
    assert!(sequences(&bench).contains(&1));
    assert_eq!(bench.problems(), Vec::<String>::new());

    let abandoned = Bench::open(bench.device.image(), options.clone()).unwrap();
    assert_eq!(abandoned.problems(), Vec::<String>::new());
    bench.put(&region, b"another", b"value").unwrap();
    bench.engine.checkpoint().unwrap();
    assert!(!sequences(&bench).contains(&1));

    let bench = Bench::open(bench.closed(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let found = bench.get(&region, b"a key").unwrap();
    assert_eq!(found.map(|value| value.len()), Some(len_bytes));
    let found = bench.get(&region, b"another").unwrap();
    assert_eq!(found.as_deref(), Some(b"value".as_slice()));
    assert_eq!(bench.problems(), Vec::<String>::new());
}
