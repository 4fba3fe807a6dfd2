//! Histories of writes in several regions, regions made and dropped among them, of which a power cut leaves a prefix.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_sim::{Keep, SimDevice};
use tucana::{Direction, Durability, Options, Recovery, Result, Store};

use crate::world::{Model, Random, device, device_of, options};

/// All regions, by their names.
type Regions = BTreeMap<String, Model>;

#[derive(Clone)]
enum Step {
    Make(String),
    Drop(String),
    Write(String, Vec<u8>, Option<Vec<u8>>),
}

/// Steps in the order of the log, each with the events of the device before it, and which of them must survive.
#[derive(Default)]
struct History {
    steps: Vec<(Step, usize)>,
    /// After so many events of the device, so many steps were durable.
    durable: Vec<(usize, usize)>,
    regions: Regions,
}

fn apply(regions: &mut Regions, step: &Step) {
    match step {
        Step::Make(name) => {
            regions.entry(name.clone()).or_default();
        }
        Step::Drop(name) => drop(regions.remove(name)),
        Step::Write(name, key, value) => {
            let pairs = regions.get_mut(name).expect("a region");
            match value {
                Some(value) => drop(pairs.insert(key.clone(), value.clone())),
                None => drop(pairs.remove(key)),
            }
        }
    }
}

impl History {
    fn note(&mut self, step: Step, began: usize) {
        apply(&mut self.regions, &step);
        self.steps.push((step, began));
    }

    fn note_durable(&mut self, device: &SimDevice) {
        self.durable.push((device.events(), self.steps.len()));
    }

    fn step(&mut self, device: &SimDevice, store: &Store, random: &mut Random) {
        let began = device.events();
        let name = format!("region {}", random.below(3));
        if random.below(60) == 0 && self.regions.contains_key(&name) {
            store.drop_region(&name).unwrap();
            self.note(Step::Drop(name), began);
            return self.note_durable(device);
        }
        let region = store.region(&name).unwrap();
        if !self.regions.contains_key(&name) {
            self.note(Step::Make(name.clone()), began);
            self.note_durable(device);
        }
        let began = device.events();
        let durability = match random.below(8) {
            0 => Durability::Sync,
            _ => Durability::Buffered,
        };
        match random.below(30) {
            0 => {
                let range = random.below(60) as u8..60;
                region.delete_range([range.start]..[range.end]).unwrap();
                let keys = self.regions[&name].range(vec![range.start]..vec![range.end]);
                let keys: Vec<_> = keys.map(|(key, _)| key.clone()).collect();
                for key in keys {
                    self.note(Step::Write(name.clone(), key, None), began);
                }
            }
            number => {
                let key = vec![random.below(60) as u8; 1 + 300 * usize::from(number % 7 == 0)];
                let value = (number > 9).then(|| {
                    let long = [200, 40_000][usize::from(random.below(40) == 0)];
                    let mut value = self.steps.len().to_le_bytes().to_vec();
                    value.resize(8 + random.below(long) as usize, 7);
                    value
                });
                match &value {
                    Some(value) => region.put_with(&key, value, durability).unwrap(),
                    None => region.delete_with(&key, durability).unwrap(),
                };
                self.note(Step::Write(name, key, value), began);
                if durability == Durability::Sync {
                    self.note_durable(device);
                }
            }
        }
        if random.below(40) == 0 {
            match random.below(2) {
                0 => store.commit().unwrap(),
                _ => store.sync().unwrap(),
            }
            self.note_durable(device);
        }
    }

    /// How many steps a state has that a power cut after so many events may leave.
    fn prefix(&self, found: &Regions, events: usize) -> Option<usize> {
        let durable = self.durable.iter().filter(|(ended, _)| *ended <= events);
        let least = durable.map(|(_, steps)| *steps).max().unwrap_or(0);
        let begun = self.steps.iter().take_while(|(_, began)| *began <= events);
        let most = begun.count().max(least);
        let mut regions = Regions::new();
        let (first, rest) = self.steps[..most].split_at(least);
        first.iter().for_each(|(step, _)| apply(&mut regions, step));
        if regions == *found {
            return Some(least);
        }
        rest.iter().zip(least + 1..).find_map(|((step, _), count)| {
            apply(&mut regions, step);
            (regions == *found).then_some(count)
        })
    }
}

fn open(device: &Arc<SimDevice>, options: &Options) -> Store {
    Store::open(Arc::clone(device) as _, options).unwrap()
}

fn contents(store: &Store) -> Regions {
    let all = |name: String| {
        let region = store.existing_region(&name).unwrap();
        let pairs: Result<Model> = region.scan(.., Direction::Forward).collect();
        (name, pairs.unwrap())
    };
    store.region_names().unwrap().into_iter().map(all).collect()
}

fn check(seed: u64, options: &Options, every: u64) -> usize {
    let device = device();
    let (mut history, mut random) = (History::default(), Random(seed));
    for _ in 0..3 {
        let store = open(&device, options);
        for _ in 0..250 {
            history.step(&device, &store, &mut random);
        }
        if options.recovery == Recovery::ReplayLog && random.below(2) == 0 {
            store.sync().unwrap();
        } else {
            store.close().unwrap();
        }
        history.note_durable(&device);
    }
    let all = device.history();
    let mut crash = all.crash_after(0);
    let mut states = 0;
    loop {
        let events = crash.events();
        if random.below(every) == 0 {
            let dice = random.below(1 << 30);
            for mut keep in [
                Keep::Nothing,
                Keep::All,
                Keep::SomeWrites { seed: dice },
                Keep::SomeSectors { seed: dice },
            ] {
                let told = format!("seed {seed}, {events} events, {keep:?}");
                let again = device_of(crash.image(&mut keep));
                let store = open(&again, options);
                let found = contents(&store);
                let kept = history.prefix(&found, events);
                let kept = kept.unwrap_or_else(|| panic!("{told}: no state of the history"));
                // Nothing without a name is left.
                let keys: usize = found.values().map(Model::len).sum();
                assert_eq!(store.verify().unwrap().keys, keys as u64, "{told}");
                // A region that is made now has none of the keys of earlier ones.
                let made = store.region("region 9").unwrap();
                assert_eq!(
                    made.scan(.., Direction::Forward).count(),
                    0,
                    "{told}: {kept} steps"
                );
                states += 1;
            }
        }
        if !crash.advance() {
            return states;
        }
    }
}

#[test]
fn a_power_cut_leaves_a_prefix_of_all_that_was_done_in_all_regions() {
    let tiny = Options {
        commit_log_bytes: 100 << 10,
        ..options()
    };
    // `KREON_CRASH_STATES` makes it longer.
    let wanted = std::env::var("KREON_CRASH_STATES").ok();
    let wanted = wanted.and_then(|text| text.parse().ok()).unwrap_or(400);
    let (mut states, mut seed) = (0, 1);
    while states < wanted {
        let recovery = [Recovery::ReplayLog, Recovery::LastCommit][seed as usize % 2];
        let options = Options {
            recovery,
            ..tiny.clone()
        };
        states += check(seed, &options, 12);
        seed += 1;
    }
}
