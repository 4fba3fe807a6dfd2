//! What was promised to clients.

use kreon_replica::machine::{Member, Term};

use crate::toy::{Volume, Write};

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A write that was acknowledged, or seen, is gone when this term begins.
    Lost(Write, u64),
    /// A write that was acknowledged as durable on all is on none of a set that came back.
    SyncLost(Write),
    /// A write is acknowledged in a term although a later primary serves without it.
    LateAcknowledgement(Write, u64),
    /// A read that began after a write was acknowledged, or seen, did not see it.
    Stale(Write),
    /// Two servers serve in one term.
    TwoPrimaries(u64),
    /// A server serves in a term in which the coordinator never named it.
    Usurper(u64),
    /// A member of the coordinator's set is not counted by the primary.
    Uncounted(u32),
    /// A record lands on a log that is not what was before it.
    Diverged(u32),
    /// No order of all calls explains what clients saw of this key.
    Unexplained(usize),
    /// A candidate is to write a superblock that it does not have.
    NoSuperblock(u64),
    /// Of a coordinator that was restored, somebody takes office below what he has seen.
    BelowSeen(u64),
}

/// A write, as clients know it.
#[derive(Clone, Copy, Debug)]
struct Promise {
    key: usize,
    begun_us: u64,
    /// When it was acknowledged or seen first.
    since_us: Option<u64>,
    /// The lowest term in which it was.
    term: Term,
    /// It was acknowledged as durable on all members.
    sync: bool,
    /// It is part of a loss that was accepted: whatever is still said of it binds nobody.
    is_lost: bool,
}

/// A loss that was accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    /// When.
    pub(super) us: u64,
    /// A sole member may go on until its lease is over.
    pub(super) of_sole: bool,
}

/// All promises.
#[derive(Debug, Default)]
pub(super) struct Judge {
    promises: Vec<Promise>,
    /// Who was put into office in which term.
    named: Vec<(Term, Member)>,
}

impl Judge {
    /// A new write.
    pub(super) fn write(&mut self, key: usize, now_us: u64) -> Write {
        self.promises.push(Promise {
            key,
            begun_us: now_us,
            since_us: None,
            term: Term(u64::MAX),
            sync: false,
            is_lost: false,
        });
        (self.promises.len() - 1) as Write
    }

    pub(super) fn key(&self, write: Write) -> usize {
        self.promises[usize::from(write)].key
    }

    pub(super) fn is_lost(&self, write: Write) -> bool {
        self.promises[usize::from(write)].is_lost
    }

    pub(super) fn writes(&self) -> usize {
        self.promises.len()
    }

    pub(super) fn kept(&self) -> usize {
        let kept = self.promises.iter().filter(|p| p.since_us.is_some());
        kept.count()
    }

    /// The newest value of each key in a log.
    pub(super) fn newest<const N: usize>(&self, log: &[crate::toy::Entry]) -> [Option<Write>; N] {
        let mut newest = [None; N];
        for entry in log {
            newest[self.key(entry.write)] = Some(entry.write);
        }
        newest
    }

    pub(super) fn name(&mut self, term: Term, member: Member) {
        if !self.named.contains(&(term, member)) {
            self.named.push((term, member));
        }
    }

    pub(super) fn is_named(&self, term: Term, member: Member) -> bool {
        self.named.contains(&(term, member))
    }

    /// `write` was acknowledged or seen in the office of `term`.
    pub(super) fn promise(&mut self, write: Write, sync: bool, term: Term, now_us: u64) {
        let promise = &mut self.promises[usize::from(write)];
        if promise.is_lost {
            return;
        }
        promise.since_us.get_or_insert(now_us);
        promise.term = promise.term.min(term);
        promise.sync |= sync;
    }

    /// The first promise of terms below `term` that `volume` does not hold. An office that begins late, as its process was
    /// paused, owes nothing that a later one has promised meanwhile: its members refuse it, and it can answer nobody.
    pub(super) fn missing(&self, volume: &Volume, term: Term) -> Option<Write> {
        let held = self.held(volume);
        let mut promises = self.promises.iter().zip(held).enumerate();
        let is_owed = |p: &Promise| p.since_us.is_some() && p.term < term;
        let missing = promises.find(|(_, (promise, held))| is_owed(promise) && !held);
        missing.map(|(write, _)| write as Write)
    }

    fn held(&self, volume: &Volume) -> Vec<bool> {
        let mut held = vec![false; self.promises.len()];
        for entry in &volume.log {
            held[usize::from(entry.write)] = true;
        }
        held
    }

    /// All members failed: what is on none of `volumes` is lost, as promised; but not what was acknowledged as durable.
    pub(super) fn excuse(&mut self, volumes: &[&Volume]) -> Option<Write> {
        let all: Vec<Vec<bool>> = volumes.iter().map(|volume| self.held(volume)).collect();
        for (write, promise) in self.promises.iter_mut().enumerate() {
            if promise.since_us.is_none() || all.iter().any(|held| held[write]) {
                continue;
            }
            if promise.sync {
                return Some(write as Write);
            }
            (promise.since_us, promise.sync) = (None, false);
            promise.term = Term(u64::MAX);
        }
        None
    }

    /// What began before `loss` was accepted and is not on `volume` is given up.
    pub(super) fn give_up(&mut self, volume: &Volume, loss: Loss) {
        let held = self.held(volume);
        for (promise, held) in self.promises.iter_mut().zip(held) {
            promise.is_lost = !held && (loss.of_sole || promise.begun_us < loss.us);
            if promise.is_lost {
                (promise.since_us, promise.sync) = (None, false);
                promise.term = Term(u64::MAX);
            }
        }
    }

    /// The first write to `key` that had been promised at `begun_us` and is not among the records that a read could see.
    pub(super) fn unseen(
        &self,
        key: usize,
        log: &[crate::toy::Entry],
        begun_us: u64,
    ) -> Option<Write> {
        let mut saw = vec![false; self.promises.len()];
        for entry in log {
            saw[usize::from(entry.write)] = true;
        }
        let before = |p: &Promise| p.key == key && p.since_us.is_some_and(|us| us < begun_us);
        let mut promises = self.promises.iter().zip(saw).enumerate();
        let missing = promises.find(|(_, (promise, saw))| before(promise) && !saw);
        missing.map(|(write, _)| write as Write)
    }
}
