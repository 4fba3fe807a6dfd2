//! The queue of threads and tasks that wait for a flush.
//!
//! Invariants:
//! - at most one of them leads: it writes and flushes for all;
//! - each is woken by itself, once: when its records are durable or never will be, or when it becomes the leader;
//! - while any wait, one leads or the flusher, a thread of the store, has been called. A leader that ends hands the lead to
//!   a thread whose records came too late, or calls the flusher if only tasks are left.

use std::sync::Arc;
use std::task::Waker;

use kreon_base::{Lsn, Result, wake};

use super::pause::Pause;
use super::poison::{Poison, closed};
use super::positions::Positions;
use kreon_sync::{Condvar, Mutex, Wakeup};

/// A thread or task that waits.
pub(super) struct Waiter {
    upto: Lsn,
    /// A thread can take the lead, a task cannot.
    is_thread: bool,
    wake: Mutex<WakeState>,
    called: Condvar,
}

#[derive(Default)]
struct WakeState {
    reason: Option<WakeReason>,
    task: Option<Waker>,
}

/// Why a waiter is woken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WakeReason {
    /// Its records are durable, or never will be.
    Look,
    /// It is the leader now.
    Lead,
}

impl Waiter {
    fn new(upto: Lsn, is_thread: bool, task: Option<Waker>) -> Arc<Self> {
        Arc::new(Self {
            upto,
            is_thread,
            wake: Mutex::new(WakeState { reason: None, task }),
            called: Condvar::new(),
        })
    }

    /// Blocks the thread until it is called.
    fn wait(&self) -> WakeReason {
        let mut state = self.wake.lock();
        loop {
            match state.reason {
                Some(reason) => return reason,
                None => self.called.wait(&mut state),
            }
        }
    }

    fn call(&self, reason: WakeReason) {
        let task = {
            let mut state = self.wake.lock();
            debug_assert!(state.reason.is_none(), "a waiter is woken once");
            state.reason = Some(reason);
            state.task.take()
        };
        match task {
            Some(task) => wake(task),
            None => _ = self.called.notify_one(),
        }
    }

    /// Has `task` woken instead of the one before; whether the call is still to come.
    pub fn renew(&self, task: &Waker) -> bool {
        let mut state = self.wake.lock();
        if state.reason.is_some() {
            return false;
        }
        if !state.task.as_ref().is_some_and(|old| old.will_wake(task)) {
            state.task = Some(task.clone());
        }
        true
    }
}

/// The queue, and whether it has a leader.
pub(super) struct Waiters {
    queue: Mutex<Queue>,
    /// Calls the flusher.
    flusher: Wakeup,
    positions: Arc<Positions>,
    poison: Arc<Poison>,
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
    /// How many wait, not counting the leader.
    pub fn waiting(&self) -> usize {
        self.queue.lock().waiting.len()
    }
}

/// The lead; given up when dropped.
pub(super) struct Leader<'a>(&'a Waiters);

/// What a task that asks for a flush is told.
pub(super) enum Joined {
    /// The position is durable.
    Durable,
    /// The task is woken when it is.
    Waits(Arc<Waiter>),
    /// There is no flusher.
    Unserved,
}

impl Waiters {
    pub fn new(positions: Arc<Positions>, poison: Arc<Poison>) -> Self {
        Self {
            queue: Mutex::default(),
            flusher: Wakeup::default(),
            positions,
            poison,
        }
    }

    /// Waits until everything before `upto` is durable, or the calling thread has to lead.
    pub fn wait_or_lead(&self, upto: Lsn) -> Result<Option<Leader<'_>>> {
        loop {
            let mut queue = self.queue.lock();
            if self.positions.durable() >= upto {
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
            if waiter.wait() == WakeReason::Lead {
                return Ok(Some(Leader(self)));
            }
        }
    }

    /// Has `task` woken when everything before `upto` is durable.
    pub fn join(&self, upto: Lsn, task: &Waker) -> Result<Joined> {
        let mut queue = self.queue.lock();
        if self.positions.durable() >= upto {
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
            self.flusher.call();
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

    /// Wakes the flusher, or is what it waits for.
    pub fn flusher(&self) -> &Wakeup {
        &self.flusher
    }

    /// The lead, for the flusher, if any wait and none leads.
    pub fn lead_for_tasks(&self) -> Option<Leader<'_>> {
        let mut queue = self.queue.lock();
        let is_needed = !queue.is_led && !queue.is_closed && !queue.waiting.is_empty();
        queue.is_led |= is_needed;
        drop(queue);
        is_needed.then(|| Leader(self))
    }

    /// Says that there is a flusher, or none any more: then tasks flush for themselves.
    pub fn set_served(&self, is_served: bool) {
        self.change_and_call_all(|queue| queue.is_served = is_served);
    }

    /// Nothing becomes durable any more, and all that wait are told; a flush under way is waited for.
    pub fn close(&self) {
        self.change_and_call_all(|queue| queue.is_closed = true);
        // The leader still writes.
        let mut pause = Pause::default();
        while self.queue.lock().is_led {
            pause.wait();
        }
    }

    fn change_and_call_all(&self, change: impl FnOnce(&mut Queue)) {
        let mut queue = self.queue.lock();
        change(&mut queue);
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        waiting
            .iter()
            .for_each(|waiter| waiter.call(WakeReason::Look));
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let Self(waiters) = self;
        let durable = waiters.positions.durable();
        let is_over = waiters.poison.check().is_err();
        let mut queue = waiters.queue.lock();
        debug_assert!(queue.is_led, "the lead was lost");
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
            next.call(WakeReason::Lead);
        }
        if are_tasks_left {
            waiters.flusher.call();
        }
        served
            .iter()
            .for_each(|waiter| waiter.call(WakeReason::Look));
    }
}
