//! All streams of a group, and what their members have.
//!
//! Invariants:
//! - each member gets a prefix of one row of packets, in their order; after the end of its stream it gets nothing more;
//! - what counts as landed or durable is so on every counted member, also on those whose stream has ended: nobody stops
//!   counting because it is silent, but because the group's configuration no longer has it;
//! - a packet has its number before the call that causes it returns.

use std::sync::Arc;
use std::sync::OnceLock;

use kreon_base::{Error, ErrorKind, Lsn, Result};
use kreon_sync::{AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, Wakeup};
use kreon_wire::{FlushNumber, Frame, GroupId, Member, Term, Violation};

use super::source::LogSource;
use super::stream::Stream;
use super::traffic::{BarrierTimes, Barriers};

/// The streams of the primary of one group in one term.
pub struct Mirror {
    pub(super) group: GroupId,
    pub(super) term: Term,
    pub(super) state: Mutex<State>,
    /// Something that threads wait for may have come.
    pub(super) changed: Condvar,
    /// Published from the state, as the log asks under its locks.
    landed: AtomicU64,
    durable: AtomicU64,
    /// The committed prefix of the log has grown since the tap looked.
    pub(super) has_grown: AtomicBool,
    /// It has grown by a thread that sends by itself, and has not done so yet.
    pub(super) is_owed: AtomicBool,
    /// A member has ceased to count, and the log was not told.
    pub(super) has_failed_trial: AtomicBool,
    /// Somebody will wait until the log is durable up to here.
    pub(super) wanted: AtomicU64,
    /// Wakes the tap.
    pub(super) wakeup: Wakeup,
    pub(super) source: OnceLock<Arc<dyn LogSource>>,
    pub(super) barriers: Barriers,
}

pub(super) struct State {
    pub streams: Vec<Stream>,
    /// All members have the log up to here, durable, since before the term.
    pub equal_upto: Lsn,
    /// Where the tap started; `None`: not yet.
    pub tap_from: Option<Lsn>,
    /// The last flush that was sent, and the log that it covers.
    pub flush: FlushNumber,
    pub flush_upto: Lsn,
    /// A flush is being sent.
    pub is_announcing: bool,
    /// Some member had no room for the log.
    pub is_log_blocked: bool,
    /// What counts as landed does not grow beyond this.
    pub frozen: Option<Lsn>,
    /// Calls of the device that have begun, by number, and those of them that have not ended.
    pub calls_begun: u64,
    pub calls: Vec<u64>,
    pub closed: Option<Error>,
}

impl State {
    pub fn check_open(&self) -> Result<()> {
        match &self.closed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// The least of what the counted members have; `Lsn::MAX` without any.
    fn least(&self, has: impl Fn(&Stream) -> Lsn) -> Lsn {
        let counted = self.streams.iter().filter(|stream| stream.is_counted);
        counted.map(has).min().unwrap_or(Lsn::MAX)
    }

    pub fn landed(&self) -> Lsn {
        let landed = self.least(Stream::landed);
        self.frozen.map_or(landed, |frozen| landed.min(frozen))
    }

    pub fn durable(&self) -> Lsn {
        self.least(Stream::log_durable)
    }

    /// Whether a member counts no more since its stream has ended.
    fn fail_trials(&mut self) -> bool {
        let failed = self.streams.iter_mut().map(Stream::fail_trial);
        failed.fold(false, |any, has_failed| any | has_failed)
    }

    pub fn stream(&mut self, member: Member) -> Option<&mut Stream> {
        self.streams
            .iter_mut()
            .find(|stream| stream.member == member)
    }
}

impl Mirror {
    /// Of a primary whose members, none so far, were made equal up to `equal_upto`.
    pub fn new(group: GroupId, term: Term, equal_upto: Lsn) -> Arc<Self> {
        let state = State {
            streams: Vec::new(),
            equal_upto,
            tap_from: None,
            flush: FlushNumber(0),
            flush_upto: Lsn(0),
            is_announcing: false,
            is_log_blocked: false,
            frozen: None,
            calls_begun: 0,
            calls: Vec::new(),
            closed: None,
        };
        Arc::new(Self {
            group,
            term,
            state: Mutex::new(state),
            changed: Condvar::new(),
            landed: AtomicU64::new(u64::MAX),
            durable: AtomicU64::new(u64::MAX),
            has_grown: AtomicBool::new(false),
            is_owed: AtomicBool::new(false),
            has_failed_trial: AtomicBool::new(false),
            wanted: AtomicU64::new(0),
            wakeup: Wakeup::default(),
            source: OnceLock::new(),
            barriers: Barriers::default(),
        })
    }

    /// Flushes of the volume in this term.
    pub fn barrier_times(&self) -> BarrierTimes {
        self.barriers.times()
    }

    /// The group.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The term.
    pub fn term(&self) -> Term {
        self.term
    }

    /// Everything before this is in the memory of all counted members. Without any: `Lsn::MAX`; then a write is safe when
    /// it is durable here.
    pub fn landed(&self) -> Lsn {
        Lsn(self.landed.load(Ordering::Acquire))
    }

    /// Everything before this is durable on all counted members; `Lsn::MAX` without any.
    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// Takes what a member answered on its stream. Answers of members that are gone do nothing.
    ///
    /// # Errors
    /// The answer is not right, and the link is to be closed. The stream has ended; its member counts until it is removed.
    pub fn admit(&self, member: Member, frame: &Frame<'_>) -> Result<(), Violation> {
        let mut state = self.state.lock();
        let Some(stream) = state.stream(member) else {
            return Ok(());
        };
        let outcome = stream.admit(frame);
        if let Err(violation) = outcome {
            stream.end(violation.into());
        }
        // The tap has nothing to do because of an answer, unless it gives room for log or a flush waits for its turn.
        let wanted = Lsn(self.wanted.load(Ordering::Acquire));
        let is_tap_called = state.is_log_blocked || wanted > state.flush_upto;
        self.show(state, is_tap_called);
        outcome
    }

    /// Whether the log of the term is being sent.
    pub fn is_log_begun(&self) -> bool {
        self.state.lock().tap_from.is_some()
    }

    /// A carrier that was busy takes packets again.
    pub fn room(&self) {
        drop(self.state.lock());
        self.changed.notify_all();
        self.wakeup.call();
    }

    /// Ends everything: calls that wait fail, and so does every later one.
    pub fn close(&self, why: &str) {
        let mut state = self.state.lock();
        let error = Error::new(ErrorKind::Closed, why);
        state.closed.get_or_insert(error);
        for stream in &mut state.streams {
            stream.end(Error::new(ErrorKind::Closed, why));
        }
        self.publish(state);
    }

    /// Nobody waits any more for members whose streams have ended on trial. The tap tells the log, which has its own locks.
    pub(super) fn fail_trials(&self, state: &mut State) {
        if state.fail_trials() {
            self.landed.store(state.landed().0, Ordering::Release);
            self.durable.store(state.durable().0, Ordering::Release);
            self.has_failed_trial.store(true, Ordering::Release);
            self.changed.notify_all();
            self.wakeup.call();
        }
    }

    /// Shows what changed to those that wait for it, and to the tap.
    pub(super) fn publish(&self, state: MutexGuard<'_, State>) {
        self.show(state, true);
    }

    /// Shows what changed to those that wait for it.
    fn show(&self, mut state: MutexGuard<'_, State>, is_tap_called: bool) {
        state.fail_trials();
        let (landed, durable) = (state.landed(), state.durable());
        let before = self.landed.swap(landed.0, Ordering::AcqRel);
        self.durable.store(durable.0, Ordering::Release);
        drop(state);
        self.changed.notify_all();
        if is_tap_called {
            self.wakeup.call();
        }
        if landed.0 != before
            && let Some(source) = self.source.get()
        {
            source.landed();
        }
    }
}
