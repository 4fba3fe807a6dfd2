//! Short scripts for the sweep of faults: together they make every kind of call on a device.

use kreon_engine::Durability::{Buffered, Sync};

use kreon_sim::{Call, Effect};

use crate::class::Class;
use crate::script::{Change, Handed, Lifetime, Shape, Step, Value, script};

/// What a script is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// A little of everything, on a new store.
    Little,
    /// A little of everything, on a store that was cut off: its open replays a log.
    Replayed,
    /// The volume grows, and space is given back.
    Space,
    /// Any script, on a store that was cut off.
    Random,
}

impl Workload {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Little, Self::Replayed, Self::Space, Self::Random];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Replayed => "replayed",
            Self::Space => "space",
            Self::Random => "random",
        }
    }

    /// The one called `name`.
    pub fn called(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Whether calls like `class`'s are what it is for. Values that fill segments make a run slow, so
    /// the others fail their calls in the shorter scripts only.
    pub fn suits(self, class: &Class) -> bool {
        let is_of_space = matches!(
            class.call,
            Some(Call::Allocate | Call::Grow | Call::Discard)
        );
        self != Self::Space || is_of_space || class.effect == Effect::OutOfSpace
    }

    /// Whether it begins with a store that is there already.
    pub fn is_on_base(self) -> bool {
        matches!(self, Self::Replayed | Self::Random)
    }

    /// Its steps, for a store that has the `regions` already.
    pub fn steps(self, seed: u64, regions: &[String]) -> Vec<Step> {
        match self {
            Self::Little | Self::Replayed => little(),
            Self::Space => space(),
            Self::Random => {
                let shape = Shape {
                    giants_max: 0,
                    ..Shape::of(seed, 20)
                };
                script(seed ^ 0xfa17, shape, regions)
            }
        }
    }
}

/// A put of so many bytes, or a deletion.
fn change(region: &str, key: &str, len_bytes: Option<usize>) -> Change {
    let seed = key.len() as u64 + len_bytes.unwrap_or(0) as u64;
    Change {
        region: region.to_owned(),
        key: key.as_bytes().to_vec(),
        value: len_bytes.map(|len_bytes| Value { len_bytes, seed }),
        until: None,
        lifetime: Lifetime::Unlimited,
    }
}

fn put(key: &str, len_bytes: usize, durability: kreon_engine::Durability) -> Step {
    Step::Write(vec![change("work", key, Some(len_bytes))], durability)
}

/// What the store holds whose open replays a log.
pub fn base() -> Vec<Step> {
    let mut steps = little();
    steps.push(Step::Create("kept".into()));
    for number in 0..30 {
        let key = format!("key-{number:03}");
        let len_bytes = Some(number * 37 % 500);
        let change = change(
            if number % 3 == 0 { "work" } else { "kept" },
            &key,
            len_bytes,
        );
        steps.push(Step::Write(
            vec![change],
            if number % 8 == 0 { Sync } else { Buffered },
        ));
    }
    steps.push(Step::Sync);
    steps
}

fn delete(key: &str) -> Step {
    Step::Write(vec![change("work", key, None)], Sync)
}

/// A load of pairs with values of so many bytes.
fn load(pairs: &[(&str, usize)]) -> Step {
    let handed = pairs.iter().map(|(key, len_bytes)| Handed {
        before: Vec::new(),
        key: key.as_bytes().to_vec(),
        value: Value {
            len_bytes: *len_bytes,
            seed: *len_bytes as u64,
        },
    });
    Step::Ingest("work".to_owned(), handed.collect())
}

fn little() -> Vec<Step> {
    let batch = |len_bytes| {
        let puts = ["a", "b", "c"].map(|key| change("work", key, Some(len_bytes)));
        let mut changes = puts.to_vec();
        changes.push(change("other", "a", Some(len_bytes + 1)));
        changes.push(change("work", "long", None));
        Step::Write(changes, Sync)
    };
    vec![
        Step::Create("work".into()),
        Step::Create("other".into()),
        put("inline", 20, Sync),
        put("long", 5000, Buffered),
        put("a", 900, Buffered),
        batch(300),
        Step::Checkpoint,
        Step::Snapshot,
        put("a", 33, Sync),
        put("long", 70_000, Buffered),
        delete("inline"),
        Step::Checkpoint,
        Step::Release,
        put("b", 10, Buffered),
        load(&[("a", 50), ("c", 800), ("d", 70_000), ("long", 7)]),
        Step::Reopen,
        put("c", 2000, Buffered),
        Step::Sync,
        batch(40),
        Step::Drop("other".into()),
        Step::Checkpoint,
        put("last", 64, Sync),
    ]
}

/// Values that fill segments, their deletion, and again: what became free is given back and used
/// again.
fn space() -> Vec<Step> {
    const BYTES: usize = 2 << 20;
    let keys = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"];
    let mut steps = vec![Step::Create("work".into())];
    steps.extend(keys.map(|key| put(key, BYTES, Buffered)));
    steps.push(put("kept", 700, Sync));
    steps.push(Step::Checkpoint);
    steps.extend(keys.map(delete));
    steps.extend([Step::Checkpoint, Step::Checkpoint]);
    steps.extend(keys.map(|key| put(key, 40 + key.len(), Buffered)));
    steps.push(load(&[
        ("1", BYTES),
        ("2", 2 * BYTES),
        ("5", 60),
        ("8", BYTES),
    ]));
    steps.extend([put("again", BYTES, Sync), Step::Checkpoint]);
    steps
}
