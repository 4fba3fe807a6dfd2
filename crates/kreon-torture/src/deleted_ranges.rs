//! Puts beside deletions of ranges, by threads: a put that comes behind a deletion shows that all of the deletion has
//! happened.
//!
//! Batches of another region are in the way: a deletion that has its position in the log waits for those ahead of it.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use kreon_base::Result;
use kreon_device::Device;
use kreon_engine::{DeletedRange, Durability, Engine, Operation, RegionState, Terms};
use kreon_sim::{Image, SimDevice, SimOptions};

use crate::Counts;
use crate::seeds::judged;
use crate::settings::options_of_check;

const ROUNDS: usize = 1000;

/// Keys of a batch: it takes longer than what the two others do.
const BATCH_KEYS: u64 = 256;

/// The deleted range begins with so long a key that no gap is made of it: that would close the gate, and let all threads
/// go on at once.
const START: [u8; 1100] = [0; 1100];

/// What is read that is wrong.
type Outcome = std::result::Result<(), String>;

/// Some rounds. How the threads meet follows from no seed.
pub fn deleted_ranges() -> Counts {
    judged(("deleted ranges", "deleted ranges"), 0, run())
}

/// An inner error is what is wrong, an outer one what the store said.
fn run() -> Result<Outcome> {
    let device = SimDevice::from_image(Image::default(), SimOptions::default());
    let engine = Engine::open(Arc::new(device) as Arc<dyn Device>, options_of_check())?;
    let store = Store {
        region: engine.region("deleted")?,
        beside: engine.region("beside")?,
        engine,
    };
    let (stop, meeting) = (AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|scope| {
        let batches = scope.spawn(|| store.write_batches(&stop));
        let deletions = scope.spawn(|| store.delete_in_rounds(&meeting));
        let seen = store.put_in_rounds(&meeting);
        stop.store(true, Ordering::Relaxed);
        let joined = |outcome: std::thread::Result<Result<()>>| {
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        joined(batches.join())?;
        joined(deletions.join())?;
        seen
    })
}

/// The store, which the threads share.
struct Store {
    engine: Engine,
    region: Arc<RegionState>,
    beside: Arc<RegionState>,
}

impl Store {
    /// Every round both meet before and behind what they do at once. An error does not end the rounds: the other one waits.
    fn delete_in_rounds(&self, meeting: &Barrier) -> Result<()> {
        let mut first = Ok(());
        for _ in 0..ROUNDS {
            meeting.wait();
            first = first.and(self.delete_all());
            meeting.wait();
        }
        first
    }

    fn put_in_rounds(&self, meeting: &Barrier) -> Result<Outcome> {
        let mut first = Ok(Ok(()));
        for round in 0..ROUNDS {
            let prepared = self.put(b"b");
            meeting.wait();
            let put = self.put(b"a");
            let was_there = self.has(b"b");
            meeting.wait();
            let seen = prepared.and(put).and_then(|()| {
                Ok(match self.has(b"a")? && was_there? {
                    true => Err(format!(
                        "round {round}: a put outlived a deletion that a later get did not see"
                    )),
                    false => Ok(()),
                })
            });
            if matches!(first, Ok(Ok(()))) {
                first = seen;
            }
        }
        first
    }

    fn write_batches(&self, stop: &AtomicBool) -> Result<()> {
        let keys: Vec<_> = (0..BATCH_KEYS).map(u64::to_be_bytes).collect();
        let operations: Vec<_> = keys.iter().map(|key| put_of(&self.beside, key)).collect();
        while !stop.load(Ordering::Relaxed) {
            self.engine.write(&operations, Durability::Buffered)?;
        }
        Ok(())
    }

    fn put(&self, key: &[u8]) -> Result<()> {
        let operation = put_of(&self.region, key);
        self.engine.write(&[operation], Durability::Buffered)
    }

    fn delete_all(&self) -> Result<()> {
        let all = DeletedRange::of((Bound::Included(START.to_vec()), Bound::Unbounded))?;
        let operation = all.as_ref().map(|all| all.operation(&self.region));
        self.engine
            .write(operation.as_slice(), Durability::Buffered)
    }

    fn has(&self, key: &[u8]) -> Result<bool> {
        self.engine.contains(&self.region, key, None)
    }
}

fn put_of<'a>(region: &'a RegionState, key: &'a [u8]) -> Operation<'a> {
    Operation {
        region,
        key,
        value: Some(b"value"),
        is_range: false,
        terms: Terms::default(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_put_behind_a_deletion_of_its_range_shows_that_all_of_it_has_happened() {
        let counts = super::deleted_ranges();
        assert_eq!(counts.failures, Vec::<String>::new());
    }
}
