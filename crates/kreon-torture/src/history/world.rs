//! What the clients of a round share: the store, the clock, keys and values.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kreon_base::Result;
use kreon_engine::{Durability, Engine};
use kreon_judge::{State, Version};
use kreon_sim::Dice;
use parking_lot::Mutex;

use super::crowd::Crowd;
use super::handle::Handle;
use super::reserved::Reserved;
use super::values::{self, Taste};
use crate::own_options::options_of;

/// Regions that are there in every round.
const FIXED_REGIONS: usize = 3;

/// See the module's text.
pub struct World {
    /// The store.
    pub engine: Engine,
    /// Regions that are never dropped.
    pub fixed: Vec<Handle>,
    /// The latest region of each name that comes and goes.
    pub passing: Vec<Mutex<Option<Handle>>>,
    /// All keys, ascending.
    pub keys: Vec<Vec<u8>>,
    /// Keys that a load has for itself.
    pub reserved: Reserved,
    /// How values are.
    pub taste: Taste,
    /// Something failed: everybody ends.
    pub stop: AtomicBool,
    /// When the power was cut; `u64::MAX`: not yet.
    pub cut: AtomicU64,
    /// Who uses it.
    pub crowd: Crowd,
    /// Commits that failed because others came first.
    pub conflicts: AtomicU64,
    /// Calls that began.
    pub calls: AtomicU64,
    clock: AtomicU64,
    versions: AtomicU64,
}

impl World {
    /// Makes the regions if need be. Versions begin at `version`.
    pub fn new(engine: Engine, shape: &Shape, version: Version) -> Result<Self> {
        let mut fixed = Vec::new();
        for number in 0..FIXED_REGIONS {
            let name = format!("fixed{number}");
            let region = (name.as_str(), &options_of(&name));
            let region = engine.region_with_options(region, Durability::Sync)?;
            let may_go = false;
            fixed.push(Handle { region, may_go });
        }
        Ok(Self {
            engine,
            fixed,
            passing: (0..shape.names).map(|_| Mutex::default()).collect(),
            keys: keys(shape.keys),
            reserved: Reserved::default(),
            taste: shape.taste,
            stop: AtomicBool::new(false),
            cut: AtomicU64::new(u64::MAX),
            crowd: shape.crowd,
            conflicts: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            clock: AtomicU64::new(1),
            versions: AtomicU64::new(version),
        })
    }

    /// A moment that nobody else has.
    pub fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// A version that no write has.
    pub fn next_version(&self) -> Version {
        self.versions.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the power was cut.
    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst) != u64::MAX
    }

    /// The name of a region that comes and goes.
    pub fn name(number: u32) -> String {
        format!("passing{number}")
    }

    /// Drops the regions that come and go, and forgets them.
    pub fn forget_passing_regions(&self) {
        for slot in &self.passing {
            if let Some(handle) = slot.lock().take() {
                // It may be gone already.
                let _ = self.engine.drop_region(&handle.region.name);
            }
        }
    }

    /// What all fixed regions hold.
    pub fn read_all(&self) -> std::result::Result<State, String> {
        let mut state = State::new();
        for handle in &self.fixed {
            let bounds = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
            let mut scan = self
                .engine
                .scan(&handle.region, self.engine.snapshot(), bounds);
            let show = |key: &[u8], value: &[u8]| (self.key_number(key), values::decode(value));
            while let Some((key, version)) =
                scan.next_with(show).map_err(|error| error.to_string())?
            {
                state.insert(handle.register(key?), version?);
            }
        }
        Ok(state)
    }

    /// Which key this is.
    pub fn key_number(&self, key: &[u8]) -> std::result::Result<usize, String> {
        let found = self
            .keys
            .binary_search_by(|known| known.as_slice().cmp(key));
        found.map_err(|_| format!("a key that nobody wrote: {}", key.escape_ascii()))
    }
}

/// How a store is used.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Keys of each region.
    pub keys: usize,
    /// Regions that come and go.
    pub names: u32,
    /// Values.
    pub taste: Taste,
    /// Who uses it.
    pub crowd: Crowd,
}

impl Shape {
    /// Any.
    pub fn of(dice: &mut Dice, crowd: Crowd) -> Self {
        let keys = [4, 12, 40, 150][dice.below(4) as usize];
        Self {
            keys,
            names: dice.below(4) as u32,
            taste: Taste::of(dice),
            crowd,
        }
    }
}

/// Ascending keys of all lengths; some do not fit into a node of an index.
fn keys(count: usize) -> Vec<Vec<u8>> {
    let key = |number: usize| {
        let mut key = format!("{number:04}").into_bytes();
        match number % 8 {
            3 => key.resize(24, b'-'),
            5 => key.resize(200, b'-'),
            6 if number.is_multiple_of(3) => key.resize(1300, b'-'),
            _ => {}
        }
        key
    };
    (0..count).map(key).collect()
}
