//! That a fault is told as what it is.

use kreon_base::ErrorKind;
use kreon_engine::{Durability, Engine, Operation, Terms};
use kreon_sim::{Call, Effect, Fault, Image, SimDevice};
use kreon_torture::class::Class;
use kreon_torture::content::{self, Content};
use kreon_torture::damage::build::{device, open};
use kreon_torture::damage::part::Kind;
use kreon_torture::damage::run::case;
use kreon_torture::silent::{self, Lie};
use kreon_torture::store::Store;
use kreon_torture::trial::Trial;
use kreon_torture::workload::Workload;

const REPLAY_READ_BYTES: u64 = 256 << 10;

/// A read that covers the byte at `place` comes back with a bit of it flipped, once.
fn flip_once(device: &SimDevice, place: u64, transfer_bytes: u64) {
    let bit = place % transfer_bytes * 8 + 3;
    let fault = Fault::nth(1, Call::Read, Effect::FlippedBit { bit });
    device.inject(fault.within(place..place + 1));
}

#[test]
fn a_region_that_cannot_be_read_is_not_called_damaged() {
    let device = device(Default::default(), true);
    let engine = open(&device).unwrap();
    let region = engine.region("gone").unwrap();
    let put = Operation {
        region: &region,
        key: b"key",
        value: Some(b"value"),
        is_range: false,
        terms: Terms::default(),
    };
    engine.write(&[put], Durability::Sync).unwrap();
    engine.checkpoint().unwrap();
    drop(engine);
    let engine: Engine = open(&device).unwrap();
    device.inject(Fault::nth(1, Call::Read, Effect::Io));
    let error = engine.drop_region("gone").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    engine.drop_region("gone").unwrap();
}

#[test]
fn a_log_that_was_read_wrong_once_does_not_end_there() {
    let case = case("tail").unwrap();
    for part in case.atlas.parts.iter() {
        if !matches!(
            part.kind,
            Kind::TailHeader | Kind::TailRecord | Kind::TailPad
        ) {
            continue;
        }
        let device = device(case.fixture.image.clone(), false);
        flip_once(&device, part.range.start + 5, REPLAY_READ_BYTES);
        let engine = open(&device).unwrap();
        assert_eq!(device.faults_met(), 1, "{part:?}");
        let found = content::read(&engine).unwrap();
        assert!(found == *case.fixture.content(), "{part:?}");
    }
}

#[test]
fn a_superblock_slot_that_was_read_wrong_once_still_counts() {
    // Only the slot of the last checkpoint tells of it: the power went before the others were written.
    let device = device(Default::default(), true);
    let engine = open(&device).unwrap();
    engine.region("first").unwrap();
    engine.checkpoint().unwrap();
    let image = device
        .history()
        .crash()
        .image(&mut kreon_sim::Keep::Nothing);
    drop(engine);
    let slots = kreon_format::SUPERBLOCK_PAGES;
    let epoch = |image: &kreon_sim::Image, slot: usize| {
        let page = kreon_torture::damage::part::page_at(image, slots[slot]);
        kreon_format::Superblock::decode(&page, slot).unwrap().epoch
    };
    let newest = (0..4).max_by_key(|slot| epoch(&image, *slot)).unwrap();
    assert!(epoch(&image, (newest + 1) % 4) < epoch(&image, newest));
    let device = kreon_torture::damage::build::device(image, false);
    flip_once(&device, slots[newest].offset_bytes() + 9, 4096);
    let engine = open(&device).unwrap();
    assert_eq!(device.faults_met(), 1);
    assert_eq!(engine.region_names(), ["first"]);
}

#[test]
fn a_record_that_was_read_wrong_once_is_read_again() {
    let case = case("tail").unwrap();
    let record = |part: &&kreon_torture::damage::part::Part| part.kind == Kind::Record;
    for part in case.atlas.parts.iter().filter(record) {
        let device = device(case.fixture.image.clone(), false);
        let engine = open(&device).unwrap();
        // Log pages are read alone or with their neighbours; a bit of the record's page is flipped.
        flip_once(&device, part.range.start + 20, 4096);
        let found = content::read(&engine).unwrap();
        assert!(found == *case.fixture.content(), "{part:?}");
        assert!(engine.verify().unwrap().is_clean());
    }
}

#[test]
fn a_judge_of_lies_and_a_count_of_flushes_can_fail() {
    let work = Workload::Little.steps(1, &[]);
    let mut store = Store::on(Image::default(), &Content::new(), true);
    store.open().unwrap();
    let mut images = Vec::new();
    for step in &work[..6] {
        store.step(step).unwrap().unwrap();
        images.push((store.device.image(), store.progress));
    }
    let now = store.progress;
    let lie = |before| Lie {
        before,
        now,
        is_proven: false,
    };
    let (newest, _) = &images[5];
    let (older, then) = &images[2];
    assert_eq!(
        silent::judge(newest.clone(), &store.model, &lie(now)),
        Ok(())
    );
    assert_eq!(
        silent::judge(older.clone(), &store.model, &lie(*then)),
        Ok(())
    );
    assert!(silent::judge(older.clone(), &store.model, &lie(now)).is_err());
    let proven = Lie {
        is_proven: true,
        ..lie(*then)
    };
    assert!(silent::judge(older.clone(), &store.model, &proven).is_err());

    let class = Class::once("flush EIO", Call::Flush, Effect::Io);
    for (failing, is_right) in [(9, true), (8, false)] {
        let mut trial = Trial::new(Image::default(), &Content::new(), class, 9);
        trial.store.device.inject(class.fault(failing));
        let outcome = trial.open().and_then(|()| trial.run(&work));
        let outcome = outcome.and_then(|()| trial.finish());
        assert_eq!(outcome.is_ok(), is_right, "{outcome:?}");
    }
}
