//! Power cuts: the store is as at the last commit that ended, or at the one that was under way.

use kreon_sim::{Keep, SimDevice};

use crate::world::{Model, Random, change, device, device_of, open, pairs};

/// A commit of a history.
struct Committed {
    /// Events of the device before the call, and when it had returned.
    began: usize,
    ended: usize,
    /// What the store held.
    model: Model,
}

/// A history of commits, some of them in stores that were opened again.
fn history(device: &std::sync::Arc<SimDevice>, seed: u64) -> Vec<Committed> {
    let (mut model, mut random) = (Model::new(), Random(seed));
    let mut commits = Vec::new();
    let mut begun = 0;
    for round in 0..5 {
        let store = open(device).unwrap();
        let mut note = |began: usize, model: &Model| {
            commits.push(Committed {
                began,
                ended: device.events(),
                model: model.clone(),
            });
        };
        // An opening commits what there is.
        note(begun, &model);
        for _ in 0..4 {
            let writes = random.below(250);
            change(&store, &mut model, &mut random, writes).unwrap();
            let began = device.events();
            store.commit().unwrap();
            note(began, &model);
        }
        if round % 2 == 0 {
            // Writes that no commit follows, and whose records fill segments.
            let mut lost = model.clone();
            change(&store, &mut lost, &mut random, 120).unwrap();
        }
        begun = device.events();
    }
    commits
}

/// Which states a power cut after so many events may leave.
fn allowed(commits: &[Committed], events: usize) -> Vec<&Model> {
    let ended = commits.iter().rfind(|commit| commit.ended <= events);
    let under_way = commits
        .iter()
        .filter(|commit| commit.began <= events && commit.ended > events);
    ended
        .into_iter()
        .chain(under_way)
        .map(|commit| &commit.model)
        .collect()
}

fn check(seed: u64, every: usize) -> usize {
    let device = device();
    let commits = history(&device, seed);
    let history = device.history();
    let mut states = 0;
    let first = commits[0].ended;
    let mut crash = history.crash_after(first);
    let mut random = Random(seed);
    loop {
        let events = crash.events();
        if random.below(every as u64) == 0 {
            let dice = random.below(1 << 30);
            for mut keep in [
                Keep::Nothing,
                Keep::All,
                Keep::SomeWrites { seed: dice },
                Keep::SomeSectors { seed: dice },
            ] {
                let after = device_of(crash.image(&mut keep));
                let told = || format!("seed {seed}, {events} events, {keep:?}");
                let store = open(&after).unwrap_or_else(|error| panic!("{}: {error}", told()));
                let found = pairs(&store).unwrap_or_else(|error| panic!("{}: {error}", told()));
                let is_allowed = allowed(&commits, events).contains(&&found);
                let verified = store.verify();
                let verified = verified.unwrap_or_else(|error| panic!("{}: {error}", told()));
                assert_eq!(verified.keys, found.len() as u64);
                assert!(is_allowed, "{}: {} pairs", told(), found.len());
                states += 1;
            }
        }
        if !crash.advance() {
            return states;
        }
    }
}

#[test]
fn a_power_cut_leaves_the_last_commit_or_the_one_under_way() {
    // `KREON_CRASH_STATES` makes it longer.
    let wanted = std::env::var("KREON_CRASH_STATES").ok();
    let wanted = wanted.and_then(|text| text.parse().ok()).unwrap_or(300);
    let (mut states, mut seed) = (0, 1);
    while states < wanted {
        states += check(seed, 3);
        seed += 1;
    }
}

/// What was written after a crash is as safe as what was written before it: the remains of the lost run never count.
#[test]
fn a_store_goes_on_after_a_power_cut_and_survives_the_next() {
    for seed in 100..102 {
        let first = device();
        let commits = history(&first, seed);
        let all = first.history();
        let mut random = Random(seed);
        let cut = commits[0].ended as u64;
        for _ in 0..6 {
            let events = cut + random.below(all.events.len() as u64 - cut);
            let dice = random.below(1 << 30);
            let crash = all.crash_after(events as usize);
            let again = device_of(crash.image(&mut Keep::SomeSectors { seed: dice }));
            let mut model = pairs(&open(&again).unwrap()).unwrap();
            let store = open(&again).unwrap();
            change(&store, &mut model, &mut random, 300).unwrap();
            store.verify().unwrap();
            let mut lost = model.clone();
            change(&store, &mut lost, &mut random, 100).unwrap();
            drop(store);
            let second = again.history();
            let image = second.crash().image(&mut Keep::SomeSectors { seed: dice });
            let store = open(&device_of(image)).unwrap();
            assert!(
                pairs(&store).unwrap() == model,
                "seed {seed}, {events} events"
            );
        }
    }
}

#[test]
fn a_creation_that_was_cut_short_begins_anew() {
    let device = device();
    let store = open(&device).unwrap();
    drop(store);
    let history = device.history();
    for events in 0..history.events.len() {
        for seed in 0..3 {
            let crash = history.crash_after(events);
            let image = crash.image(&mut Keep::SomeWrites { seed });
            let store = open(&device_of(image)).unwrap_or_else(|error| {
                panic!("after {events} events, seed {seed}: {error}");
            });
            assert!(pairs(&store).unwrap().is_empty());
            store.put(b"key", b"value").unwrap();
            store.commit().unwrap();
        }
    }
}
