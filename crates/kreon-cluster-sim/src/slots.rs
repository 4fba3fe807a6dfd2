//! The four superblock slots and two catalogue places of two replicas under power cuts: whatever survives, each replica
//! can be opened, and so can a survivor alone.
//!
//! A checkpoint of epoch E + 1 writes the catalogue to the place that E does not use, flushes, writes slot (E + 1) mod 4,
//! flushes, and then the other slots. The replicas get the same writes; one may lack the last ones.

use std::collections::{HashMap, VecDeque};

use kreon_base::{Epoch, Incarnation};
use kreon_replica::machine::{SlotMark, slots_to_write, top_slot};

/// Crashes of both replicas at once.
const CRASHES_MAX: u8 = 2;
/// Highest incarnation.
const RUNS_MAX: u64 = 8;
/// Highest epoch.
const EPOCHS_MAX: u64 = 7;

/// A write that is not durable yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Write {
    Slot(usize, SlotMark),
    Catalogue(usize, SlotMark),
}

/// What is durable in a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Durable {
    slots: [SlotMark; 4],
    catalogue: [SlotMark; 2],
}

impl Durable {
    /// The slot that counts: the highest epoch, of those the first.
    fn best(&self) -> SlotMark {
        let first = self.slots.iter().rev();
        first
            .copied()
            .max_by_key(|slot| slot.epoch)
            .unwrap_or_default()
    }

    fn with(mut self, writes: &[Write]) -> Self {
        for write in writes {
            match *write {
                Write::Slot(at, mark) => self.slots[at] = mark,
                Write::Catalogue(at, mark) => self.catalogue[at] = mark,
            }
        }
        self
    }

    /// Whether its superblock's catalogue is where it should be.
    fn opens(&self) -> bool {
        let best = self.best();
        self.catalogue[(best.epoch.0 % 2) as usize] == best
    }
}

/// Where the primary is in its checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// These are to be written next: 0 catalogue, 1 first slot, 2 the other slots.
    Write(u8),
    /// They are written, here at least; no replica goes on before both have flushed.
    Barrier(u8),
    /// They are written here only.
    Alone,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Run {
        primary: usize,
        base: SlotMark,
        stage: Stage,
    },
    Down,
    /// The other one died for good; this one is opened.
    Solo(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    phase: Phase,
    run: u64,
    replicas: [(Durable, Vec<Write>); 2],
    crashes: u8,
}

/// What a search of the slots found.
#[derive(Clone, Debug)]
pub struct SlotsVerdict {
    /// States that were seen.
    pub states: usize,
    /// The steps to a replica that cannot be opened.
    pub found: Option<Vec<String>>,
}

/// Searches all states.
pub fn search_slots() -> SlotsVerdict {
    let first = State::first();
    let mut origins: HashMap<State, Option<(State, String)>> = HashMap::new();
    origins.insert(first.clone(), None);
    let mut queue = VecDeque::from([first]);
    while let Some(state) = queue.pop_front() {
        for (step, after) in state.successors() {
            if origins.contains_key(&after) {
                continue;
            }
            origins.insert(after.clone(), Some((state.clone(), step)));
            if !after.is_well() {
                return SlotsVerdict {
                    states: origins.len(),
                    found: Some(way(&origins, &after)),
                };
            }
            queue.push_back(after);
        }
    }
    SlotsVerdict {
        states: origins.len(),
        found: None,
    }
}

fn way(origins: &HashMap<State, Option<(State, String)>>, last: &State) -> Vec<String> {
    let mut steps = Vec::new();
    let mut at = last;
    while let Some(Some((before, step))) = origins.get(at) {
        steps.push(step.clone());
        at = before;
    }
    steps.reverse();
    steps
}

fn mark(run: u64, epoch: u64) -> SlotMark {
    SlotMark {
        incarnation: Incarnation(run),
        epoch: Epoch(epoch),
    }
}

impl State {
    fn first() -> Self {
        let durable = Durable {
            slots: [mark(5, 4); 4],
            catalogue: [mark(5, 4), mark(5, 3)],
        };
        Self {
            phase: Phase::Run {
                primary: 0,
                base: mark(5, 4),
                stage: Stage::Write(0),
            },
            run: 5,
            replicas: [(durable, Vec::new()), (durable, Vec::new())],
            crashes: 0,
        }
    }

    fn is_well(&self) -> bool {
        match self.phase {
            Phase::Run { .. } => true,
            Phase::Down => self.replicas.iter().all(|(durable, _)| durable.opens()),
            Phase::Solo(at) => {
                let (durable, pending) = &self.replicas[at];
                durable.with(pending).opens()
            }
        }
    }

    fn successors(&self) -> Vec<(String, Self)> {
        let mut out = Vec::new();
        match self.phase {
            Phase::Run {
                primary,
                base,
                stage,
            } => {
                if self.run < RUNS_MAX && base.epoch.0 < EPOCHS_MAX {
                    self.checkpoint(primary, base, stage, &mut out);
                }
                if self.crashes < CRASHES_MAX {
                    self.crash(primary, &mut out);
                }
            }
            Phase::Down => (0..2).for_each(|winner| out.push(self.promote(winner))),
            Phase::Solo(_) => {}
        }
        out
    }

    fn at(&self, primary: usize, base: SlotMark, stage: Stage) -> Self {
        Self {
            phase: Phase::Run {
                primary,
                base,
                stage,
            },
            ..self.clone()
        }
    }

    fn checkpoint(
        &self,
        primary: usize,
        base: SlotMark,
        stage: Stage,
        out: &mut Vec<(String, Self)>,
    ) {
        match stage {
            Stage::Write(part) => {
                let writes = writes(self.run, base.epoch.0 + 1, part);
                for both in [false, true] {
                    let stage = match both {
                        true => Stage::Barrier(part),
                        false => Stage::Alone,
                    };
                    let mut after = self.at(primary, base, stage);
                    for (place, (_, pending)) in after.replicas.iter_mut().enumerate() {
                        if both || place == primary {
                            pending.extend_from_slice(&writes);
                        }
                    }
                    let whom = if both { "both" } else { "the primary only" };
                    out.push((
                        format!("part {part} of a checkpoint is written to {whom}"),
                        after,
                    ));
                }
            }
            Stage::Barrier(part) => {
                for place in 0..2 {
                    if !self.replicas[place].1.is_empty() {
                        let mut after = self.at(primary, base, stage);
                        let (durable, pending) = &mut after.replicas[place];
                        *durable = durable.with(pending);
                        pending.clear();
                        out.push((format!("replica {place} flushes"), after));
                    }
                }
                if self.replicas.iter().all(|(_, pending)| pending.is_empty()) {
                    let (base, next) = match part {
                        2 => (mark(self.run, base.epoch.0 + 1), 0),
                        _ => (base, part + 1),
                    };
                    let after = self.at(primary, base, Stage::Write(next));
                    out.push((format!("the barrier behind part {part} ends"), after));
                }
            }
            Stage::Alone => {}
        }
    }

    fn crash(&self, primary: usize, out: &mut Vec<(String, Self)>) {
        let kept = |place: usize| subsets(&self.replicas[place].1);
        for one in kept(0) {
            for two in kept(1) {
                let cut =
                    |place: usize, kept: &[Write]| (self.replicas[place].0.with(kept), Vec::new());
                let after = Self {
                    phase: Phase::Down,
                    replicas: [cut(0, &one), cut(1, &two)],
                    crashes: self.crashes + 1,
                    ..self.clone()
                };
                let told = format!("both lose power; 0 keeps {one:?}, 1 keeps {two:?}");
                out.push((told, after));
            }
        }
        let other = 1 - primary;
        let after = Self {
            phase: Phase::Solo(other),
            ..self.clone()
        };
        out.push((
            format!("the primary dies for good, {other} is opened"),
            after,
        ));
    }

    /// The winner, which the longer log chose, is promoted with the other one in the set.
    fn promote(&self, winner: usize) -> (String, Self) {
        let bests = [0, 1].map(|place: usize| self.replicas[place].0.best());
        let top = top_slot(bests[winner], bests);
        let mut after = self.clone();
        for (place, (durable, _)) in after.replicas.iter_mut().enumerate() {
            if let Some(slot) = slots_to_write(bests[place], top) {
                durable.slots = [slot; 4];
            }
        }
        let base = after.replicas[winner].0.best();
        after.run += 1;
        after.phase = Phase::Run {
            primary: winner,
            base,
            stage: Stage::Write(0),
        };
        (
            format!("{winner} is promoted at {base:?}; they had {bests:?}"),
            after,
        )
    }
}

fn writes(run: u64, epoch: u64, part: u8) -> Vec<Write> {
    let (new, first) = (mark(run, epoch), (epoch % 4) as usize);
    match part {
        0 => vec![Write::Catalogue((epoch % 2) as usize, new)],
        1 => vec![Write::Slot(first, new)],
        _ => (0..4)
            .filter(|at| *at != first)
            .map(|at| Write::Slot(at, new))
            .collect(),
    }
}

fn subsets(writes: &[Write]) -> Vec<Vec<Write>> {
    let mut all = vec![Vec::new()];
    for write in writes {
        let with = all.iter().map(|kept| {
            let mut kept = kept.clone();
            kept.push(*write);
            kept
        });
        let with: Vec<_> = with.collect();
        all.extend(with);
    }
    all
}
