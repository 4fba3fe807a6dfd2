//! What one thread does: an endless script of its own, on regions of its own, from a seed.

use std::collections::VecDeque;

use kreon_engine::Durability;
use kreon_sim::Dice;

use crate::script::{Change, Lifetime, Shape, Step, Taste, script};

/// Steps that are made up at once.
const BLOCK_STEPS: usize = 150;

/// An endless script. The regions' names begin with the thread's.
pub struct Course {
    thread: u64,
    dice: Dice,
    shape: Shape,
    /// Without the thread's name.
    regions: Vec<String>,
    steps: VecDeque<Step>,
}

impl Course {
    /// The script of `thread`.
    pub fn new(seed: u64, thread: u64) -> Self {
        let taste = match thread % 3 {
            // Most writes are acknowledged as durable.
            0 => Taste::Tiny,
            1 => Taste::Mixed,
            _ => Taste::Batches,
        };
        let mut dice = Dice::new(seed.rotate_left(17) ^ thread);
        let shape = Shape {
            steps: BLOCK_STEPS,
            giants_max: 1,
            keys: 20 + dice.below(60),
            taste,
            kills: false,
        };
        Self {
            thread,
            dice,
            shape,
            regions: Vec::new(),
            steps: VecDeque::new(),
        }
    }

    /// What the names of a thread's regions begin with.
    pub fn prefix(thread: u64) -> String {
        format!("t{thread}-")
    }

    /// The next step.
    pub fn next_step(&mut self) -> Step {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return self.owned(step);
            }
            let steps = script(self.dice.roll(), self.shape, &self.regions);
            for step in &steps {
                match step {
                    Step::Create(name) => self.regions.push(name.clone()),
                    Step::Drop(name) => self.regions.retain(|region| region != name),
                    _ => {}
                }
            }
            self.steps = steps.into();
        }
    }

    fn owned(&mut self, step: Step) -> Step {
        let name = |name: String| Self::prefix(self.thread) + &name;
        match step {
            Step::Create(region) => Step::Create(name(region)),
            Step::Drop(region) => Step::Drop(name(region)),
            Step::Write(mut changes, durability) => {
                for change in &mut changes {
                    change.region = name(std::mem::take(&mut change.region));
                }
                Step::Write(changes, durability)
            }
            // What threads write beside a load has no place in a model of one of them.
            Step::Ingest(region, handed) => {
                let changes = handed.into_iter().map(|handed| Change {
                    region: name(region.clone()),
                    key: handed.key,
                    value: Some(handed.value),
                    until: None,
                    lifetime: Lifetime::Unlimited,
                });
                let changes: Vec<_> = changes.collect();
                match changes.is_empty() {
                    true => Step::Release,
                    false => Step::Write(changes, Durability::Buffered),
                }
            }
            // The threads share one store. So many checkpoints would leave little to lose.
            Step::Reopen => Step::Sync,
            Step::Checkpoint if self.dice.below(3) != 0 => Step::Release,
            Step::Sync if self.dice.below(2) == 0 => Step::Release,
            step => step,
        }
    }
}
