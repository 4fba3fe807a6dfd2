//! Writers beside the clients that are judged: each has many keys of its own, so it knows what they must have. They make leaves
//! full and empty again, next to the keys of the clients.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use kreon_judge::{Version, value};
use kreon_sim::Dice;

use super::clients::has_no_power;
use super::engine::{Durability, Engine};
use super::prefix::changes_kept;

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

impl Course {
    /// The key and its version of change number `number`, from 1 on. `None`: a deletion.
    fn change(&self, number: u64) -> (usize, Option<Version>) {
        let mut dice = Dice::new(self.seed.rotate_left(20) ^ number);
        let deletes = [8, 92][(number / WAVE % 2) as usize];
        let key = dice.below(KEYS) as usize;
        (
            key,
            (dice.below(100) >= deletes).then_some(self.version + number),
        )
    }

    /// Goes on from what an opening found: it must be what the keys had after some change, from `least` on up to `most`.
    pub fn settle(&mut self, found: &Held, (least, most): (u64, u64)) -> Result<(), String> {
        let kept = changes_kept(found, &self.held, (least, most), |number| {
            self.change(number)
        });
        kept.map_err(|different| {
            format!(
                "the keys of a writer are not as after one of its changes {least} to {most}: {different} of them are not as after the last"
            )
        })?;
        self.held.clone_from(found);
        Ok(())
    }
}

impl Neighbour<'_> {
    /// Changes and reads keys until it is over.
    pub fn run<E: Engine>(&self, store: &E, is_over: &AtomicBool) -> Result<(), String> {
        let (mut held, mut dice) = (self.course.held.clone(), Dice::new(self.course.seed));
        let mut number = 0;
        while !is_over.load(SeqCst) {
            number += 1;
            let (key, version) = self.course.change(number);
            let value = version.map(|version| value::encode(version, 20));
            let outcome = store.change(&self.keys[key], value.as_deref(), Durability::Buffered);
            match outcome {
                Ok(had_one) if had_one.is_none_or(|it| it == held[key].is_some()) => {
                    held[key] = version;
                }
                Ok(had_one) => {
                    let known = held[key];
                    return Err(format!(
                        "a change of a writer's key {key} says {had_one:?}, it has {known:?}"
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
