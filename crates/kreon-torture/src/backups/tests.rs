//! Chains of backups; faults at the source and at the target; cuts.

use kreon_base::{PAGE_BYTES, SEGMENT_BYTES};
use kreon_sim::{Call, Effect, Fault};

use super::*;

#[test]
fn every_backup_of_a_chain_restores_to_the_store_at_its_moment() {
    for seed in 0..12 {
        let counts = backups(seed);
        assert_eq!(counts.failures, Vec::<String>::new());
    }
}

#[test]
fn a_run_that_ends_in_the_last_page_of_a_segment_is_no_damage() {
    let counts = backups(4445);
    assert_eq!(counts.failures, Vec::<String>::new());
}

#[test]
fn the_last_page_of_a_segment_is_copied_again_if_the_log_ended_in_it() {
    let counts = backups(11_454);
    assert_eq!(counts.failures, Vec::<String>::new());
}

#[test]
fn a_chain_whose_store_once_ended_in_the_middle_is_whole() {
    let counts = many_backups(1, 13_314);
    assert_eq!(counts.total(), 1);
    assert_eq!(counts.failures, Vec::<String>::new());
}

/// A store with trees and a log behind them.
fn filled() -> (Held, Dice) {
    let mut dice = Dice::new(7);
    let device = Arc::new(SimDevice::new(sim_options()));
    let mut held = Held::open(device).unwrap();
    for _ in 0..600 {
        held.write(&mut dice, 3).unwrap();
    }
    held.engine.checkpoint().unwrap();
    for _ in 0..20 {
        held.write(&mut dice, 3).unwrap();
    }
    (held, dice)
}

#[test]
fn a_full_target_leaves_the_backup_before_and_the_next_run_mends_it() {
    let (mut held, mut dice) = filled();
    let shelf = SimShelf::default();
    held.backup(&shelf, 1).unwrap();
    let first = held.pairs.clone();
    for _ in 0..50 {
        held.write(&mut dice, 3).unwrap();
    }
    for space_bytes in [0, 4096, 64 << 10] {
        shelf.set_space_bytes_max(Some(space_bytes));
        let error = held.backup(&shelf, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
        assert_eq!(check(&shelf, &first).unwrap(), Ok(()));
    }
    shelf.set_space_bytes_max(None);
    assert_eq!(held.backup(&shelf, 1).unwrap(), 2);
    assert_eq!(check(&shelf, &held.pairs).unwrap(), Ok(()));
}

/// A shelf whose files fail their nth call.
struct Failing<'a> {
    shelf: &'a SimShelf,
    n: u64,
    call: Call,
}

impl Shelf for Failing<'_> {
    fn names(&self) -> Result<Vec<String>> {
        self.shelf.names()
    }

    fn open(&self, name: &str, access: Access) -> Result<Arc<dyn Device>> {
        let device = self.shelf.open(name, access)?;
        if access == Access::Write
            && name != "lock"
            && let Some(file) = self.shelf.file(name)
        {
            file.inject(Fault::nth(self.n, self.call, Effect::Io));
        }
        Ok(device)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.shelf.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.shelf.remove(name)
    }
}

#[test]
fn a_failing_target_leaves_the_backup_before() {
    let (mut held, mut dice) = filled();
    let shelf = SimShelf::default();
    held.backup(&shelf, 1).unwrap();
    let first = held.pairs.clone();
    for _ in 0..50 {
        held.write(&mut dice, 3).unwrap();
    }
    for call in [Call::Write, Call::Flush, Call::Grow] {
        let failing = Failing {
            shelf: &shelf,
            n: 0,
            call,
        };
        let outcome = held
            .engine
            .backup(&failing, &BackupOptions::default(), &mut |_| Ok(()));
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Io, "{call:?}");
        assert_eq!(check(&shelf, &first).unwrap(), Ok(()), "{call:?}");
    }
    held.backup(&shelf, 1).unwrap();
    assert_eq!(check(&shelf, &held.pairs).unwrap(), Ok(()));
}

#[test]
fn a_damaged_byte_of_the_source_fails_the_backup_or_is_not_copied() {
    let (held, _) = filled();
    let whole = SimShelf::default();
    held.engine.sync().unwrap();
    held.backup(&whole, 1).unwrap();
    let occupied = held.engine.occupied().unwrap();
    let log = occupied.log.iter().map(|log| log.segment.offset_bytes());
    let pages = occupied.pages.iter();
    let pages = pages.flat_map(|(first, count)| (first.0..first.0 + count).step_by(7));
    let places = pages.map(|page| page * PAGE_BYTES as u64);
    let inside = (0..6).map(|part| part * (SEGMENT_BYTES / 6) + 100);
    let places = places.map(|at| at + 1000);
    let places: Vec<u64> = places
        .chain(log.flat_map(|start| inside.clone().map(move |at| start + at)))
        .collect();
    let mut refused = 0;
    for place in places {
        held.device.flip_bit(place, 3);
        let shelf = SimShelf::default();
        match held.backup(&shelf, 1) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                assert!(check_backup(&shelf, None, &mut |_| Ok(())).is_err());
                refused += 1;
            }
            // Nothing of the state stands there.
            Ok(_) => assert_eq!(check(&shelf, &held.pairs).unwrap(), Ok(()), "byte {place}"),
        }
        held.device.flip_bit(place, 3);
    }
    assert!(refused > 20, "{refused}");
    assert_eq!(held.backup(&whole, 1).unwrap(), 2);
}

#[test]
fn a_failed_read_of_the_source_fails_the_backup() {
    let (held, _) = filled();
    held.engine.sync().unwrap();
    for n in [0, 3, 9] {
        let shelf = SimShelf::default();
        let fault = Fault::nth(n, Call::Read, Effect::Io);
        held.device.inject(fault);
        assert_eq!(held.backup(&shelf, 1).unwrap_err().kind(), ErrorKind::Io);
        held.device.clear_faults();
        assert!(check_backup(&shelf, None, &mut |_| Ok(())).is_err());
    }
}

#[test]
fn a_damaged_byte_of_a_backup_is_found_and_not_restored() {
    let (held, _) = filled();
    let shelf = SimShelf::default();
    held.backup(&shelf, 1).unwrap();
    for name in ["data-000001", "manifest-000001"] {
        let file = shelf.file(name).unwrap();
        for at in (0..file.len_bytes()).step_by(file.len_bytes() as usize / 37) {
            file.flip_bit(at, 5);
            let error = check_backup(&shelf, None, &mut |_| Ok(())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{name}, byte {at}");
            let device: Arc<dyn Device> = Arc::new(SimDevice::new(sim_options()));
            assert!(restore_backup(&shelf, None, &device, &mut |_| Ok(())).is_err());
            assert!(Engine::examine(&device).is_err(), "it opens");
            file.flip_bit(at, 5);
        }
    }
}

#[test]
fn a_cancelled_backup_leaves_the_one_before() {
    let (mut held, mut dice) = filled();
    let shelf = SimShelf::default();
    held.backup(&shelf, 1).unwrap();
    let first = held.pairs.clone();
    for _ in 0..400 {
        held.write(&mut dice, 3).unwrap();
    }
    for after in 0..5 {
        let mut calls = 0;
        let outcome = held
            .engine
            .backup(&shelf, &BackupOptions::default(), &mut |_| {
                calls += 1;
                match calls > after {
                    true => Err(Error::new(ErrorKind::Busy, "enough")),
                    false => Ok(()),
                }
            });
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Busy);
        assert_eq!(check(&shelf, &first).unwrap(), Ok(()), "after {after}");
    }
}

#[test]
fn a_backup_of_few_changes_copies_little_and_old_space_is_given_back() {
    let (mut held, mut dice) = filled();
    let shelf = SimShelf::default();
    let options = BackupOptions::default();
    let full = held
        .engine
        .backup(&shelf, &options, &mut |_| Ok(()))
        .unwrap();
    assert_eq!(full.copied_bytes, full.bytes);
    let again = held
        .engine
        .backup(&shelf, &options, &mut |_| Ok(()))
        .unwrap();
    assert!(again.copied_bytes < 3 * PAGE_BYTES as u64, "{again:?}");
    for _ in 0..12 {
        for _ in 0..60 {
            held.write(&mut dice, 3).unwrap();
        }
        held.engine.checkpoint().unwrap();
        held.engine.background(Work::Collect).unwrap();
        held.backup(&shelf, 1).unwrap();
    }
    let last = held
        .engine
        .backup(&shelf, &options, &mut |_| Ok(()))
        .unwrap();
    let overhead = last.manifest_bytes + (64 << 10);
    assert!(
        shelf.space_bytes() < last.bytes + overhead,
        "{} bytes for {last:?}",
        shelf.space_bytes()
    );
    assert_eq!(check(&shelf, &held.pairs).unwrap(), Ok(()));
}

#[test]
fn backups_of_another_store_are_refused() {
    let (held, _) = filled();
    let shelf = SimShelf::default();
    held.backup(&shelf, 1).unwrap();
    let other = kreon_engine::Options {
        store_id: Some(99),
        ..options()
    };
    let device: Arc<dyn Device> = Arc::new(SimDevice::new(sim_options()));
    let other = Engine::open(device, other).unwrap();
    let outcome = other.backup(&shelf, &BackupOptions::default(), &mut |_| Ok(()));
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidArgument);
}
