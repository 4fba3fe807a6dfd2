//! Incarnations from outside, and what a volume is found to hold.

use kreon_format::{INCARNATION_MAX, lsn_at, place_of};
use kreon_sim::Keep;

use super::*;

fn with_incarnation(incarnation: Option<u64>) -> Options {
    let mirroring = Mirroring {
        incarnation: incarnation.map(Incarnation),
        ..Mirroring::default()
    };
    Options {
        mirroring,
        ..options()
    }
}

fn examined(image: &Image) -> crate::recovery::Examined {
    let device = SimDevice::from_image(image.clone(), SimOptions::default());
    let device: Arc<dyn Device> = Arc::new(device);
    Engine::examine(&device).unwrap()
}

fn run_of(image: &Image) -> u64 {
    examined(image).superblock.incarnation.0
}

#[test]
fn an_opening_takes_the_incarnation_that_it_is_given() {
    let mut image = Image::default();
    for (given, taken) in [(Some(5), 5), (Some(6), 6), (Some(900), 900), (None, 901)] {
        let bench = Bench::open(image, with_incarnation(given)).unwrap();
        let region = bench.engine.region("r").unwrap();
        bench.put(&region, &name(taken as u32), b"value").unwrap();
        for run in [5, 6, 900].into_iter().filter(|run| *run <= taken) {
            let value = bench.get(&region, &name(run as u32)).unwrap();
            assert_eq!(value.as_deref(), Some(&b"value"[..]), "of run {run}");
        }
        image = bench.closed();
        assert_eq!(run_of(&image), taken);
    }
}

#[test]
fn an_incarnation_that_is_not_larger_is_refused_and_nothing_is_written() {
    let bench = Bench::open(Image::default(), with_incarnation(Some(7))).unwrap();
    let image = bench.closed();
    for given in [0, 1, 6, 7, INCARNATION_MAX + 1] {
        let device = SimDevice::from_image(image.clone(), SimOptions::default());
        let device = Arc::new(device);
        let shared = Arc::clone(&device) as Arc<dyn Device>;
        let error = Engine::open(shared, with_incarnation(Some(given)))
            .err()
            .unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{given}");
        assert!(error.to_string().contains("was given"), "{error}");
        assert_eq!(device.image().digest(), image.digest());
    }
    for given in [0, INCARNATION_MAX + 1] {
        let error = refused(Image::default(), with_incarnation(Some(given)));
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{given}");
    }
}

/// Where a run goes on behind a log that ends at `end`.
fn behind(end: Lsn) -> Lsn {
    let (sequence, within) = place_of(end);
    lsn_at(sequence, within.next_multiple_of(4096).min(2 << 20))
}

#[test]
fn what_is_found_on_a_volume_is_what_an_opening_begins_with() {
    let primary = Primary::new();
    let region = primary.engine.region("r").unwrap();
    let mut dice = Dice(9);
    for round in 0..2500 {
        let key = name(dice.below(900) as u32);
        primary.put(&region, &key, &noise_of(dice.below(3000) as usize));
        match dice.below(150) {
            0 => primary.engine.sync().unwrap(),
            1 => primary.engine.background(Work::WriteOut).unwrap(),
            2 => primary.engine.background(Work::Image).unwrap(),
            3 if round > 800 => primary.engine.checkpoint().unwrap(),
            4 => {
                let long = noise_of(3 << 20);
                primary.put(&region, b"long", &long);
            }
            _ => {}
        }
    }
    let history = primary.device.history();
    let mut opened = 0;
    for cut in 0..60_u64 {
        let events = dice.below(history.events.len() as u64) as usize;
        let image = history
            .crash_after(events)
            .image(&mut Keep::SomeWrites { seed: cut });
        let device = SimDevice::from_image(image.clone(), SimOptions::default());
        let device: Arc<dyn Device> = Arc::new(device);
        let found = match Engine::examine(&device) {
            Ok(found) => found,
            // Before the first superblock.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => panic!("cut {cut}: {error}"),
        };
        opened += 1;
        let after = SimDevice::from_image(image.clone(), SimOptions::default());
        let before = after.image().digest();
        assert_eq!(before, image.digest());
        let bench = Bench::open(image, options()).unwrap();
        assert_eq!(bench.engine.log_tail(), behind(found.log_end), "cut {cut}");
        let now = examined(&bench.device.image()).superblock;
        assert_eq!(now.store, found.superblock.store);
        assert_eq!(now.epoch.0, found.superblock.epoch.0 + 1);
        assert_eq!(now.incarnation.0, found.superblock.incarnation.0 + 1);
        let (segment, sequence) = *found.log_segments.last().unwrap_or(&Default::default());
        let log = bench.engine.occupied().unwrap().log;
        let is_same = |held: &&kreon_volume::OccupiedLog| {
            held.segment == segment && held.sequence == sequence && held.log.0 == 0
        };
        assert!(found.log_segments.is_empty() || log.iter().any(|held| is_same(&held)));
    }
    assert!(opened > 30, "{opened}");
}

#[test]
fn an_empty_device_holds_no_store() {
    let device: Arc<dyn Device> = Arc::new(SimDevice::new(SimOptions::default()));
    let error = Engine::examine(&device).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

fn noise_of(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 % 251) as u8 + 1).collect()
}
