//! Writes that are durable in the log alone.

use std::thread;

use kreon_sim::{Call, Effect, Fault, Keep, SimDevice};
use tucana::{Durability, ErrorKind, Options, Recovery};

use crate::history::History;
use crate::world::{Random, device, device_of, open_with, options, pairs};

const SYNC: Durability = Durability::Sync;

fn states_wanted() -> usize {
    let wanted = std::env::var("KREON_CRASH_STATES").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(300)
}

fn keeps(dice: u64) -> [Keep; 4] {
    [
        Keep::Nothing,
        Keep::All,
        Keep::SomeWrites { seed: dice },
        Keep::SomeSectors { seed: dice },
    ]
}

/// Checks what power cuts after events from `first` on leave; returns how many.
fn check(
    (device, history): (&SimDevice, &History),
    options: &Options,
    (first, every): (usize, u64),
    random: &mut Random,
) -> usize {
    let events = device.history();
    let (mut crash, mut states) = (events.crash_after(first), 0);
    loop {
        if random.below(every) == 0 {
            let dice = random.below(1 << 30);
            for mut keep in keeps(dice) {
                let told = format!("{} events, {keep:?}", crash.events());
                let again = device_of(crash.image(&mut keep));
                let store = open_with(&again, options).unwrap_or_else(|e| panic!("{told}: {e}"));
                let found = pairs(&store).unwrap_or_else(|e| panic!("{told}: {e}"));
                let prefix = history.prefix(&found, crash.events());
                prefix.unwrap_or_else(|error| panic!("{told}: {error}"));
                store.verify().unwrap_or_else(|e| panic!("{told}: {e}"));
                states += 1;
            }
        }
        if !crash.advance() {
            return states;
        }
    }
}

#[test]
fn a_power_cut_leaves_a_prefix_of_all_writes_with_all_that_were_durable() {
    let (mut states, mut seed) = (0, 1);
    while states < states_wanted() {
        let (device, mut random) = (device(), Random(seed));
        let mut history = History::default();
        for _ in 0..3 {
            let store = history.reopen(&device, &options());
            let writes = random.below(200);
            history.write_some(&device, &store, &mut random, writes);
        }
        let created = history_start(&device);
        states += check((&device, &history), &options(), (created, 4), &mut random);
        seed += 1;
    }
}

/// Events of the creation of a store: before these there may be none.
fn history_start(device: &SimDevice) -> usize {
    let empty = crate::world::device();
    drop(open_with(&empty, &options()).unwrap());
    empty.events().min(device.events())
}

/// An opening that replays has commits in the middle when it runs out of frames, and may be cut short itself. The last commit
/// does not know all segments of the log.
#[test]
fn a_power_cut_in_a_replay_loses_nothing_of_it() {
    let (device, mut random) = (device(), Random(77));
    let large = Options {
        memory_bytes: 16 << 20,
        ..options()
    };
    let store = open_with(&device, &large).unwrap();
    let keys: Vec<[u8; 4]> = (0..8000_u32)
        .map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes())
        .collect();
    for key in &keys {
        store.put(key, &[3; 800]).unwrap();
    }
    store.sync().unwrap();
    drop(store);
    let small = Options {
        memory_bytes: 512 << 10,
        ..options()
    };
    let cut = device_of(device.history().crash().image(&mut Keep::Nothing));
    let store = open_with(&cut, &small).unwrap();
    let copies = store.stats().copies;
    assert!(
        copies > 10,
        "{copies} copies: the replay had commits in the middle"
    );
    assert_eq!(pairs(&store).unwrap().len(), keys.len());
    drop(store);
    let recovery = cut.history();
    let events = recovery.events.len();
    for _ in 0..5 {
        let at = random.below(events as u64) as usize;
        let seed = random.below(1 << 30);
        for mut keep in [Keep::Nothing, Keep::SomeSectors { seed }] {
            let again = device_of(recovery.crash_after(at).image(&mut keep));
            let store = open_with(&again, &small).unwrap();
            assert_eq!(
                pairs(&store).unwrap().len(),
                keys.len(),
                "{at} of {events}, {keep:?}"
            );
            store.verify().unwrap();
        }
    }
}

/// What was written after a crash is as safe as what was written before it: a torn tail never counts again.
#[test]
fn a_replayed_store_goes_on_and_survives_the_next_power_cut() {
    for seed in 200..203 {
        let (first, mut random, mut history) = (device(), Random(seed), History::default());
        let store = history.reopen(&first, &options());
        history.write_some(&first, &store, &mut random, 120);
        drop(store);
        let (all, created) = (first.history(), history_start(&first));
        for _ in 0..3 {
            let span = (all.events.len() - created) as u64;
            let at = created + random.below(span) as usize;
            let dice = random.below(1 << 30);
            let image = all
                .crash_after(at)
                .image(&mut Keep::SomeSectors { seed: dice });
            let second = device_of(image);
            let store = open_with(&second, &options()).unwrap();
            let found = pairs(&store).unwrap();
            let kept = history.prefix(&found, at).unwrap();
            let mut again = history.first(kept);
            again.note_durable(&second);
            let begun = second.events();
            again.write_some(&second, &store, &mut random, 40);
            drop(store);
            check((&second, &again), &options(), (begun, 3), &mut random);
        }
    }
}

#[test]
fn a_synced_deletion_of_nothing_makes_what_it_saw_durable() {
    let device = device();
    let store = open_with(&device, &options()).unwrap();
    store.put_with(b"key", b"value", SYNC).unwrap();
    assert!(store.delete(b"key").unwrap());
    assert!(!store.delete_with(b"key", SYNC).unwrap());
    let image = device.history().crash().image(&mut Keep::Nothing);
    let again = open_with(&device_of(image), &options()).unwrap();
    assert_eq!(again.get(b"key").unwrap(), None);
}

#[test]
fn threads_that_wait_share_flushes_and_each_write_is_durable_when_it_returns() {
    let device = device();
    let store = open_with(&device, &options()).unwrap();
    let (threads, writes) = (6_u32, 150_u32);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (store, device) = (&store, &device);
            scope.spawn(move || {
                for number in 0..writes {
                    let key = (thread * writes + number).to_be_bytes();
                    store.put_with(&key, b"value", SYNC).unwrap();
                    if number % 50 == 49 {
                        let image = device.history().crash().image(&mut Keep::Nothing);
                        let again = open_with(&device_of(image), &options()).unwrap();
                        let found = pairs(&again).unwrap();
                        let own =
                            (0..=number).map(|number| (thread * writes + number).to_be_bytes());
                        assert!(own.into_iter().all(|key| found.contains_key(&key[..])));
                    }
                }
            });
        }
    });
    let image = device.history().crash().image(&mut Keep::Nothing);
    let again = open_with(&device_of(image), &options()).unwrap();
    assert_eq!(pairs(&again).unwrap().len() as u32, threads * writes);
}

#[test]
fn a_failed_flush_or_write_of_the_log_poisons_the_store_and_is_not_tried_again() {
    // No space in the middle of a write leaves as much in doubt as any error, and is told like it.
    let effects = [Effect::Io, Effect::OutOfSpace];
    let calls = [Call::Flush, Call::Write].into_iter();
    for (call, effect) in calls.flat_map(|call| effects.map(|effect| (call, effect))) {
        let device = device();
        let store = open_with(&device, &options()).unwrap();
        store.put_with(b"first", b"value", SYNC).unwrap();
        device.inject(Fault::nth(0, call, effect));
        let error = store.put_with(b"second", b"value", SYNC).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        device.clear_faults();
        let events = device.events();
        for error in [
            store.put(b"third", b"").unwrap_err(),
            store.put_with(b"third", b"", SYNC).unwrap_err(),
            store.delete(b"first").unwrap_err(),
            store.sync().unwrap_err(),
            store.commit().unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        }
        assert_eq!(
            device.events(),
            events,
            "nothing reaches the device any more"
        );
        assert_eq!(store.get(b"first").unwrap().as_deref(), Some(&b"value"[..]));
        drop(store);
        let image = device.history().crash().image(&mut Keep::Nothing);
        let again = open_with(&device_of(image), &options()).unwrap();
        assert_eq!(again.get(b"first").unwrap().as_deref(), Some(&b"value"[..]));
        assert_eq!(again.get(b"third").unwrap(), None);
    }
}

/// A record of a write that failed is in the log, but a replay does not find it.
#[test]
fn a_write_that_failed_does_not_come_back() {
    let device = device();
    let store = open_with(&device, &options()).unwrap();
    for number in 0..3000_u32 {
        store.put(&number.to_be_bytes(), b"before").unwrap();
    }
    store.close().unwrap();
    let store = open_with(&device, &options()).unwrap();
    // The nodes on the way to the key are not in memory.
    device.inject(Fault::nth(0, Call::Read, Effect::Io));
    let error = store.put(&1500_u32.to_be_bytes(), b"failed").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    device.clear_faults();
    store
        .put_with(&7_u32.to_be_bytes(), b"behind", SYNC)
        .unwrap();
    drop(store);
    let image = device.history().crash().image(&mut Keep::All);
    let store = open_with(&device_of(image), &options()).unwrap();
    let found = |number: u32| store.get(&number.to_be_bytes()).unwrap();
    assert_eq!(found(1500).as_deref(), Some(&b"before"[..]));
    assert_eq!(found(7).as_deref(), Some(&b"behind"[..]));
}

/// A bit of the log that flips is told, unless it is of the last flush: nothing behind it tells that it was durable.
#[test]
fn damage_of_the_log_behind_the_last_commit_is_told() {
    let device = device();
    let store = open_with(&device, &options()).unwrap();
    let before = device.image();
    for number in 0..200_u32 {
        store
            .put_with(&number.to_be_bytes(), &[5; 300], SYNC)
            .unwrap();
    }
    drop(store);
    let (image, mut random) = (device.image(), Random(8));
    let changed: Vec<u64> = (0..image.len_bytes() / 512)
        .filter(|sector| {
            let at = sector * 512;
            at >= before.len_bytes() || before.bytes(at, 512) != image.bytes(at, 512)
        })
        .filter(|sector| image.bytes(sector * 512, 512) != [0; 512])
        .collect();
    let mut told = 0;
    for _ in 0..300 {
        let mut damaged = image.clone();
        let sector = changed[random.below(changed.len() as u64) as usize];
        damaged.flip_bit(sector * 512 + random.below(512), random.below(8) as u8);
        match open_with(&device_of(damaged), &options()).and_then(|store| pairs(&store)) {
            Ok(found) => assert!(found.len() >= 199, "{} pairs", found.len()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                told += 1;
            }
        }
    }
    assert!(told > 200, "{told} told");
}

#[test]
fn without_replay_a_synced_write_is_durable_by_a_commit() {
    let device = device();
    let options = Options {
        recovery: Recovery::LastCommit,
        durability: SYNC,
        ..options()
    };
    let store = open_with(&device, &options).unwrap();
    store.put(b"key", b"value").unwrap();
    store
        .put_with(b"synced", b"value", Durability::Buffered)
        .unwrap();
    store.sync().unwrap();
    store
        .put_with(b"last", b"value", Durability::Buffered)
        .unwrap();
    let image = device.history().crash().image(&mut Keep::All);
    let again = open_with(&device_of(image), &options).unwrap();
    assert_eq!(pairs(&again).unwrap().len(), 2);
}

/// What is read wrong once is read again, also the headers by which the segments of the log are found.
#[test]
fn a_header_that_the_device_reads_wrong_once_does_not_end_the_log() {
    let device = device();
    let store = open_with(&device, &options()).unwrap();
    for number in 0..50_u32 {
        store.put(&number.to_be_bytes(), &[5; 150_000]).unwrap();
    }
    store.sync().unwrap();
    drop(store);
    let image = device.history().crash().image(&mut Keep::Nothing);
    let segment_bytes = 2 << 20;
    let mut met = 0;
    for segment in 0..image.len_bytes() / segment_bytes {
        let again = device_of(image.clone());
        let header = segment * segment_bytes..segment * segment_bytes + 512;
        let flip = Fault::nth(1, Call::Read, Effect::FlippedBit { bit: 77 });
        again.inject(flip.within(header));
        match open_with(&again, &options()) {
            Ok(store) => {
                assert_eq!(store.verify().unwrap().keys, 50, "segment {segment}");
                met += 1;
            }
            // The catalogue and the bitmap.
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{error}"),
        }
    }
    assert!(met >= 4, "{met} segments");
}
