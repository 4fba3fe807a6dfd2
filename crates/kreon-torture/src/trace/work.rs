//! The threads that write to a traced store, and the record of what was acknowledged.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use kreon_base::{ErrorKind, Result};
use kreon_engine::{Durability, Engine, Operation, Terms};

use super::course::Course;
use super::mark::Mark;
use super::marking::Marking;
use crate::content::{self, Content};
use crate::model::{Model, Prefix};
use crate::own_options::options_of;
use crate::script::{Change, Step};

/// When a unit was acknowledged that never was.
pub const NEVER: u64 = u64::MAX;

/// When a unit was begun and acknowledged, by a clock that all threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// Before the call.
    pub begun: u64,
    /// After it.
    pub acknowledged: u64,
}

/// What one thread did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Steps of its course.
    pub steps: usize,
    /// Its units.
    pub units: Vec<Stamps>,
}

/// What all threads did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Seed of the courses.
    pub seed: u64,
    /// By thread.
    pub threads: Vec<Done>,
}

impl Work {
    /// What must be there after every prefix of what a thread did, by thread.
    pub fn models(&self) -> Vec<Model> {
        let model = |(thread, done): (u64, &Done)| {
            let mut course = Course::new(self.seed, thread);
            let mut model = Model::of(&Content::new());
            for _ in 0..done.steps {
                match course.next_step() {
                    Step::Write(changes, _) => {
                        let digest = |change: &Change| {
                            let value = change.value.map(|value| value.bytes());
                            change.digest(value.as_deref())
                        };
                        let digests: Vec<_> = changes.iter().map(digest).collect();
                        model.write(&changes, &digests);
                    }
                    Step::Create(name) => model.make_region(&name),
                    Step::Drop(name) => model.drop_region(&name),
                    _ => {}
                }
            }
            model
        };
        (0..).zip(&self.threads).map(model).collect()
    }

    /// As lines of text.
    pub fn to_text(&self) -> String {
        let mut text = format!("seed {}\n", self.seed);
        for done in &self.threads {
            // To a `String` nothing fails.
            let _ = writeln!(text, "thread {}", done.steps);
            for Stamps {
                begun,
                acknowledged,
            } in &done.units
            {
                let _ = writeln!(text, "unit {begun} {acknowledged}");
            }
        }
        text + "end\n"
    }

    /// Reads [`to_text`](Self::to_text) back; `None` if it is not whole.
    pub fn of_text(text: &str) -> Option<Self> {
        let mut work = Self::default();
        let mut lines = text.lines();
        work.seed = lines.next()?.strip_prefix("seed ")?.parse().ok()?;
        for line in lines {
            if line == "end" {
                return Some(work);
            }
            if let Some(steps) = line.strip_prefix("thread ") {
                work.threads.push(Done {
                    steps: steps.parse().ok()?,
                    units: Vec::new(),
                });
                continue;
            }
            let (begun, acknowledged) = line.strip_prefix("unit ")?.split_once(' ')?;
            work.threads.last_mut()?.units.push(Stamps {
                begun: begun.parse().ok()?,
                acknowledged: acknowledged.parse().ok()?,
            });
        }
        None
    }
}

/// A thread at work. It outlives the store that it writes to: that may be closed and opened again.
pub struct Worker {
    thread: u64,
    course: Course,
    /// What it has done so far.
    pub done: Done,
    region_changes: u64,
    durable_units: usize,
    /// The volume is full.
    refused: bool,
}

impl Worker {
    /// Has done nothing yet.
    pub fn new(seed: u64, thread: u64) -> Self {
        Self {
            thread,
            course: Course::new(seed, thread),
            done: Done::default(),
            region_changes: 0,
            durable_units: 0,
            refused: false,
        }
    }

    /// Works until `is_over` says so, or until the volume is full.
    ///
    /// # Errors
    /// The first failure; what it befell may have happened or not, and the record says that it was begun.
    pub fn work(
        &mut self,
        engine: &Engine,
        device: &Marking,
        clock: &AtomicU64,
        is_over: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut snapshot = None;
        while !self.refused && !is_over() {
            let step = self.course.next_step();
            let outcome = match &step {
                Step::Write(changes, durability) => self.write(engine, clock, changes, *durability),
                // A course has none.
                Step::Ingest(..) => Ok(()),
                Step::Create(name) => engine
                    .region_with_options((name, &options_of(name)), Durability::Sync)
                    .map(drop),
                Step::Drop(name) => engine.drop_region(name),
                Step::Checkpoint => engine.checkpoint(),
                // What ends the process, and with it the other threads, comes between two recordings.
                Step::Sync | Step::Reopen | Step::Kill => engine.sync(),
                Step::Read => content::read(engine).map(drop),
                Step::WriteOut => engine.background(kreon_engine::Work::WriteOut),
                Step::Image => engine.background(kreon_engine::Work::Image),
                Step::Collect => crate::store::collect(engine),
                Step::Prepare => engine.background(kreon_engine::Work::Prepare),
                Step::Snapshot => {
                    snapshot = Some(engine.snapshot());
                    Ok(())
                }
                Step::Release => {
                    snapshot = None;
                    Ok(())
                }
            };
            if let Err(error) = &outcome
                && error.kind() == ErrorKind::OutOfSpace
            {
                // Nothing of it happened.
                self.refused = true;
                break;
            }
            self.done.steps += 1;
            outcome.map_err(|error| error.within(brief(&step)))?;
            self.mark_what_is_durable(device, &step)
                .map_err(|error| error.within("a mark"))?;
        }
        drop(snapshot);
        Ok(())
    }

    /// Whether a write was refused because there was no space.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// What must survive whatever comes.
    pub fn durable(&self) -> Prefix {
        Prefix {
            units: self.durable_units,
            region_changes: self.region_changes as usize,
        }
    }

    /// What was acknowledged.
    pub fn acknowledged(&self) -> Prefix {
        let units = self.done.units.iter();
        Prefix {
            units: units.filter(|unit| unit.acknowledged != NEVER).count(),
            region_changes: self.region_changes as usize,
        }
    }

    /// `step` was acknowledged: marks what is durable now and was not before.
    fn mark_what_is_durable(&mut self, device: &Marking, step: &Step) -> Result<()> {
        match step {
            Step::Write(_, Durability::Sync) | Step::Checkpoint | Step::Sync | Step::Reopen => {
                return self.mark_all_durable(device);
            }
            // Durable at once, also if buffered units from before are not.
            Step::Create(_) | Step::Drop(_) => self.region_changes += 1,
            _ => return Ok(()),
        }
        self.mark(device)
    }

    /// Marks all that this thread did as durable.
    ///
    /// # Errors
    /// Those of the device.
    pub fn mark_all_durable(&mut self, device: &Marking) -> Result<()> {
        self.durable_units = self.done.units.len();
        self.mark(device)
    }

    fn mark(&self, device: &Marking) -> Result<()> {
        device.mark(Mark::Durable {
            thread: self.thread,
            units: self.durable_units as u64,
            region_changes: self.region_changes,
        })
    }

    fn write(
        &mut self,
        engine: &Engine,
        clock: &AtomicU64,
        changes: &[Change],
        durability: Durability,
    ) -> Result<()> {
        let mut regions = BTreeMap::new();
        for change in changes {
            regions.insert(&change.region, engine.existing_region(&change.region)?);
        }
        let values: Vec<_> = changes.iter().map(Change::value_bytes).collect();
        let operation = |(change, value)| {
            let (change, value): (&Change, &Option<Vec<u8>>) = (change, value);
            Some(Operation {
                region: regions.get(&change.region)?,
                key: &change.key,
                value: value.as_deref(),
                is_range: change.until.is_some(),
                terms: Terms::until(change.expires()),
            })
        };
        let operations: Vec<_> = changes.iter().zip(&values).filter_map(operation).collect();
        let begun = clock.fetch_add(1, SeqCst);
        let outcome = engine.write(&operations, durability);
        let acknowledged = match &outcome {
            Ok(()) => clock.fetch_add(1, SeqCst),
            Err(error) if error.kind() == ErrorKind::OutOfSpace => return outcome,
            Err(_) => NEVER,
        };
        self.done.units.push(Stamps {
            begun,
            acknowledged,
        });
        outcome
    }
}

/// A step in few words.
fn brief(step: &Step) -> String {
    match step {
        Step::Write(changes, durability) => {
            format!("a write of {} changes, {durability:?}", changes.len())
        }
        step => format!("{step:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_reads_back_and_is_nothing_if_it_is_cut() {
        let stamps = |begun| Stamps {
            begun,
            acknowledged: begun + 3,
        };
        let work = Work {
            seed: 7,
            threads: vec![
                Done {
                    steps: 9,
                    units: vec![stamps(0), stamps(8)],
                },
                Done::default(),
            ],
        };
        let text = work.to_text();
        assert_eq!(Work::of_text(&text), Some(work));
        for end in 0..text.len() - 1 {
            assert_eq!(Work::of_text(&text[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_course_repeats_and_its_regions_are_its_own() {
        let steps = |thread| {
            let mut course = Course::new(5, thread);
            let steps: Vec<_> = (0..700).map(|_| course.next_step()).collect();
            steps
        };
        for thread in 0..3 {
            let steps = steps(thread);
            let prefix = Course::prefix(thread);
            for step in &steps {
                match step {
                    Step::Create(name) | Step::Drop(name) => assert!(name.starts_with(&prefix)),
                    Step::Write(changes, _) => {
                        assert!(changes.iter().all(|c| c.region.starts_with(&prefix)));
                    }
                    _ => {}
                }
            }
            assert!(steps.iter().any(|step| matches!(step, Step::Drop(_))));
        }
        assert_eq!(format!("{:?}", steps(1)), format!("{:?}", steps(1)));
        assert_ne!(format!("{:?}", steps(0)), format!("{:?}", steps(1)));
    }
}
