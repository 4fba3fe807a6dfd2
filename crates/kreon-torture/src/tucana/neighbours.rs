//! Writers beside the clients that are judged: each has many keys of its own, so it knows what they must have. They make leaves
//! full and empty again, next to the keys of the clients.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use ::tucana::{ErrorKind, Store};
use kreon_judge::{Version, value};
use kreon_sim::Dice;

/// Keys of a writer.
pub(super) const KEYS: u64 = 900;

/// Changes after which puts prevail, or deletions again.
const WAVE: u64 = 1200;

/// What the keys of a writer have.
pub(super) type Held = Vec<Option<Version>>;

/// A writer in one opening of a store.
pub(super) struct Neighbour<'a> {
    pub course: Course,
    /// The keys by their numbers.
    pub keys: &'a [Vec<u8>],
    /// Changes that were made so far.
    pub done: &'a AtomicU64,
}

/// What a writer does in one opening.
#[derive(Clone, Debug)]
pub(super) struct Course {
    pub seed: u64,
    /// The versions of this opening are above it.
    pub version: Version,
    /// What its keys have when it begins.
    pub held: Held,
}

/// A change of one key.
struct Change {
    key: usize,
    /// `None`: a deletion.
    version: Option<Version>,
}

impl Course {
    /// Change number `number`, from 1 on.
    fn change(&self, number: u64) -> Change {
        let mut dice = Dice::new(self.seed.rotate_left(20) ^ number);
        let deletes = [8, 92][(number / WAVE % 2) as usize];
        Change {
            key: dice.below(KEYS) as usize,
            version: (dice.below(100) >= deletes).then_some(self.version + number),
        }
    }

    /// Goes on from what an opening found: it must be what the keys had after some change, from `least` on up to `most`.
    ///
    /// # Errors
    /// It is not.
    pub fn settle(&mut self, found: &Held, (least, most): (u64, u64)) -> Result<(), String> {
        let mut held = self.held.clone();
        let differs = |held: &Held, key: usize| held[key] != found[key];
        let mut different = (0..held.len()).filter(|&key| differs(&held, key)).count();
        for number in 0..=most {
            if number > 0 {
                let Change { key, version } = self.change(number);
                let before = differs(&held, key);
                held[key] = version;
                different += usize::from(differs(&held, key));
                different -= usize::from(before);
            }
            if number >= least && different == 0 {
                self.held = held;
                return Ok(());
            }
        }
        Err(format!(
            "the keys of a writer are not as after one of its changes {least} to {most}: {different} of them are not as after the last"
        ))
    }
}

impl Neighbour<'_> {
    /// Changes and reads keys until it is over.
    ///
    /// # Errors
    /// What is wrong.
    pub fn run(&self, store: &Store, is_over: &AtomicBool) -> Result<(), String> {
        let (mut held, mut dice) = (self.course.held.clone(), Dice::new(self.course.seed));
        let mut number = 0;
        while !is_over.load(SeqCst) {
            number += 1;
            let Change { key, version } = self.course.change(number);
            let bytes = &self.keys[key];
            let outcome = match version {
                Some(version) => store.put(bytes, &value::encode(version, 20)),
                None => store.delete(bytes),
            };
            match outcome {
                Ok(had_one) if had_one == held[key].is_some() => held[key] = version,
                Ok(had_one) => {
                    let known = held[key];
                    return Err(format!(
                        "a change of a writer's key {key} says {had_one}, it has {known:?}"
                    ));
                }
                Err(error) if has_no_power(&error, is_over) => return Ok(()),
                Err(error) => return Err(format!("a change of a writer failed: {error}")),
            }
            self.done.store(number, SeqCst);
            if dice.below(6) == 0 {
                let key = dice.below(KEYS) as usize;
                match store.get(&self.keys[key]) {
                    Ok(found) => {
                        let found = found.map(|value| value::decode(&value)).transpose()?;
                        if found != held[key] {
                            let known = held[key];
                            return Err(format!(
                                "a get of a writer's key {key} shows {found:?}, it has {known:?}"
                            ));
                        }
                    }
                    Err(error) if has_no_power(&error, is_over) => return Ok(()),
                    Err(error) => return Err(format!("a get of a writer failed: {error}")),
                }
            }
        }
        Ok(())
    }
}

/// Whether the power cut explains an error.
pub(super) fn has_no_power(error: &::tucana::Error, is_over: &AtomicBool) -> bool {
    is_over.load(SeqCst) && matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned)
}
