//! Checkpoints of L0: what is in them, how long they count, what harms them.

use std::collections::BTreeMap;

use kreon_base::Lsn;
use kreon_format::{pages_of, place_of};

use super::*;
use crate::options::Work;

/// A store without anything, whose L0 is spilled when somebody asks for it.
fn empty() -> Bench {
    let options = Options {
        l0_bytes: Some(4 << 20),
        background: Background::Driven,
        ..options()
    };
    Bench::open(Image::default(), options).unwrap()
}

fn reopened(image: Image) -> Bench {
    let bench = Bench::open(image, options()).unwrap();
    assert_eq!(bench.problems(), Vec::<String>::new());
    bench
}

impl Bench {
    fn take_image(&self) {
        self.engine.background(Work::Image).unwrap();
    }

    pub(super) fn delete(&self, region: &RegionState, key: &[u8]) {
        let operation = Operation {
            region,
            key,
            value: None,
            is_range: false,
            terms: Terms::default(),
        };
        self.engine
            .write(&[operation], Durability::Buffered)
            .unwrap();
    }

    fn image_pages(&self) -> Vec<PageNo> {
        let ledger = self.engine.subsystems.storage.ledger.lock();
        let parts = ledger.image.iter();
        parts.flat_map(|part| pages_of(&part.pages)).collect()
    }

    fn parts(&self) -> usize {
        self.engine.subsystems.storage.ledger.lock().image.len()
    }

    /// Writes what [`check_mixture`] expects: all kinds of entries, before and behind an image.
    fn write_mixture(&self) {
        let region = self.engine.region("r").unwrap();
        let long = |n: u8| [vec![b'k'; 2000], vec![n]].concat();
        for key in 0..KEYS {
            self.put(&region, &name(key), &value(key)).unwrap();
        }
        let snapshot = self.engine.snapshot();
        for key in (0..KEYS).step_by(5) {
            self.delete(&region, &name(key));
        }
        (0..4).for_each(|n| self.put(&region, &long(n), &[n; 300]).unwrap());
        self.delete(&region, &long(2));
        self.put(&region, b"", b"the empty key").unwrap();
        self.take_image();
        self.put(&region, &name(1), b"behind the image").unwrap();
        self.delete(&region, &name(2));
        self.engine.sync().unwrap();
        drop(snapshot);
    }

    fn check_mixture(&self) {
        let region = self.engine.existing_region("r").unwrap();
        let long = |n: u8| [vec![b'k'; 2000], vec![n]].concat();
        for key in 3..KEYS {
            let expected = (!key.is_multiple_of(5)).then(|| value(key));
            assert_eq!(self.get(&region, &name(key)).unwrap(), expected, "{key}");
        }
        let got = |key: &[u8]| self.get(&region, key).unwrap();
        assert_eq!(got(&long(3)), Some(vec![3; 300]));
        assert_eq!(got(&long(2)), None);
        assert_eq!(got(b""), Some(b"the empty key".to_vec()));
        assert_eq!(got(&name(1)), Some(b"behind the image".to_vec()));
        assert_eq!(got(&name(2)), None);
    }
}

#[test]
fn an_opening_loads_the_image_and_replays_only_what_came_after_it() {
    let bench = empty();
    bench.write_mixture();
    let stats = bench.engine.stats();
    assert!(stats.replay_bytes < 8192, "{stats}");
    assert!(stats.image_bytes > 60 << 10 && stats.images == 1, "{stats}");
    assert_eq!(stats.last_image.unwrap().bytes, stats.image_bytes);
    assert_eq!(bench.problems(), Vec::<String>::new());
    // The next run keeps it, and adds to it.
    for _ in 0..3 {
        let after = reopened(bench.device.image());
        after.check_mixture();
        let stats = after.engine.stats();
        assert!(!stats.found_damaged_image && stats.replay_bytes < 16384);
        after.take_image();
        assert_eq!(after.parts(), 2);
        reopened(after.device.image()).check_mixture();
    }
}

#[test]
fn an_image_that_is_damaged_anywhere_is_passed_over() {
    let bench = empty();
    bench.write_mixture();
    let (pages, image) = (bench.image_pages(), bench.device.image());
    assert!(pages.len() > 20);
    for page in pages.iter().step_by(3).chain(pages.last()) {
        let mut damaged = image.clone();
        let offset = page.offset_bytes() + 2000;
        let byte = damaged.bytes(offset, 1)[0];
        damaged.write(offset, &[byte ^ 4]);
        let after = reopened(damaged);
        assert!(after.engine.stats().found_damaged_image);
        assert_eq!((after.parts(), after.image_pages().len()), (0, 0));
        after.check_mixture();
    }
}

#[test]
fn damage_to_an_image_is_found_by_verification() {
    let bench = empty();
    bench.write_mixture();
    let page = bench.image_pages()[3];
    bench.device.flip_bit(page.offset_bytes() + 100, 2);
    let problems = bench.problems();
    assert!(
        problems[0].starts_with("image of L0 up to "),
        "{problems:?}"
    );
    assert!(problems[0].contains(&page.to_string()), "{problems:?}");
}

#[test]
fn a_spill_drops_the_image_and_gives_its_pages_back() {
    let bench = empty();
    bench.write_mixture();
    let pages = bench.image_pages();
    bench.engine.checkpoint().unwrap();
    assert_eq!(bench.parts(), 0);
    assert_eq!(bench.problems(), Vec::<String>::new());
    bench.engine.background(Work::Spill).unwrap();
    let allocator = bench.engine.subsystems.storage.allocator.lock();
    let is_live = |page: &&PageNo| allocator.is_live(**page);
    // Those that are in use again are of the tree or the catalogue.
    assert!(pages.iter().filter(is_live).count() < pages.len() / 2);
    drop(allocator);
    reopened(bench.device.image()).check_mixture();
}

#[test]
fn an_image_while_l0_is_being_spilled_has_both_and_outlives_the_spill_in_part() {
    let bench = empty();
    bench.write_mixture();
    assert!(bench.engine.subsystems.versions.freeze(0));
    let region = bench.engine.existing_region("r").unwrap();
    bench.put(&region, b"in L0'", b"new").unwrap();
    bench.take_image();
    // What the image had of L0 before, what came to it since, L0'.
    assert_eq!(bench.parts(), 3);
    let check = |image| {
        let after = reopened(image);
        after.check_mixture();
        let region = after.engine.existing_region("r").unwrap();
        assert_eq!(
            after.get(&region, b"in L0'").unwrap(),
            Some(b"new".to_vec())
        );
        assert!(after.engine.stats().replay_bytes < 8192);
    };
    check(bench.device.image());
    bench.engine.background(Work::Spill).unwrap();
    assert_eq!(bench.parts(), 1);
    assert_eq!(bench.problems(), Vec::<String>::new());
    check(bench.device.image());
}

#[test]
fn what_is_overwritten_again_and_again_does_not_make_the_image_grow_for_ever() {
    let bench = empty();
    let region = bench.engine.region("r").unwrap();
    let mut most = 0;
    for round in 0..40 {
        for key in 0..1000 {
            bench.put(&region, &name(key), &value(round)).unwrap();
        }
        bench.take_image();
        most = most.max(bench.image_pages().len());
        assert_eq!(bench.problems(), Vec::<String>::new());
        bench.engine.background(Work::Spill).unwrap();
    }
    // A thousand entries are ten pages.
    assert!((40..200).contains(&most), "{most} pages");
    let after = reopened(bench.device.image());
    let region = after.engine.existing_region("r").unwrap();
    assert_eq!(after.get(&region, &name(7)).unwrap(), Some(value(39)));
}

#[test]
fn a_dropped_region_stays_dropped_though_an_image_has_it() {
    let bench = empty();
    bench.write_mixture();
    let other = bench.engine.region("other").unwrap();
    bench.put(&other, b"key", b"value").unwrap();
    bench.take_image();
    bench.engine.drop_region("other").unwrap();
    assert_eq!(bench.problems(), Vec::<String>::new());
    let after = reopened(bench.device.image());
    assert_eq!(after.engine.region_names(), ["r"]);
    assert!(!after.engine.stats().found_damaged_image);
    after.check_mixture();
    let other = after.engine.region("other").unwrap();
    assert_eq!(after.get(&other, b"key").unwrap(), None);
}

#[test]
fn nothing_new_is_no_reason_for_an_image() {
    let bench = empty();
    bench.take_image();
    bench.write_mixture();
    bench.take_image();
    let before = bench.engine.stats().epoch;
    bench.take_image();
    assert_eq!(bench.engine.stats().epoch, before);
}

#[test]
fn without_space_the_image_gives_way_and_nobody_is_told() {
    let options = Options {
        volume_bytes_max: 48 << 20,
        l0_bytes: Some(2 << 20),
        unspilled_bytes_min: 1 << 30,
        background: Background::Driven,
        ..options()
    };
    let bench = Bench::open(Image::default(), options.clone()).unwrap();
    let region = bench.engine.region("r").unwrap();
    let mut written = BTreeMap::new();
    for key in 0.. {
        if bench.put(&region, &name(key), &[7; 30_000]).is_err() {
            break;
        }
        written.insert(name(key), vec![7; 30_000]);
        if key == 100 {
            bench.take_image();
            assert_eq!(bench.parts(), 1);
        }
    }
    // As long as there are unused pages in segments of trees, the image may have them.
    for key in 0..3000 {
        bench.delete(&region, &name(1_000_000 + key));
    }
    for _ in 0..2000 {
        bench.take_image();
        if bench.parts() == 0 {
            break;
        }
        (0..60).for_each(|key| bench.delete(&region, &name(2_000_000 + key)));
    }
    assert_eq!(bench.parts(), 0);
    assert_eq!(bench.problems(), Vec::<String>::new());
    bench.engine.checkpoint().unwrap();
    let after = Bench::open(bench.device.image(), options).unwrap();
    let region = after.engine.existing_region("r").unwrap();
    for (key, value) in written {
        assert_eq!(after.get(&region, &key).unwrap(), Some(value));
    }
}

/// Writers that overwrite keys, batches, images and spills, all at once; each image of the device is a state in
/// which the process might have been killed.
#[test]
fn images_beside_writers_and_spills_lose_nothing() {
    const ROUNDS: u32 = 12;
    let options = Options {
        l0_bytes: Some(96 << 10),
        background: Background::Threads,
        ..options()
    };
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let number = |value: Option<Vec<u8>>| match value {
        Some(value) => u32::from_le_bytes(*value.first_chunk().unwrap()),
        None => 0,
    };
    std::thread::scope(|scope| {
        let write = |writer: u32| {
            let (bench, region) = (&bench, &region);
            move || {
                for n in 1..=150 * ROUNDS {
                    // Both keys get the number: one is never ahead of the other.
                    let keys = [
                        name(2 * writer + 100 * (n % 9)),
                        name(2 * writer + 100 * (n % 9) + 1),
                    ];
                    let value = n.to_le_bytes().repeat(40);
                    let operations = keys.each_ref().map(|key| Operation {
                        region,
                        key,
                        value: Some(&value),
                        is_range: false,
                        terms: Terms::default(),
                    });
                    bench
                        .engine
                        .write(&operations, Durability::Buffered)
                        .unwrap();
                }
            }
        };
        let writers: Vec<_> = (0..2).map(|writer| scope.spawn(write(writer))).collect();
        let mut is_over = false;
        let mut rounds = 0;
        while !is_over || rounds < ROUNDS {
            is_over = writers.iter().all(|writer| writer.is_finished());
            bench.take_image();
            rounds += 1;
            if rounds % 4 > 0 {
                continue;
            }
            let floor: Vec<u32> = (0..2)
                .map(|writer| number(bench.get(&region, &name(2 * writer)).unwrap()))
                .collect();
            bench.engine.sync().unwrap();
            let after = reopened(bench.device.image());
            assert!(!after.engine.stats().found_damaged_image);
            let region = after.engine.existing_region("r").unwrap();
            let got = |key| number(after.get(&region, &name(key)).unwrap());
            for writer in 0..2 {
                assert!(got(2 * writer) >= floor[writer as usize]);
                for turn in 0..9 {
                    let key = 2 * writer + 100 * turn;
                    assert_eq!(got(key), got(key + 1), "half of a batch");
                }
            }
        }
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
    });
    assert_eq!(bench.problems(), Vec::<String>::new());
}

#[test]
fn an_image_from_within_a_unit_that_never_ended_is_believed_by_every_later_opening() {
    let bench = empty();
    bench.write_mixture();
    bench.take_image();
    let (region, subsystems) = (bench.engine.region("r").unwrap(), &bench.engine.subsystems);
    bench
        .put(&region, b"never ends", &vec![7; 5 << 20])
        .unwrap();
    let tail = subsystems.storage.log.tail();
    // As if the image had been taken while the unit was being appended.
    let within = Lsn(tail.0 - (3 << 20));
    subsystems
        .storage
        .ledger
        .lock()
        .image
        .last_mut()
        .unwrap()
        .needed = within;
    bench.engine.region("other").unwrap();
    bench.engine.background(Work::WriteOut).unwrap();
    let mut cut = bench.device.image();
    let open = subsystems
        .storage
        .log
        .checkpoint_record(Lsn(0))
        .open
        .unwrap();
    let (sequence, end) = place_of(tail);
    assert_eq!(open.sequence, sequence);
    cut.write(
        open.segment.offset_bytes() + u64::from(end) - 9000,
        &[0; 9000],
    );
    let after = reopened(cut);
    after.check_mixture();
    let region = after.engine.existing_region("r").unwrap();
    after.put(&region, b"later", b"value").unwrap();
    after.engine.sync().unwrap();
    let after = reopened(after.device.image());
    after.check_mixture();
    assert_eq!(
        after.get(&region, b"later").unwrap(),
        Some(b"value".to_vec())
    );
    assert_eq!(after.get(&region, b"never ends").unwrap(), None);
}
