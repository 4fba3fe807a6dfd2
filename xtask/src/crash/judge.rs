//! Compares what a store holds after a kill with what was acknowledged before it.
//!
//! A thread waits for each of its operations, so what survives of it must be a prefix of its order. The
//! judge plays the thread's operations onto the state before the round and notes every prefix after
//! which the thread's keys are exactly as seen. Then:
//! 1. some such prefix exists: nothing is torn, batches included;
//! 2. it takes in every operation that was acknowledged as `Sync`;
//! 3. whatever was acknowledged before a surviving operation began survived too, in any thread: what is
//!    lost is a suffix of the log;
//! 4. counted batches survive up to the number that the counter shows, in both regions, and not beyond.

use std::collections::BTreeMap;

use super::ack::Ack;
use super::workload::{Change, Counter, Operation, Slot, THREADS, Version, operation};

/// What a store holds, or should hold.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct State {
    pub slots: BTreeMap<Slot, Version>,
    /// By region. The two are always equal in a state that is right.
    pub counters: [Option<Counter>; 2],
}

impl State {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Put(slot, version) => self.slots.insert(slot, version),
            Change::Delete(slot) => self.slots.remove(&slot),
        };
    }
}

/// What the judge found to be right.
#[derive(Debug, PartialEq)]
pub struct Verdict {
    /// What the store holds: the state before the next round.
    pub state: State,
    /// Operations that were acknowledged, and how many of them as `Sync`.
    pub acknowledged: u64,
    pub synced: u64,
    /// Acknowledged as `Buffered` and gone, as they may.
    pub gone: u64,
}

/// The round to be judged: its seed and number, the state before it, and the acknowledgements in the
/// order in which they came.
pub struct Round<'a> {
    pub seed: u64,
    pub number: u32,
    pub before: &'a State,
    pub acks: &'a [Ack],
}

/// Judges a round by what was `seen` after it; an error says what is lost or wrong.
pub fn judge(round: &Round<'_>, seen: &State) -> Result<Verdict, String> {
    if let Some(ack) = round.acks.iter().find(|ack| ack.thread >= THREADS) {
        return Err(format!("the writer has no such thread: {ack:?}"));
    }
    let mut threads = Vec::new();
    for thread in 0..THREADS {
        threads.push(judge_thread(round, thread, seen)?);
    }
    check_order(round, &threads)?;
    check_counter(round, &threads, seen)?;
    Ok(Verdict {
        state: seen.clone(),
        acknowledged: round.acks.len() as u64,
        synced: round.acks.iter().filter(|ack| ack.sync).count() as u64,
        gone: threads
            .iter()
            .map(|t| u64::from(t.acknowledged.saturating_sub(t.longest)))
            .sum(),
    })
}

/// What survived of a thread. Prefixes that leave the same state cannot be told apart, so there is a
/// shortest and a longest one.
struct Survived {
    acknowledged: u32,
    shortest: u32,
    longest: u32,
}

fn judge_thread(round: &Round<'_>, thread: u8, seen: &State) -> Result<Survived, String> {
    let mut acknowledged = 0;
    let mut synced = 0;
    for ack in round.acks.iter().filter(|ack| ack.thread == thread) {
        if ack.sequence != acknowledged {
            return Err(format!("the writer skipped an acknowledgement: {ack:?}"));
        }
        acknowledged += 1;
        if ack.sync {
            synced = acknowledged;
        }
    }
    let mut play = Play::new(round.before, seen, thread);
    let mut right = Vec::new();
    // The thread may have been killed after an operation and before its acknowledgement.
    for prefix in 0..=acknowledged + 1 {
        if play.is_right() {
            right.push(prefix);
        }
        play.next(&operation(round.seed, round.number, thread, prefix));
    }
    let (Some(&shortest), Some(&longest)) = (right.first(), right.last()) else {
        return Err(explain(round, thread, acknowledged, seen));
    };
    if longest < synced {
        return Err(format!(
            "LOST: of thread {thread} the first {longest} operations are there, but operation {} (counted from 0) was \
             acknowledged as Sync",
            synced - 1
        ));
    }
    Ok(Survived {
        acknowledged,
        shortest: shortest.max(synced),
        longest,
    })
}

/// A thread's operations played onto the state before the round, with the number of its keys that
/// are not as seen.
struct Play<'a> {
    state: State,
    seen: &'a State,
    wrong: usize,
}

impl<'a> Play<'a> {
    fn new(before: &State, seen: &'a State, thread: u8) -> Self {
        let mut state = State::default();
        let own = before
            .slots
            .iter()
            .filter(|(slot, _)| slot.thread == thread);
        state.slots.extend(own);
        let mut play = Self {
            state,
            seen,
            wrong: 0,
        };
        let slots = Slot::all().filter(|slot| slot.thread == thread);
        play.wrong = slots.filter(|slot| play.differs(*slot)).count();
        play
    }

    fn differs(&self, slot: Slot) -> bool {
        self.state.slots.get(&slot) != self.seen.slots.get(&slot)
    }

    fn next(&mut self, operation: &Operation) {
        for &change in &operation.changes {
            let (Change::Put(slot, _) | Change::Delete(slot)) = change;
            self.wrong -= usize::from(self.differs(slot));
            self.state.apply(change);
            self.wrong += usize::from(self.differs(slot));
        }
    }

    fn is_right(&self) -> bool {
        self.wrong == 0
    }
}

/// Tells how a thread's keys miss the prefix that comes nearest.
fn explain(round: &Round<'_>, thread: u8, acknowledged: u32, seen: &State) -> String {
    let mut play = Play::new(round.before, seen, thread);
    let mut nearest = (play.wrong, 0);
    for prefix in 1..=acknowledged + 1 {
        play.next(&operation(round.seed, round.number, thread, prefix - 1));
        // The longest of the nearest: the newest one that may have been meant.
        if play.wrong <= nearest.0 {
            nearest = (play.wrong, prefix);
        }
    }
    let (wrong, prefix) = nearest;
    let mut play = Play::new(round.before, seen, thread);
    for sequence in 0..prefix {
        play.next(&operation(round.seed, round.number, thread, sequence));
    }
    let mut text = format!(
        "LOST: no prefix of thread {thread}'s operations explains its keys ({acknowledged} acknowledged); \
         after the nearest one, of {prefix}, {wrong} keys differ:"
    );
    let differing = Slot::all().filter(|slot| slot.thread == thread && play.differs(*slot));
    for slot in differing.take(5) {
        let expected = play.state.slots.get(&slot);
        let found = seen.slots.get(&slot);
        text.push_str(&format!(
            "\n  {slot:?}: expected {expected:?}, seen {found:?}"
        ));
    }
    text
}

/// Rule 3. An operation began after the acknowledgement of the one before it in its thread.
fn check_order(round: &Round<'_>, threads: &[Survived]) -> Result<(), String> {
    let mut before = [0_u32; THREADS as usize];
    for ack in round.acks {
        let thread = usize::from(ack.thread);
        before[thread] += 1;
        // The last surviving operation of this thread began behind this line.
        if threads[thread].shortest < ack.sequence + 2 {
            continue;
        }
        for (other, survived) in threads.iter().enumerate() {
            if survived.longest < before[other] {
                return Err(format!(
                    "LOST: operation {} of thread {other} was acknowledged before operation {} of thread {thread} \
                     began; the later one survived, the earlier one did not",
                    before[other] - 1,
                    ack.sequence + 1,
                ));
            }
        }
    }
    Ok(())
}

/// Rule 4.
fn check_counter(round: &Round<'_>, threads: &[Survived], seen: &State) -> Result<(), String> {
    let [left, right] = seen.counters;
    if left != right {
        return Err(format!(
            "TORN: a batch set the counter to {left:?} and {right:?}"
        ));
    }
    let shown = left.map_or(0, |counter| counter.number);
    let known = round.before.counters[0].map_or(0, |counter| counter.number);
    if shown < known {
        return Err(format!(
            "LOST: the counter went back from {known} to {shown}"
        ));
    }
    if let Some(counter) = left.filter(|_| shown > known) {
        let writer = threads.get(usize::from(counter.thread));
        let whole = counter.round == round.number
            && writer.is_some_and(|survived| survived.longest > counter.sequence);
        if !whole {
            return Err(format!(
                "TORN: {counter:?} stands there, the rest of its batch does not"
            ));
        }
    }
    for ack in round.acks.iter().filter(|ack| ack.number > 0) {
        let survived = &threads[usize::from(ack.thread)];
        if ack.number <= shown && survived.longest <= ack.sequence {
            return Err(format!(
                "LOST: the counter shows {shown}, but {ack:?} is gone"
            ));
        }
        if ack.number > shown && survived.shortest > ack.sequence {
            return Err(format!(
                "TORN: the counter shows {shown}, but {ack:?} is there"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
