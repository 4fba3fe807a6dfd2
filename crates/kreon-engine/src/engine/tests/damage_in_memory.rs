//! Records of the log in frames: what changes there, and what changes on the device behind them.

use std::collections::BTreeMap;
use std::ops::Bound;

use kreon_base::{ErrorKind, PAGE_BYTES};
use kreon_format::FRAGMENT_HEADER_BYTES;

use super::*;
use crate::level::log_source::LOG_PRIORITY;

const RECORDS: u32 = 6000;
const VALUE_BYTES: usize = 1000;

/// Of a record with a key of [`name`]: a byte of its key, and one of its value.
const IN_KEY: u64 = FRAGMENT_HEADER_BYTES as u64 + 5;
const IN_VALUE: u64 = FRAGMENT_HEADER_BYTES as u64 + 700;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn roomy() -> Options {
    Options {
        memory_bytes: 64 << 20,
        l0_bytes: Some(1 << 20),
        background: Background::Driven,
        ..options()
    }
}

/// A store whose log is in frames, and its first segments half dead.
fn in_frames(options: Options) -> (Bench, Arc<RegionState>, Model) {
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let mut model = Model::new();
    for version in 0..2 {
        for key in (0..RECORDS).filter(|key| version == 0 || key % 2 == 1) {
            let value = (key * 2 + version).to_le_bytes().repeat(VALUE_BYTES / 4);
            bench.put(&region, &name(key), &value).unwrap();
            model.insert(name(key), value);
        }
        bench.spill_l0();
    }
    (bench, region, model)
}

impl Bench {
    fn spill_l0(&self) {
        self.engine.subsystems.versions.freeze(0);
        self.engine.background(Work::Spill).unwrap();
    }

    /// Changes the byte at `offset` in the frame of its page: nobody knows of it.
    fn hurt_in_memory(&self, offset: u64) {
        let page = PageNo::containing(offset);
        let mut bytes = self.device.image().bytes(page.offset_bytes(), PAGE_BYTES);
        bytes[(offset % PAGE_BYTES as u64) as usize] ^= 1;
        let mapping = &self.engine.subsystems.storage.mapping;
        mapping.admit(page, LOG_PRIORITY, &bytes);
    }

    fn push_out(&self, offset: u64) {
        let mapping = &self.engine.subsystems.storage.mapping;
        mapping.discard(PageNo::containing(offset), 1);
    }

    /// The value of a key, as a scan shows it.
    fn scanned(&self, region: &Arc<RegionState>, key: &[u8]) -> Vec<u8> {
        let bounds = (Bound::Included(key.to_vec()), Bound::Unbounded);
        let mut scan = self.engine.scan(region, self.engine.snapshot(), bounds);
        scan.next_with(|_, value| value.to_vec()).unwrap().unwrap()
    }

    /// A key whose record is in the first segment and live, with its place: in one page, or with its value in the next.
    fn victim(&self, region: &RegionState, is_over_two: bool) -> (Vec<u8>, u64) {
        let keys = (0..200).map(|key| name(2 * key));
        let placed = keys.map(|key| (self.place_of(region, &key).0, key));
        let within = |offset: u64| offset % PAGE_BYTES as u64;
        let mut fit = placed.filter(|(offset, _)| match is_over_two {
            false => within(*offset) < 2500,
            // What is hurt in its value is in the second page, its key in the first.
            true => (3400..4000).contains(&within(*offset)),
        });
        fit.next().map(|(offset, key)| (key, offset)).unwrap()
    }
}

#[test]
fn a_value_that_changed_in_memory_is_found_out_if_every_read_is_verified() {
    for is_over_two in [false, true] {
        for verify_every_read in [false, true] {
            let options = Options {
                verify_every_read,
                ..roomy()
            };
            let (bench, region, model) = in_frames(options);
            let (key, offset) = bench.victim(&region, is_over_two);
            bench.hurt_in_memory(offset + IN_VALUE);
            let got = bench.get(&region, &key).unwrap().unwrap();
            assert_eq!(got == model[&key], verify_every_read, "{is_over_two}");
            bench.hurt_in_memory(offset + IN_VALUE);
            let scanned = bench.scanned(&region, &key);
            assert_eq!(scanned == model[&key], verify_every_read, "{is_over_two}");
        }
    }
}

#[test]
fn a_key_that_changed_in_memory_is_told_until_its_page_leaves_memory() {
    for is_over_two in [false, true] {
        let (bench, region, model) = in_frames(roomy());
        let (key, offset) = bench.victim(&region, is_over_two);
        bench.hurt_in_memory(offset + IN_KEY);
        let error = bench.get(&region, &key).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        bench.push_out(offset);
        let got = bench.get(&region, &key).unwrap().unwrap();
        assert_eq!(got, model[&key]);
    }
}

#[test]
fn what_changed_in_memory_is_not_copied() {
    for is_over_two in [false, true] {
        let (bench, region, model) = in_frames(roomy());
        let (key, offset) = bench.victim(&region, is_over_two);
        bench.hurt_in_memory(offset + IN_VALUE);
        bench.engine.background(Work::Collect).unwrap();
        assert_ne!(bench.place_of(&region, &key).0, offset, "it has not moved");
        bench.spill_l0();
        for (key, value) in &model {
            assert_eq!(bench.get(&region, key).unwrap().as_ref(), Some(value));
        }
        assert_eq!(bench.problems(), Vec::<String>::new());
    }
}

#[test]
fn a_record_that_left_memory_is_verified_when_it_comes_back() {
    for is_over_two in [false, true] {
        let (bench, region, model) = in_frames(roomy());
        let (key, offset) = bench.victim(&region, is_over_two);
        let hurt = offset + IN_VALUE;
        for _ in 0..3 {
            assert_eq!(bench.get(&region, &key).unwrap().unwrap(), model[&key]);
            bench.device.flip_bit(hurt, 3);
            assert_eq!(bench.get(&region, &key).unwrap().unwrap(), model[&key]);
            bench.push_out(hurt);
            let error = bench.get(&region, &key).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
            bench.device.flip_bit(hurt, 3);
        }
        assert_eq!(bench.get(&region, &key).unwrap().unwrap(), model[&key]);
    }
}

#[test]
fn collection_verifies_keys_that_came_from_the_device() {
    let moved = |hurts: bool| {
        let (bench, region, model) = in_frames(roomy());
        let (key, offset) = bench.victim(&region, false);
        if hurts {
            let hurt = offset + IN_KEY;
            bench.push_out(hurt);
            bench.device.flip_bit(hurt, 0);
            // The page comes with another record.
            let mapping = &bench.engine.subsystems.storage.mapping;
            let mut page = [0; PAGE_BYTES];
            let start = PageNo::containing(hurt).offset_bytes();
            mapping.read_bytes(start, LOG_PRIORITY, &mut page).unwrap();
            assert!(mapping.are_resident(start, PAGE_BYTES));
            bench.device.flip_bit(hurt, 0);
        }
        bench.engine.background(Work::Collect).unwrap();
        assert_ne!(bench.place_of(&region, &key).0, offset, "it has not moved");
        for (key, value) in &model {
            assert_eq!(bench.get(&region, key).unwrap().as_ref(), Some(value));
        }
        bench.engine.stats().collection.records_moved
    };
    assert_eq!(moved(true), moved(false));
}
