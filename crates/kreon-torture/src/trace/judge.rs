//! Whether what a crash state holds is what the threads may have left.
//!
//! Each thread waits for each of its units and has regions of its own, so what survives of it is a
//! prefix of them. Then:
//! 1. such a prefix exists: nothing is torn, batches included;
//! 2. it takes in all that was acknowledged as durable before the power cut;
//! 3. what was acknowledged before a surviving unit of any thread began survived, too: what is lost is
//!    a suffix of the log.

use super::course::Course;
use super::events::Known;
use super::work::{Stamps, Work};
use crate::content::{Content, difference};
use crate::model::{Model, Prefix};

/// Knows what every thread did.
pub struct Judge {
    threads: Vec<(Model, Vec<Stamps>)>,
}

/// What survived of a thread: the prefixes of its units that look like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survived {
    /// The shortest.
    pub shortest: usize,
    /// The longest.
    pub longest: usize,
}

impl Judge {
    /// Of `work`.
    pub fn new(work: &Work) -> Self {
        let stamps = work.threads.iter().map(|done| done.units.clone());
        Self {
            threads: work.models().into_iter().zip(stamps).collect(),
        }
    }

    /// Units of all threads.
    pub fn units(&self) -> usize {
        self.threads.iter().map(|(_, stamps)| stamps.len()).sum()
    }

    /// The content after everything.
    pub fn end(&self) -> Content {
        let contents = self
            .threads
            .iter()
            .map(|(model, _)| model.content(model.end()));
        contents.flatten().collect()
    }

    /// Judges what is `found` after a power cut behind `events` events.
    ///
    /// # Errors
    /// What is lost or wrong.
    pub fn judge(
        &self,
        found: &Content,
        known: &[Known],
        events: usize,
    ) -> Result<Vec<Survived>, String> {
        let mut rest = found.clone();
        let mut all = Vec::new();
        for (thread, (model, _)) in self.threads.iter().enumerate() {
            let prefix = Course::prefix(thread as u64);
            let own = rest.extract_if(.., |name, _| name.starts_with(&prefix));
            let own: Content = own.collect();
            let durable = durable(known, events, thread);
            all.push(survived(model, &own, durable).map_err(|e| format!("thread {thread}: {e}"))?);
        }
        if let Some(name) = rest.keys().next() {
            return Err(format!("nobody made region {name}"));
        }
        self.check_order(&all)?;
        Ok(all)
    }

    /// Judges what is `found` without a power cut, if of each thread at least so much must be there.
    ///
    /// # Errors
    /// What is lost or wrong.
    pub fn judge_least(&self, found: &Content, least: &[Prefix]) -> Result<Vec<Survived>, String> {
        let known = least.iter().enumerate().map(|(thread, least)| Known {
            event: 0,
            thread,
            units: least.units,
            region_changes: least.region_changes,
        });
        self.judge(found, &known.collect::<Vec<_>>(), 0)
    }

    /// Rule 3.
    fn check_order(&self, all: &[Survived]) -> Result<(), String> {
        for (thread, (survived, (_, stamps))) in all.iter().zip(&self.threads).enumerate() {
            let last = survived.shortest.checked_sub(1);
            let Some(last) = last.and_then(|last| stamps.get(last)) else {
                continue;
            };
            for (other, (theirs, (_, stamps))) in all.iter().zip(&self.threads).enumerate() {
                let before = stamps.partition_point(|s| s.acknowledged < last.begun);
                if theirs.longest < before {
                    return Err(format!(
                        "unit {} of thread {other} was acknowledged before unit {} of thread {thread} \
                         began; the later one survived, the earlier one did not",
                        before - 1,
                        survived.shortest - 1,
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What `thread` had acknowledged as durable before a power cut behind `events` events.
fn durable(known: &[Known], events: usize, thread: usize) -> Prefix {
    let before = known
        .iter()
        .filter(|k| k.thread == thread && k.event <= events);
    before.fold(
        Prefix {
            units: 0,
            region_changes: 0,
        },
        |most, k| Prefix {
            units: most.units.max(k.units),
            region_changes: most.region_changes.max(k.region_changes),
        },
    )
}

fn survived(model: &Model, own: &Content, durable: Prefix) -> Result<Survived, String> {
    let end = model.end();
    let prefixes = model.find_all(
        own,
        durable.units..=end.units,
        durable.region_changes..=end.region_changes,
    );
    let units = || prefixes.iter().map(|prefix| prefix.units);
    if let (Some(shortest), Some(longest)) = (units().min(), units().max()) {
        return Ok(Survived { shortest, longest });
    }
    let any = model.find_all(own, 0..=end.units, 0..=end.region_changes);
    Err(format!(
        "no prefix from {durable:?} to {end:?}; from what must be there: {}; any prefix at all: {:?}",
        difference(&model.content(durable), own),
        any.first(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::work::Done;

    /// Two threads that take turns, and how many units each has.
    fn judge() -> (Judge, usize) {
        let mut work = Work {
            seed: 3,
            threads: vec![Done::default(), Done::default()],
        };
        for done in &mut work.threads {
            done.steps = 400;
        }
        let models = work.models();
        let count = models.iter().map(|model| model.end().units).min().unwrap();
        for (thread, (done, model)) in work.threads.iter_mut().zip(&models).enumerate() {
            let stamps = |unit| Stamps {
                begun: (unit * 2 + thread as u64) * 2,
                acknowledged: (unit * 2 + thread as u64) * 2 + 1,
            };
            done.units = (0..model.end().units as u64).map(stamps).collect();
        }
        (Judge::new(&work), count)
    }

    fn content(judge: &Judge, units: [usize; 2]) -> Content {
        let contents = judge.threads.iter().zip(units).map(|((model, _), units)| {
            model.content(Prefix {
                units,
                ..model.end()
            })
        });
        contents.flatten().collect()
    }

    fn known(thread: usize, units: usize) -> Known {
        Known {
            event: 10,
            thread,
            units,
            region_changes: 0,
        }
    }

    #[test]
    fn a_suffix_of_the_log_may_be_gone_and_nothing_else() {
        let (judge, count) = judge();
        let half = count / 2;
        let found = content(&judge, [half, half]);
        let survived = judge.judge(&found, &[], 20).unwrap();
        for survived in survived {
            assert!((survived.shortest..=survived.longest).contains(&half));
        }
        assert!(judge.judge(&judge.end(), &[], 20).is_ok());
        // Thread 1 lost units that were acknowledged before surviving ones of thread 0 began.
        let what = judge
            .judge(&content(&judge, [half, half - 30]), &[], 20)
            .unwrap_err();
        assert!(what.contains("the earlier one did not"), "{what}");
    }

    #[test]
    fn what_was_durable_before_the_power_cut_must_be_there() {
        let (judge, count) = judge();
        let half = count / 2;
        let found = content(&judge, [half, half]);
        for thread in 0..2 {
            let durable = [known(thread, half + 30)];
            assert!(judge.judge(&found, &durable, 10).is_err());
            assert!(judge.judge(&found, &durable, 9).is_ok(), "not known yet");
            assert!(judge.judge(&found, &[known(thread, half)], 10).is_ok());
        }
    }

    #[test]
    fn wrong_and_foreign_content_is_noticed() {
        let (judge, _) = judge();
        let mut torn = judge.end();
        let pairs = torn.values_mut().find(|pairs| !pairs.is_empty()).unwrap();
        pairs.first_entry().unwrap().get_mut().hash ^= 1;
        assert!(judge.judge(&torn, &[], 0).is_err());
        let mut foreign = judge.end();
        foreign.insert("stranger".to_owned(), Default::default());
        let what = judge.judge(&foreign, &[], 0).unwrap_err();
        assert!(what.contains("nobody made region stranger"), "{what}");
    }
}
