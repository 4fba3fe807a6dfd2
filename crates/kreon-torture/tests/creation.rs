//! Power cuts and deaths in the middle of creating a store: the next open begins anew without being told to. And what
//! another store left on the device never comes back.

use std::sync::Arc;

use kreon_base::ErrorKind;
use kreon_device::Device;
use kreon_engine::{Durability, Engine, Operation, Options, SalvageOptions, Survey, Terms};
use kreon_format::SUPERBLOCK_PAGES;
use kreon_sim::{Call, Effect, Fault, Image, Keep, SimDevice, SimOptions};
use kreon_torture::content;
use kreon_torture::settings::options;

fn open(device: &Arc<SimDevice>, options: Options) -> kreon_base::Result<Engine> {
    Engine::open(Arc::clone(device) as Arc<dyn Device>, options)
}

fn on(image: Image) -> Arc<SimDevice> {
    Arc::new(SimDevice::from_image(image, SimOptions::default()))
}

fn formatting() -> Options {
    Options {
        format: true,
        store_id: Some(77),
        ..options()
    }
}

fn put(engine: &Engine, region: &str, key: &str) {
    let region = engine.region(region).unwrap();
    let put = Operation {
        region: &region,
        key: key.as_bytes(),
        value: Some(&[1; 3000]),
        is_range: false,
        terms: Terms::default(),
    };
    engine.write(&[put], Durability::Sync).unwrap();
}

/// A device with a store that lost its first `wiped_bytes`.
fn remains(wiped_bytes: u64) -> Image {
    let device = on(Image::default());
    let engine = open(&device, options()).unwrap();
    for key in 0..2000 {
        put(&engine, "old", &format!("old{key}"));
    }
    engine.checkpoint().unwrap();
    drop(engine);
    let mut image = device.image();
    image.zero(0, wiped_bytes);
    image
}

/// Makes a store on `image`, cuts the power at every event, and opens what is left with plain settings. Returns in how
/// many cuts the device was as before, so that it has to be asked for again.
fn cuts_while_creating(image: &Image, is_blank: bool) -> usize {
    let device = on(image.clone());
    drop(open(&device, formatting()).unwrap());
    let history = device.history();
    let (mut untouched, mut tried) = (0, 0);
    for events in 0..=history.events.len() {
        let crash = history.crash_after(events);
        let keeps = [
            Keep::All,
            Keep::Nothing,
            Keep::SomeWrites { seed: 3 },
            Keep::SomeSectors {
                seed: events as u64,
            },
        ];
        for mut keep in keeps {
            let left = crash.image(&mut keep);
            let again = on(left.clone());
            match open(
                &again,
                Options {
                    store_id: Some(78),
                    ..options()
                },
            ) {
                Ok(engine) => {
                    put(&engine, "r", "k");
                    let held = content::read(&engine).unwrap();
                    assert_eq!(
                        held.keys().collect::<Vec<_>>(),
                        ["r"],
                        "cut at {events}, {keep:?}"
                    );
                    let is_checked = events.is_multiple_of(5);
                    assert!(!is_checked || engine.verify().unwrap().problems.is_empty());
                }
                Err(error) => {
                    assert!(!is_blank, "cut at {events}, {keep:?}: {error}");
                    let kind = error.kind();
                    assert!(matches!(
                        kind,
                        ErrorKind::Corruption | ErrorKind::InvalidArgument
                    ));
                    untouched += 1;
                    drop(open(&again, formatting()).unwrap());
                }
            }
            tried += 1;
        }
    }
    assert!(tried > 50, "{tried}");
    untouched
}

#[test]
fn a_creation_that_a_power_cut_ended_is_begun_anew() {
    assert_eq!(cuts_while_creating(&Image::default(), true), 0);
}

#[test]
fn a_format_that_a_power_cut_ended_is_begun_anew_or_never_began() {
    // Before the mark of the creation is durable the device is as it was.
    let untouched = cuts_while_creating(&remains(1 << 20), false);
    assert!((1..40).contains(&untouched), "{untouched}");
}

#[test]
fn a_creation_that_fails_at_any_call_is_begun_anew() {
    for n in 1..1000 {
        let device = on(Image::default());
        device.inject(Fault::nth_of_all(n, Effect::Io).for_ever());
        let failed = open(&device, options()).map(drop);
        if device.faults_met() == 0 {
            assert!(failed.is_ok() && n > 5, "{n}");
            return;
        }
        device.clear_faults();
        let again = on(device.image());
        put(&open(&again, options()).unwrap(), "r", "k");
    }
    panic!("a creation of a thousand calls");
}

#[test]
fn remains_on_a_device_that_does_not_discard_are_not_salvaged_as_the_new_store() {
    for wiped_bytes in [100 << 10, 1 << 20] {
        let device = on(remains(wiped_bytes));
        device.inject(Fault::nth(1, Call::Discard, Effect::Lost));
        let engine = open(&device, formatting()).unwrap();
        assert_eq!(device.faults_met(), 1);
        put(&engine, "new", "k");
        // What the old log holds behind the new one's end is not replayed.
        drop(engine);
        let engine = open(&device, options()).unwrap();
        assert_eq!(engine.region_names(), ["new"]);
        drop(engine);
        let mut image = device.image();
        for page in SUPERBLOCK_PAGES {
            image.zero(page.offset_bytes(), 4096);
        }
        let survey = Survey::take(on(image)).unwrap();
        let target = open(&on(Image::default()), options()).unwrap();
        survey
            .salvage(&target, SalvageOptions::default(), &mut |_| ())
            .unwrap();
        let held = content::read(&target).unwrap();
        let pairs: Vec<_> = held.values().flat_map(|pairs| pairs.keys()).collect();
        assert_eq!(pairs, [b"k"]);
    }
}

#[test]
fn the_mark_of_a_creation_does_not_hide_a_store_that_lived() {
    let device = on(Image::default());
    let engine = open(&device, options()).unwrap();
    put(&engine, "r", "k");
    drop(engine);
    let mut image = device.image();
    let mark = kreon_format::CreationMark {
        store: kreon_format::StoreId(options().store_id.unwrap()),
    };
    for page in SUPERBLOCK_PAGES {
        image.zero(page.offset_bytes(), 4096);
    }
    image.write(0, &*mark.encode());
    let error = open(&on(image), options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}
