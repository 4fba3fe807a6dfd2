//! A partition that callers and its worker share, with those who wait for it.
//!
//! A caller puts its request in under the lock; what memory answers comes back at once. The worker, which alone does I/O,
//! takes transfers out and brings their ends in. Replies leave with the lock released: see [`Answers`].

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::AlignedBuf;
use parking_lot::Mutex;

use super::call::{Answers, Call, Receiver};
use super::refusals::{broken, closed, poisoned};
use crate::format::Timestamp;
use crate::number_hash::NumberMap;
use crate::partition::{FlushWish, Origin, Partition, Reply, Request, Ticket, Transfer};
use crate::space::FlushNo;

/// After so long a flush begins for changes that nobody waits for. With the time of the flush it is to stay within the
/// 100 ms that [`Durability::Buffered`](crate::Durability::Buffered) promises.
const BUFFERED_MAX: Duration = Duration::from_millis(50);

/// A partition with its lock.
pub struct SharedPartition {
    /// Something is to be done that the worker has not looked at. Set after that is there, cleared before it is looked for.
    has_news: AtomicBool,
    locked: Mutex<Locked>,
}

struct Locked {
    partition: Partition,
    /// Who waits for which request.
    callers: NumberMap<Ticket, Receiver>,
    ticket_next: u64,
    /// Who waits until all writes up to a timestamp are durable.
    syncs: Vec<(Timestamp, Receiver)>,
    /// Since when something is written that no flush has made durable, at most.
    buffered_since: Option<Instant>,
    is_closed: bool,
    /// Who waits until nothing is under way any more. No requests come in then.
    closers: Vec<Receiver>,
    /// A panic left the partition in an unknown state: nothing touches it any more.
    is_broken: bool,
}

/// The end of a transfer.
pub struct End {
    /// What the partition calls it.
    pub tag: u64,
    pub outcome: Result<()>,
    pub buffer: Option<AlignedBuf>,
}

/// What is to be done for a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// It has transfers to give out.
    pub has_transfers: bool,
    /// Somebody waits for a flush, or buffered changes have waited for long enough.
    pub flush_now: bool,
    /// Otherwise: when buffered changes will have.
    pub flush_at: Option<Instant>,
}

impl Needs {
    /// Whether a worker has to do anything, now or later.
    pub fn anything(&self) -> bool {
        self.has_transfers || self.flush_now || self.flush_at.is_some()
    }
}

impl SharedPartition {
    pub fn new(partition: Partition) -> Self {
        Self {
            has_news: AtomicBool::new(false),
            locked: Mutex::new(Locked {
                partition,
                callers: NumberMap::default(),
                ticket_next: 0,
                syncs: Vec::new(),
                buffered_since: None,
                is_closed: false,
                closers: Vec::new(),
                is_broken: false,
            }),
        }
    }

    /// Has the worker look: to be followed by its bell.
    pub fn tell(&self) {
        self.has_news.store(true, SeqCst);
    }

    /// Whether the worker is to look.
    pub fn has_news(&self) -> bool {
        self.has_news.load(SeqCst)
    }

    /// As [`has_news`](Self::has_news); the caller looks now.
    pub fn take_news(&self) -> bool {
        self.has_news() && self.has_news.swap(false, SeqCst)
    }

    /// Puts a request in. The reply, if memory has it; otherwise it goes to what `receiver` makes. And what is to be done.
    pub fn ask(
        &self,
        request: Request,
        receiver: impl FnOnce() -> Receiver,
        answers: &mut Answers,
    ) -> Result<(Option<Reply>, Needs)> {
        self.within(|locked| {
            locked.check_open()?;
            let ticket = locked.submit(Origin::Caller, request);
            let mut own = None;
            locked.take_replies(answers, |of, reply| {
                if of == ticket {
                    own = Some(reply);
                }
            });
            if own.is_none() {
                locked.callers.insert(ticket, receiver());
            }
            Ok((own, locked.needs(None, answers)))
        })
    }

    /// Puts requests of a call in, each with its number there. Says what is to be done.
    pub fn ask_many(
        &self,
        requests: impl Iterator<Item = (usize, Request, Origin)>,
        call: &Arc<Call>,
        answers: &mut Answers,
    ) -> Result<Needs> {
        self.within(|locked| {
            locked.check_open()?;
            for (number, request, origin) in requests {
                let call = Arc::clone(call);
                let ticket = locked.submit(origin, request);
                // Its reply is taken out at the end, so the receiver is not late.
                locked.callers.insert(ticket, Receiver { call, number });
            }
            Ok(locked.needs(None, answers))
        })
    }

    /// Tells the partition of transfers that have ended, and appends to `out` up to `room` that are to begin.
    pub fn visit(
        &self,
        ends: &mut Vec<End>,
        (room, out): (usize, &mut Vec<Transfer>),
        now: Instant,
        answers: &mut Answers,
    ) -> Needs {
        self.within(|locked| {
            if locked.is_broken {
                ends.clear();
                return Needs::default();
            }
            for end in ends.drain(..) {
                locked.partition.ended(end.tag, end.outcome, end.buffer);
            }
            if room > 0 {
                locked.partition.transfers(room, out);
            }
            locked.needs(Some(now), answers)
        })
    }

    /// A flush has ended that began at `begun`.
    pub fn flushed(&self, flush: FlushNo, begun: Instant, answers: &mut Answers) -> Needs {
        self.within(|locked| {
            if locked.is_broken {
                return Needs::default();
            }
            locked.partition.flushed(flush, Ok(()));
            // What is left was written after the flush had begun.
            locked.buffered_since = Some(begun);
            locked.needs(Some(Instant::now()), answers)
        })
    }

    /// The device has failed, here or in another partition: all who wait for something durable are told.
    pub fn failed(&self, answers: &mut Answers) -> Needs {
        self.within(|locked| {
            if locked.is_broken {
                return Needs::default();
            }
            let error = Error::new(ErrorKind::Io, "it was met in another partition");
            locked.partition.flushed(0, Err(error));
            locked.needs(None, answers)
        })
    }

    /// Has a receiver told when all that was acknowledged up to now is durable. `None`: it is so already; otherwise what is
    /// to be done.
    pub fn sync(
        &self,
        receiver: impl FnOnce() -> Receiver,
        answers: &mut Answers,
    ) -> Result<Option<Needs>> {
        self.within(|locked| {
            locked.check_open()?;
            if locked.has_failed() {
                return Err(poisoned());
            }
            // What was acknowledged has a timestamp up to this one. Later ones are not waited for, so it has an end.
            let last = locked.partition.parts().last;
            if locked.partition.durable_mark() >= last {
                return Ok(None);
            }
            kreon_base::planted!(SyncNotAwaited => return Ok(None));
            locked.syncs.push((last, receiver()));
            Ok(Some(locked.needs(None, answers)))
        })
    }

    /// Takes no requests any more, and has a receiver told when nothing is under way.
    pub fn close(&self, receiver: Receiver, answers: &mut Answers) {
        self.within(|locked| {
            locked.is_closed = true;
            if locked.is_broken {
                return answers.push(receiver, Reply::Done);
            }
            locked.closers.push(receiver);
            locked.needs(None, answers);
        });
    }

    /// Has the partition looked at; `None` if it was broken off.
    pub fn look<T>(&self, look: impl FnOnce(&Partition) -> T) -> Option<T> {
        self.within(|locked| (!locked.is_broken).then(|| look(&locked.partition)))
    }

    /// Has the partition of an open store looked at.
    pub fn look_open<T>(&self, look: impl FnOnce(&Partition) -> T) -> Result<T> {
        self.within(|locked| {
            locked.check_open()?;
            Ok(look(&locked.partition))
        })
    }

    /// The worker is gone in the midst of its work: nobody waits for it any more.
    pub fn break_off(&self, answers: &mut Answers) {
        self.locked.lock().break_off(answers);
    }

    /// Works under the lock. A panic breaks the partition off, as it may be in the midst of a change.
    fn within<T>(&self, work: impl FnOnce(&mut Locked) -> T) -> T {
        let mut locked = self.locked.lock();
        match catch_unwind(AssertUnwindSafe(|| work(&mut locked))) {
            Ok(done) => done,
            Err(panic) => {
                let mut answers = Answers::default();
                locked.break_off(&mut answers);
                drop(locked);
                answers.hand_out();
                resume_unwind(panic)
            }
        }
    }
}

impl Locked {
    fn check_open(&self) -> Result<()> {
        if self.is_closed {
            Err(closed())
        } else if self.is_broken {
            Err(broken())
        } else {
            Ok(())
        }
    }

    fn submit(&mut self, origin: Origin, mut request: Request) -> Ticket {
        let ticket = Ticket(self.ticket_next);
        self.ticket_next += 1;
        request.ticket = Some(ticket);
        self.partition.submit_from(origin, request);
        ticket
    }

    fn has_failed(&self) -> bool {
        self.partition.parts().clock.has_failed()
    }

    /// Moves replies to `answers`; those that nobody is known to wait for go to `other`.
    fn take_replies(&mut self, answers: &mut Answers, mut other: impl FnMut(Ticket, Reply)) {
        for (ticket, reply) in self.partition.replies() {
            match self.callers.remove(&ticket) {
                Some(receiver) => answers.push(receiver, reply),
                None => other(ticket, reply),
            }
        }
    }

    /// Takes replies out, and says what is to be done. `now`: the worker asks, which looks after buffered changes.
    fn needs(&mut self, now: Option<Instant>, answers: &mut Answers) -> Needs {
        self.take_replies(answers, |_, _| ());
        self.answer_syncs(answers);
        let wish = self.partition.flush_wish();
        if self.is_settled(wish) {
            for closer in self.closers.drain(..) {
                answers.push(closer, Reply::Done);
            }
        }
        let due = match (wish, now) {
            (FlushWish::None, _) => {
                self.buffered_since = None;
                None
            }
            (_, Some(now)) => Some(*self.buffered_since.get_or_insert(now) + BUFFERED_MAX),
            (_, None) => None,
        };
        let is_awaited = !self.syncs.is_empty() || self.is_closed;
        let is_due = due.zip(now).is_some_and(|(due, now)| due <= now);
        let flush_now = wish == FlushWish::Now || wish == FlushWish::Some && (is_awaited || is_due);
        Needs {
            has_transfers: self.partition.parts().cells.waiting() > 0,
            flush_now,
            flush_at: due.filter(|_| !flush_now),
        }
    }

    /// Answers those who wait for something that is durable now, or never will be.
    fn answer_syncs(&mut self, answers: &mut Answers) {
        if self.syncs.is_empty() {
            return;
        }
        let mark = self.partition.durable_mark();
        let has_failed = self.has_failed();
        for (last, receiver) in std::mem::take(&mut self.syncs) {
            if last <= mark {
                answers.push(receiver, Reply::Done);
            } else if has_failed {
                answers.push(receiver, Reply::Failed(poisoned()));
            } else {
                self.syncs.push((last, receiver));
            }
        }
    }

    /// Whether nothing is under way and, as no requests come in, nothing will be.
    fn is_settled(&self, wish: FlushWish) -> bool {
        self.is_closed
            && wish == FlushWish::None
            && self.callers.is_empty()
            && self.syncs.is_empty()
            && self.partition.is_idle()
    }

    /// Answers all who wait. The partition may be in any state, so it is asked nothing.
    fn break_off(&mut self, answers: &mut Answers) {
        self.is_broken = true;
        self.partition.parts().clock.fail();
        let callers = self.callers.drain().map(|it| it.1);
        for receiver in callers.chain(self.syncs.drain(..).map(|it| it.1)) {
            answers.push(receiver, Reply::Failed(broken()));
        }
        for closer in self.closers.drain(..) {
            answers.push(closer, Reply::Done);
        }
    }
}
