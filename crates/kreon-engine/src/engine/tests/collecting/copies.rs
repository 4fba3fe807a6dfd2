//! Copies of records: of the one that is meant, and never of another that stands in its place.

use kreon_base::{Attributes, LogOffset};
use kreon_device::AlignedBuf;
use kreon_format::place_of;

use super::*;
use crate::maintenance::gc::candidates::Candidates;
use crate::maintenance::gc::copy::copy;
use crate::maintenance::gc::judge::Live;

impl Bench {
    /// Where the records of the log begin, in its order.
    fn records(&self) -> Vec<LogOffset> {
        let log = &self.engine.subsystems.storage.log;
        let mut buffer = AlignedBuf::new(64 << 10);
        let mut starts = Vec::new();
        for (segment, sequence) in log.segments() {
            log.reader()
                .fragments_of(segment, sequence, &mut buffer, |offset, header, _| {
                    starts.extend(header.starts_record.then_some(offset));
                    Ok(())
                })
                .unwrap();
        }
        starts
    }

    /// Copies the record of `key` as if it stood at `offset`; how many there are then.
    fn copy_of(
        &self,
        region: &RegionState,
        key: &[u8],
        value_bytes: usize,
        offset: LogOffset,
    ) -> Result<usize> {
        let storage = &self.engine.subsystems.storage;
        let mut candidates = Candidates::default();
        candidates.push(region.id, key, offset);
        let live = Live {
            attributes: Attributes::NONE,
            has_expired: false,
            index: 0,
            lsn: Lsn(0),
            value_bytes: Some(value_bytes as u32),
        };
        let mut stream = storage.moved.lock();
        let mut buffer = AlignedBuf::new(64 << 10);
        let copied = copy(storage, &mut stream, &candidates, &[live], &mut buffer)?;
        Ok(copied.len())
    }

    /// Puts `keys` with values of the same length and copies the first in the place of the last.
    fn copy_first_as_last(&self, keys: [&[u8]; 2], value_bytes: usize, before_last: usize) {
        let region = self.engine.region("r").unwrap();
        self.put(&region, keys[0], &vec![1; value_bytes]).unwrap();
        self.put(&region, b"between", &vec![2; before_last])
            .unwrap();
        self.put(&region, keys[1], &vec![3; value_bytes]).unwrap();
        self.engine.sync().unwrap();
        let [.., first, _, last] = self.records()[..] else {
            panic!("three records");
        };
        for (key, offset) in [(keys[0], last), (keys[1], first)] {
            let error = self.copy_of(&region, key, value_bytes, offset).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        }
        for (key, offset) in [(keys[0], first), (keys[1], last)] {
            assert_eq!(self.copy_of(&region, key, value_bytes, offset).unwrap(), 1);
        }
    }
}

#[test]
fn another_record_of_the_same_region_and_length_is_not_copied() {
    let bench = Bench::open(Image::default(), driven()).unwrap();
    bench.copy_first_as_last([b"key a", b"key b"], 500, 500);
}

#[test]
fn another_record_of_several_pieces_whose_key_is_cut_is_not_copied() {
    let bench = Bench::open(Image::default(), driven()).unwrap();
    let key = |last: u8| [&[b'k'; 60_000][..], &[last]].concat();
    let (first, last) = (key(1), key(2));
    let value_bytes = 3 << 20;
    // The last one starts so near to the end of a segment that its key goes on in the next.
    let (_, start) = place_of(bench.engine.subsystems.storage.log.tail());
    let taken = u64::from(start) + (first.len() + value_bytes) as u64;
    let rest = SEGMENT_BYTES - taken % SEGMENT_BYTES;
    let before_last = (rest + SEGMENT_BYTES - 50_000) as usize;
    bench.copy_first_as_last([&first, &last], value_bytes, before_last);
    let start = bench.records()[3].within_segment();
    let rest = SEGMENT_BYTES - u64::from(start);
    assert!(rest < 60_000, "the key is not cut: {rest}");
}

/// Moves the record of a key while `meanwhile` runs between its copy and its insert; how many were moved and skipped.
fn moved_while(meanwhile: impl FnOnce(&Bench, &RegionState)) -> (u64, u64) {
    let bench = Bench::open(Image::default(), driven()).unwrap();
    let region = bench.engine.region("r").unwrap();
    bench.put(&region, b"key", &[1; 500]).unwrap();
    bench.engine.checkpoint().unwrap();
    let subsystems = &bench.engine.subsystems;
    let mut candidates = Candidates::default();
    candidates.push(region.id, b"key", *bench.records().last().unwrap());
    let mut buffer = AlignedBuf::new(64 << 10);
    let gc = &subsystems.maintenance.gc;
    let moved = gc.move_by(&candidates, |stream, live| {
        let copied = copy(&subsystems.storage, stream, &candidates, live, &mut buffer)?;
        meanwhile(&bench, &region);
        Ok(copied)
    });
    let moved = moved.unwrap();
    let value = if moved.records == 1 { 1 } else { 2 };
    for _ in 0..2 {
        assert_eq!(bench.get(&region, b"key").unwrap(), Some(vec![value; 500]));
        bench.engine.checkpoint().unwrap();
    }
    assert!(bench.problems().is_empty());
    (moved.records, moved.skipped)
}

#[test]
fn a_record_is_not_moved_over_a_write_since_it_was_judged() {
    let put = |bench: &Bench, region: &RegionState| bench.put(region, b"key", &[2; 500]).unwrap();
    assert_eq!(moved_while(|_, _| {}), (1, 0));
    assert_eq!(moved_while(put), (0, 1));
    let freeze = |bench: &Bench| assert!(bench.engine.subsystems.versions.freeze(0));
    let put_and_freeze = |bench: &Bench, region: &RegionState| {
        put(bench, region);
        freeze(bench);
    };
    assert_eq!(moved_while(put_and_freeze), (0, 1), "L0 has the write");
    let put_another_and_freeze = |bench: &Bench, region: &RegionState| {
        bench.put(region, b"another", &[2; 500]).unwrap();
        freeze(bench);
    };
    assert_eq!(moved_while(put_another_and_freeze), (1, 0));
}
