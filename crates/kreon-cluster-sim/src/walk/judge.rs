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
}

/// A write, as clients know it.
#[derive(Clone, Copy, Debug, Default)]
struct Promise {
    /// When it was acknowledged or seen first.
    since_us: Option<u64>,
    /// It was acknowledged as durable on all members.
    sync: bool,
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
    pub(super) fn write(&mut self) -> Write {
        self.promises.push(Promise::default());
        (self.promises.len() - 1) as Write
    }

    pub(super) fn writes(&self) -> usize {
        self.promises.len()
    }

    pub(super) fn kept(&self) -> usize {
        self.promises
            .iter()
            .filter(|p| p.since_us.is_some())
            .count()
    }

    pub(super) fn name(&mut self, term: Term, member: Member) {
        if !self.named.contains(&(term, member)) {
            self.named.push((term, member));
        }
    }

    pub(super) fn is_named(&self, term: Term, member: Member) -> bool {
        self.named.contains(&(term, member))
    }

    /// `write` was acknowledged or seen.
    pub(super) fn promise(&mut self, write: Write, sync: bool, now_us: u64) {
        let promise = &mut self.promises[usize::from(write)];
        promise.since_us.get_or_insert(now_us);
        promise.sync |= sync;
    }

    fn promised(&self) -> impl Iterator<Item = Write> + '_ {
        let promises = self.promises.iter().enumerate();
        promises
            .filter(|(_, p)| p.since_us.is_some())
            .map(|(write, _)| write as Write)
    }

    /// The first promise that `volume` does not hold.
    pub(super) fn missing(&self, volume: &Volume) -> Option<Write> {
        let held = self.held(volume);
        self.promised().find(|write| !held[usize::from(*write)])
    }

    fn held(&self, volume: &Volume) -> Vec<bool> {
        let mut held = vec![false; self.promises.len()];
        for entry in &volume.log {
            held[usize::from(entry.write)] = true;
        }
        held
    }

    /// What is on none of `volumes` is lost, as promised; but not what was acknowledged as durable.
    pub(super) fn excuse(&mut self, volumes: &[&Volume], even_sync: bool) -> Option<Write> {
        let all: Vec<Vec<bool>> = volumes.iter().map(|volume| self.held(volume)).collect();
        for (write, promise) in self.promises.iter_mut().enumerate() {
            if promise.since_us.is_none() || all.iter().any(|held| held[write]) {
                continue;
            }
            if promise.sync && !even_sync {
                return Some(write as Write);
            }
            *promise = Promise::default();
        }
        None
    }

    /// The first write that had been promised at `begun_us` and is not among the records that a read saw.
    pub(super) fn unseen(&self, log: &[crate::toy::Entry], begun_us: u64) -> Option<Write> {
        let mut saw = vec![false; self.promises.len()];
        for entry in log {
            saw[usize::from(entry.write)] = true;
        }
        let promises = self.promises.iter().enumerate();
        let mut before = promises.filter(|(_, p)| p.since_us.is_some_and(|us| us < begun_us));
        before
            .find(|(write, _)| !saw[*write])
            .map(|(write, _)| write as Write)
    }
}
