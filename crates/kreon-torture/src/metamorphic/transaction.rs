//! Transactions and updates of a lane. Nobody else has its keys, so none of them conflicts, whatever is spilled, merged or
//! moved until the commit.

use kreon_engine::{Durability, KeyBounds, Own, Savepoint, Update};

use super::operations::{Change, REGIONS, Step, Transaction};
use super::seen::{Seen, agree, said, within};
use crate::content::{Digest, Pairs};

const BYTES_MAX: usize = 64 << 20;

/// What a transaction must find.
struct Course<'a> {
    seen: Seen<'a>,
    transaction: kreon_engine::Transaction,
    pairs: [Pairs; REGIONS],
    savepoints: Vec<(Savepoint, [Pairs; REGIONS])>,
}

/// Does a transaction of a lane that has `pairs`.
///
/// # Errors
/// The first wrong answer.
pub fn run(
    done: &Transaction,
    pairs: &mut [Pairs; REGIONS],
    durability: Durability,
    seen: Seen<'_>,
) -> Result<(), String> {
    let mut course = Course {
        seen,
        transaction: seen.engine.transaction(done.isolation, BYTES_MAX),
        pairs: pairs.clone(),
        savepoints: Vec::new(),
    };
    for (number, step) in done.steps.iter().enumerate() {
        let outcome = course.step(step);
        outcome.map_err(|what| format!("step {number} of a transaction: {what}"))?;
    }
    if done.commits {
        let committed = seen.engine.commit(course.transaction, durability);
        committed.map_err(|error| format!("commit: {error}"))?;
        *pairs = course.pairs;
    }
    Ok(())
}

impl Course<'_> {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        let regions = self.seen.regions;
        match step {
            Step::Get(region, key, is_for_update) => {
                let expected = self.pairs[*region].get(key).copied();
                let region = &regions[*region];
                let found = match is_for_update {
                    true => self.transaction.get_for_update(region, key, Own),
                    false => self.transaction.get(region, key, Own),
                };
                let found = found.map_err(said)?;
                agree(&found.map(|value| Digest::of(&value)), &expected)
            }
            Step::Scan(region, bounds, turns) => self.scan(*region, bounds, turns),
            Step::Write(change) => {
                let (region, pairs) = (&regions[change.region], &mut self.pairs[change.region]);
                match change.value.map(|value| value.bytes()) {
                    Some(value) => {
                        pairs.insert(change.key.clone(), Digest::of(&value));
                        self.transaction.put(region, &change.key, &value)
                    }
                    None => {
                        pairs.remove(&change.key);
                        self.transaction.delete(region, &change.key)
                    }
                }
                .map_err(said)
            }
            Step::DeleteRange(region, bounds) => {
                let deleted = within(&self.pairs[*region], bounds);
                for (key, _) in deleted {
                    self.pairs[*region].remove(&key);
                }
                let region = &regions[*region];
                let said_of_it = self.transaction.delete_range(region, bounds.clone());
                said_of_it.map_err(said)
            }
            Step::Save => {
                let savepoint = self.transaction.set_savepoint();
                self.savepoints.push((savepoint, self.pairs.clone()));
                Ok(())
            }
            Step::Return(number) => {
                let Some((savepoint, pairs)) = self.savepoints.get(*number).cloned() else {
                    return Ok(());
                };
                self.savepoints.truncate(number + 1);
                self.pairs = pairs;
                self.transaction.roll_back_to(savepoint).map_err(said)
            }
            Step::Checkpoint => self.seen.engine.checkpoint().map_err(said),
        }
    }

    fn scan(&mut self, region: usize, bounds: &KeyBounds, turns: &[bool]) -> Result<(), String> {
        let expected = within(&self.pairs[region], bounds);
        let mut expected = expected.into_iter();
        let regions = self.seen.regions;
        let scan = self.transaction.scan(&regions[region], bounds.clone());
        let mut scan = scan.map_err(said)?;
        for is_from_front in turns {
            let wanted = match is_from_front {
                true => expected.next(),
                false => expected.next_back(),
            };
            let found = scan.next(*is_from_front).map_err(said)?;
            let found = found.map(|(key, value)| (key, Digest::of(&value)));
            agree(&found, &wanted)?;
            if found.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// Makes of a key what `change` says, once by what it had and once more only if it has that.
///
/// # Errors
/// The first wrong answer.
pub fn update(
    pairs: &mut [Pairs; REGIONS],
    change: &Change,
    durability: Durability,
    seen: Seen<'_>,
) -> Result<(), String> {
    let region = &seen.regions[change.region];
    let value = change.value.map(|value| value.bytes());
    let after = value.as_deref().map(Digest::of);
    let pairs = &mut pairs[change.region];
    let before = match after {
        Some(after) => pairs.insert(change.key.clone(), after),
        None => pairs.remove(&change.key),
    };
    let mut calls = 0;
    let found = seen.engine.update(region, &change.key, durability, |_| {
        calls += 1;
        Ok(match &value {
            Some(value) => Update::Put(value.clone()),
            None => Update::Delete,
        })
    });
    let found = found.map_err(said)?;
    agree(&found.map(|value| Digest::of(&value)), &before)?;
    let kept = seen
        .engine
        .update(region, &change.key, durability, |_| Ok(Update::Keep));
    let kept = kept.map_err(said)?;
    agree(&kept.map(|value| Digest::of(&value)), &after)?;
    // Spills and moved records may make it look again, other lanes not.
    match calls < 100 {
        true => Ok(()),
        false => Err(format!("an update looked {calls} times")),
    }
}
