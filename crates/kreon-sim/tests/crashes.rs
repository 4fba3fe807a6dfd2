//! What power cuts leave.

mod support;

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use kreon_device::Device;
use kreon_sim::{Call, Dice, Effect, Event, Fault, Image, Keep, SimDevice, SimOptions, Version};
use support::{PAGE, device, filled, firsts, put, sectors};

#[test]
fn flushed_writes_survive_and_others_may() {
    let device = device();
    put(&device, 0, 1);
    device.flush().unwrap();
    put(&device, 0, 2);
    put(&device, 1, 3);
    let history = device.history();
    let crash = history.crash();
    let left = |mut keep: Keep| firsts(&crash.image(&mut keep), 2);
    assert_eq!(left(Keep::All), [2, 3]);
    assert_eq!(left(Keep::Nothing), [1, 0]);
    assert_eq!(left(Keep::Before { write: 2 }), [2, 0]);
    assert_eq!(left(Keep::Writes(vec![2])), [1, 3], "in any order");
    assert_eq!(
        crash.pending().iter().map(|p| p.write).collect::<Vec<_>>(),
        [1, 2]
    );
}

#[test]
fn a_write_is_torn_between_any_two_sectors() {
    let device = device();
    put(&device, 0, 1);
    device.flush().unwrap();
    put(&device, 0, 2);
    let history = device.history();
    for kept in 0..=8 {
        let mut torn = Keep::Torn {
            write: 1,
            sectors: kept,
        };
        let found = sectors(&history.crash().image(&mut torn), 0);
        let expected: Vec<u8> = (0..8)
            .map(|sector| if sector < kept { 2 } else { 1 })
            .collect();
        assert_eq!(found, expected);
    }
    let mut odd =
        |sector: u64, versions: &[Version]| (sector % 2 == 1).then_some(versions.len() - 1);
    assert_eq!(
        sectors(&history.crash().image(&mut odd), 0),
        [1, 2, 1, 2, 1, 2, 1, 2]
    );
}

#[test]
fn every_older_content_of_a_sector_may_show() {
    let device = device();
    for byte in 1..=3 {
        put(&device, 0, byte);
    }
    let history = device.history();
    let crash = history.crash();
    assert_eq!(
        crash.choices(),
        (0..8).map(|sector| (sector, 4)).collect::<Vec<_>>()
    );
    for choice in 0..4usize {
        let mut exact = |_: u64, _: &[Version]| choice.checked_sub(1);
        assert_eq!(sectors(&crash.image(&mut exact), 0), [choice as u8; 8]);
    }
    let all: BTreeSet<u8> = (0..40)
        .flat_map(|seed| sectors(&crash.image(&mut Keep::SomeSectors { seed }), 0))
        .collect();
    assert_eq!(all, BTreeSet::from([0, 1, 2, 3]));
}

#[test]
fn a_durable_content_hides_all_older_ones() {
    let device = device();
    put(&device, 0, 1);
    put(&device, 0, 2);
    device.flush().unwrap();
    let history = device.history();
    assert!(history.crash().pending().is_empty());
    assert_eq!(firsts(&history.crash().image(&mut Keep::Nothing), 1), [2]);
}

#[test]
fn a_cut_may_come_in_the_middle_of_a_write() {
    let device = device();
    put(&device, 0, 1);
    let history = device.history();
    assert!(matches!(history.events[0], Event::WriteBegan { .. }));
    let crash = history.crash_after(1);
    assert_eq!(crash.pending().len(), 1);
    assert!(history.crash_after(0).pending().is_empty());
}

#[test]
fn a_flush_does_not_speak_for_a_write_in_flight() {
    let options = SimOptions {
        write_time: Duration::from_millis(300),
        ..SimOptions::default()
    };
    let device = SimDevice::from_image(Image::new(1 << 20), options);
    thread::scope(|scope| {
        scope.spawn(|| put(&device, 0, 1));
        while device.events() == 0 {
            thread::yield_now();
        }
        device.flush().unwrap();
    });
    let history = device.history();
    assert!(
        matches!(history.events[1], Event::FlushBegan { .. }),
        "{:?}",
        history.events
    );
    assert_eq!(firsts(&history.crash().image(&mut Keep::Nothing), 1), [0]);
    device.flush().unwrap();
    let history = device.history();
    assert_eq!(firsts(&history.crash().image(&mut Keep::Nothing), 1), [1]);
}

#[test]
fn a_failed_flush_leaves_its_writes_in_doubt_for_ever() {
    let device = device();
    put(&device, 0, 1);
    device.inject(Fault::nth(1, Call::Flush, Effect::Io));
    device.flush().unwrap_err();
    put(&device, 1, 2);
    device.flush().unwrap();
    let lost = firsts(&device.history().crash().image(&mut Keep::Nothing), 2);
    assert_eq!(
        lost,
        [0, 2],
        "the second flush proves nothing for the first write"
    );
    put(&device, 0, 3);
    device.flush().unwrap();
    let history = device.history();
    assert_eq!(
        firsts(&history.crash().image(&mut Keep::Nothing), 2),
        [3, 2]
    );
    assert!(history.crash().pending().is_empty());
}

#[test]
fn growth_and_discard_are_pending_too() {
    let device = SimDevice::new(SimOptions::default());
    device.grow(4 * PAGE).unwrap();
    put(&device, 0, 1);
    device.flush().unwrap();
    device.grow(8 * PAGE).unwrap();
    put(&device, 7, 7);
    device.discard(0, PAGE).unwrap();
    let history = device.history();
    let crash = history.crash();
    let nothing = crash.image(&mut Keep::Nothing);
    assert_eq!(
        (nothing.len_bytes(), firsts(&nothing, 1)),
        (4 * PAGE, vec![1])
    );
    let all = crash.image(&mut Keep::All);
    assert_eq!(all.len_bytes(), 8 * PAGE);
    assert_eq!(firsts(&all, 8), [0, 0, 0, 0, 0, 0, 0, 7]);
    // The bytes arrived and the length did not: they are cut off.
    let cut = crash.image(&mut Keep::Writes(vec![3]));
    assert_eq!(
        (cut.len_bytes(), cut.bytes(7 * PAGE, 1)),
        (4 * PAGE, vec![0])
    );
}

#[test]
fn a_restart_goes_on_from_what_was_left() {
    let first = device();
    put(&first, 0, 1);
    let image = first.history().crash().image(&mut Keep::All);
    let second = SimDevice::from_image(image, SimOptions::default());
    put(&second, 1, 2);
    let history = second.history();
    assert_eq!(
        firsts(&history.crash().image(&mut Keep::Nothing), 2),
        [1, 0]
    );
}

/// A history of many writes, growths, discards and flushes.
fn busy(seed: u64) -> SimDevice {
    let device = device();
    let mut dice = Dice::new(seed);
    for byte in 1..60u8 {
        let (sector, sectors) = (dice.below(64), 1 + dice.below(12));
        match dice.below(10) {
            0 | 1 => device.flush().unwrap(),
            2 => device.discard(sector * 512, sectors * 512).unwrap(),
            3 => device.grow((1 << 20) + u64::from(byte) * PAGE).unwrap(),
            _ => device
                .write_at(sector * 512, &filled(sectors * 512, byte))
                .unwrap(),
        }
    }
    device
}

#[test]
fn the_same_seed_gives_the_same_states() {
    let (first, second) = (busy(5).history(), busy(5).history());
    assert_eq!(first.events, second.events);
    for seed in 0..20 {
        let keep = |seed| [Keep::SomeSectors { seed }, Keep::SomeWrites { seed }];
        for (mut a, mut b) in keep(seed).into_iter().zip(keep(seed)) {
            assert_eq!(first.crash().image(&mut a), second.crash().image(&mut b));
        }
    }
}

#[test]
fn keeping_everything_is_what_a_reader_saw() {
    for seed in 0..20 {
        let device = busy(seed);
        assert_eq!(
            device.history().crash().image(&mut Keep::All),
            device.image()
        );
    }
}

#[test]
fn advancing_by_one_is_the_same_as_starting_anew() {
    let history = busy(9).history();
    let mut walk = history.crash_after(0);
    for events in 0..=history.events.len() {
        let anew = history.crash_after(events);
        assert_eq!(walk.choices(), anew.choices());
        let mut keep = Keep::SomeSectors {
            seed: events as u64,
        };
        assert_eq!(walk.image(&mut keep), anew.image(&mut keep));
        walk.advance();
    }
    assert!(!walk.advance());
}

/// Commits `value` to a record in page 0 whose data is in page 1 or 2, with a flush between data and
/// record if `careful`.
fn commit(device: &SimDevice, value: u8, careful: bool) {
    let data_page = 1 + u64::from(value % 2);
    put(device, data_page, value);
    if careful {
        device.flush().unwrap();
    }
    let mut record = filled(512, value);
    record[1] = data_page as u8;
    device.write_at(0, &record).unwrap();
    device.flush().unwrap();
}

/// How many crash states of three commits hold a record whose data is not there.
fn broken_states(careful: bool) -> usize {
    let device = device();
    for value in 1..=3 {
        commit(&device, value, careful);
    }
    let history = device.history();
    let mut crash = history.crash_after(0);
    let mut broken = 0;
    loop {
        let pending = crash.pending();
        for chosen in 0..1u32 << pending.len() {
            let kept = pending.iter().enumerate();
            let kept = kept
                .filter(|(n, _)| chosen >> n & 1 == 1)
                .map(|(_, p)| p.write);
            let image = crash.image(&mut Keep::Writes(kept.collect()));
            let record = image.bytes(0, 2);
            let data = image.bytes(u64::from(record[1]) * PAGE, PAGE as usize);
            broken += usize::from(record[0] != 0 && data.iter().any(|&byte| byte != record[0]));
        }
        if !crash.advance() {
            return broken;
        }
    }
}

#[test]
fn exhaustive_crashes_find_a_missing_flush() {
    assert_eq!(broken_states(true), 0);
    assert!(broken_states(false) > 0);
}
