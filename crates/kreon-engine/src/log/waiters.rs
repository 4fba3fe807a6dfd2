//! Those who wait for a flush: threads and tasks, each woken by itself, once.
//!
//! One of them leads at a time: it writes and flushes for all. When it has done so it wakes those whose
//! records are durable now, and hands the lead to a thread among those whose records came too late. If
//! only tasks are left, the flusher leads: a thread of the store that does nothing else.

use std::sync::Arc;
use std::task::Waker;

use kreon_base::{Lsn, Result, wake};

use super::bell::Bell;
use super::open::Log;
use super::pause::Pause;
use super::poison::closed;
use crate::sync::{Condvar, Mutex};

/// One who waits.
pub(super) struct Waiter {
    upto: Lsn,
    /// A thread can take the lead, a task cannot.
    is_thread: bool,
    call: Mutex<Call>,
    called: Condvar,
}

#[derive(Default)]
struct Call {
    what: Option<Wake>,
    task: Option<Waker>,
}

/// What a waiter is woken for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// Its records are durable, or never will be.
    Look,
    /// It is the one who leads now.
    Lead,
}

impl Waiter {
    fn new(upto: Lsn, is_thread: bool, task: Option<Waker>) -> Arc<Self> {
        Arc::new(Self {
            upto,
            is_thread,
            call: Mutex::new(Call { what: None, task }),
            called: Condvar::new(),
        })
    }

    /// Blocks the thread until it is called.
    fn wait(&self) -> Wake {
        let mut call = self.call.lock();
        loop {
            match call.what {
                Some(wake) => return wake,
                None => self.called.wait(&mut call),
            }
        }
    }

    fn call(&self, what: Wake) {
        let task = {
            let mut call = self.call.lock();
            call.what = Some(what);
            call.task.take()
        };
        match task {
            Some(task) => wake(task),
            None => _ = self.called.notify_one(),
        }
    }

    /// Has `task` woken instead of the one before; whether the call is still to come.
    pub fn renew(&self, task: &Waker) -> bool {
        let mut call = self.call.lock();
        if call.what.is_some() {
            return false;
        }
        if !call.task.as_ref().is_some_and(|old| old.will_wake(task)) {
            call.task = Some(task.clone());
        }
        true
    }
}

/// All who wait, and whether somebody leads.
#[derive(Default)]
pub(super) struct Waiters {
    queue: Mutex<Queue>,
    /// Calls the flusher.
    pub flusher: Bell,
}

#[derive(Default)]
struct Queue {
    is_led: bool,
    /// There is a flusher.
    is_served: bool,
    is_closed: bool,
    waiting: Vec<Arc<Waiter>>,
}

#[cfg(test)]
impl Waiters {
    /// How many wait, but for who leads.
    pub fn waiting(&self) -> usize {
        self.queue.lock().waiting.len()
    }
}

/// The one who leads; stops leading when dropped.
pub(super) struct Leader<'a>(&'a Log);

/// What a task that asks for a flush is told.
pub(super) enum Joined {
    /// The position is durable.
    Durable,
    /// The task is woken when it is.
    Waits(Arc<Waiter>),
    /// There is no flusher.
    Unserved,
}

impl Log {
    /// Waits until everything before `upto` is durable, or it is upon the calling thread to make it so.
    pub(super) fn wait_or_lead(&self, upto: Lsn) -> Result<Option<Leader<'_>>> {
        loop {
            let mut queue = self.commit.waiters.queue.lock();
            if self.durable() >= upto {
                return Ok(None);
            }
            self.check_takes_writes(&queue)?;
            if !queue.is_led {
                queue.is_led = true;
                return Ok(Some(Leader(self)));
            }
            let waiter = Waiter::new(upto, true, None);
            queue.waiting.push(Arc::clone(&waiter));
            drop(queue);
            if waiter.wait() == Wake::Lead {
                return Ok(Some(Leader(self)));
            }
        }
    }

    /// Has `task` woken when everything before `upto` is durable.
    pub(super) fn join(&self, upto: Lsn, task: &Waker) -> Result<Joined> {
        let mut queue = self.commit.waiters.queue.lock();
        if self.durable() >= upto {
            return Ok(Joined::Durable);
        }
        self.check_takes_writes(&queue)?;
        if !queue.is_served {
            return Ok(Joined::Unserved);
        }
        let waiter = Waiter::new(upto, false, Some(task.clone()));
        queue.waiting.push(Arc::clone(&waiter));
        let is_led = queue.is_led;
        drop(queue);
        if !is_led {
            self.commit.waiters.flusher.ring();
        }
        Ok(Joined::Waits(waiter))
    }

    fn check_takes_writes(&self, queue: &Queue) -> Result<()> {
        self.poison.check()?;
        if queue.is_closed {
            return Err(closed());
        }
        Ok(())
    }

    /// The lead, for the flusher, if anybody waits and nobody leads.
    pub(super) fn lead_for_tasks(&self) -> Option<Leader<'_>> {
        let mut queue = self.commit.waiters.queue.lock();
        let is_needed = !queue.is_led && !queue.is_closed && !queue.waiting.is_empty();
        queue.is_led |= is_needed;
        drop(queue);
        is_needed.then(|| Leader(self))
    }

    /// Says that there is a flusher, or none any more: then tasks flush for themselves.
    pub(super) fn set_served(&self, is_served: bool) {
        self.change_and_call_all(|queue| queue.is_served = is_served);
    }

    /// Nothing becomes durable any more, and whoever waits is told so; a flush under way is waited for.
    pub(crate) fn close(&self) {
        self.change_and_call_all(|queue| queue.is_closed = true);
        // Who leads still writes.
        let mut pause = Pause::default();
        while self.commit.waiters.queue.lock().is_led {
            pause.wait();
        }
    }

    fn change_and_call_all(&self, change: impl FnOnce(&mut Queue)) {
        let mut queue = self.commit.waiters.queue.lock();
        change(&mut queue);
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        waiting.iter().for_each(|waiter| waiter.call(Wake::Look));
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let Self(log) = self;
        let (durable, is_over) = (log.durable(), log.poison.check().is_err());
        let waiters = &log.commit.waiters;
        let mut queue = waiters.queue.lock();
        let waiting = std::mem::take(&mut queue.waiting);
        let is_served = |waiter: &Arc<Waiter>| is_over || waiter.upto <= durable;
        let (served, mut left): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_served);
        let next = left.iter().position(|waiter| waiter.is_thread);
        let next = next.map(|index| left.swap_remove(index));
        queue.is_led = next.is_some();
        let are_tasks_left = next.is_none() && !left.is_empty();
        queue.waiting = left;
        drop(queue);
        if let Some(next) = next {
            next.call(Wake::Lead);
        }
        if are_tasks_left {
            waiters.flusher.ring();
        }
        served.iter().for_each(|waiter| waiter.call(Wake::Look));
    }
}
