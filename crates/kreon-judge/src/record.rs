//! Takes down what clients do, while they do it.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::call::{Call, History, Register, Seen, State, Version};

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It happened, and saw this.
    Done(Vec<(Register, Seen)>),
    /// It happened, saw this, and what it wrote is durable.
    Durable(Vec<(Register, Seen)>),
    /// It has not happened and never will.
    Failed,
    /// It may have happened, and may happen yet.
    Unknown,
}

/// A call that has begun. One that is dropped has an unknown outcome, as that of a client whose process ended.
#[derive(Debug)]
#[must_use = "it ends with `Recorder::end`"]
pub struct Begun {
    place: usize,
}

/// Calls of several clients, which may be threads or tasks of one process that talk to others: the clock is the
/// recorder's. Who has moments of a clock of its own makes [`Call`]s of them.
#[derive(Debug, Default)]
pub struct Recorder {
    before: State,
    moments: AtomicU64,
    versions: AtomicU64,
    entries: Mutex<Vec<Entry>>,
}

/// A call and whether it failed.
#[derive(Debug)]
struct Entry {
    call: Call,
    has_failed: bool,
}

impl Recorder {
    /// Calls from a known state on, of versions of an earlier recorder.
    pub fn after(before: State) -> Self {
        let last = before.values().copied().max().unwrap_or(0);
        Self {
            before,
            versions: AtomicU64::new(last),
            ..Self::default()
        }
    }

    /// A version that no write has, from 1 on.
    pub fn next_version(&self) -> Version {
        self.versions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A client begins a call that is to write this, all at once; `None` deletes. Comes before anything is sent.
    pub fn begin(
        &self,
        client: u32,
        what: &'static str,
        writes: Vec<(Register, Option<Version>)>,
    ) -> Begun {
        let mut entries = self.entries.lock();
        let call = Call {
            what,
            client,
            invoked: self.moment(),
            returned: None,
            reads: Vec::new(),
            writes,
            is_durable: false,
        };
        entries.push(Entry {
            call,
            has_failed: false,
        });
        Begun {
            place: entries.len() - 1,
        }
    }

    /// The call ends. Comes after the reply was received.
    pub fn end(&self, begun: Begun, outcome: Outcome) {
        let mut entries = self.entries.lock();
        let returned = self.moment();
        let Some(entry) = entries.get_mut(begun.place) else {
            return;
        };
        let is_durable = matches!(outcome, Outcome::Durable(_));
        match outcome {
            Outcome::Done(reads) | Outcome::Durable(reads) => {
                entry.call.returned = Some(returned);
                entry.call.reads = reads;
                entry.call.is_durable = is_durable;
            }
            Outcome::Failed => entry.has_failed = true,
            Outcome::Unknown => {}
        }
    }

    /// What was recorded so far, to be judged. Calls that failed are not in it, so nobody may have seen their writes;
    /// neither are calls in doubt that explain nothing ([`History::forget_unseen`]).
    pub fn history(&self) -> History {
        let entries = self.entries.lock();
        let calls = entries.iter().filter(|entry| !entry.has_failed);
        let mut history = History {
            before: self.before.clone(),
            calls: calls.map(|entry| entry.call.clone()).collect(),
            recovered: None,
        };
        drop(entries);
        history.forget_unseen();
        history
    }

    /// Under the lock, so that moments ascend as the entries are made.
    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::Relaxed) + 1
    }
}
