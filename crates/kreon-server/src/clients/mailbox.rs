//! What other threads have for a connection: messages of its subscriptions, and orders to end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::Waker;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use crate::budget::{Budget, Share};

/// A message of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The pattern that matched, for a subscription to one.
    pub pattern: Option<Bytes>,
    pub channel: Bytes,
    pub payload: Bytes,
}

impl Message {
    /// What it takes in memory, about.
    fn bytes(&self) -> usize {
        const HEAD_BYTES: usize = 128;
        self.channel.len() + self.payload.len() + HEAD_BYTES
    }
}

/// Why a connection is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Nothing is new.
    None,
    /// Messages are there.
    Messages,
    /// It is to end: `CLIENT KILL`, or it was idle for too long.
    Killed,
    /// More messages wait than may: it is to end.
    Overflow,
}

const MESSAGES: u8 = 1;
const KILLED: u8 = 2;
const OVERFLOW: u8 = 4;

/// Filled by any thread, emptied by the thread of the connection.
#[derive(Debug)]
pub(crate) struct Mailbox {
    calls: AtomicU8,
    waiting_bytes: AtomicUsize,
    bytes_max: usize,
    waiting: Mutex<Waiting>,
    waker: AtomicWaker,
}

/// Messages that wait, and what they hold of the budget of all connections.
#[derive(Debug)]
struct Waiting {
    messages: VecDeque<Message>,
    bytes: usize,
    share: Share,
}

impl Mailbox {
    /// One for messages of `bytes_max` together, as far as `budget` has room for them.
    pub(crate) fn new(bytes_max: usize, budget: &Arc<Budget>) -> Self {
        Self {
            calls: AtomicU8::new(0),
            waiting_bytes: AtomicUsize::new(0),
            bytes_max,
            waiting: Mutex::new(Waiting {
                messages: VecDeque::new(),
                bytes: 0,
                share: Share::of(budget),
            }),
            waker: AtomicWaker::new(),
        }
    }

    /// Leaves a message. One too many ends the connection, and what waited is given up.
    pub(crate) fn post(&self, message: Message) {
        let mut waiting = self.waiting.lock();
        if self.calls.load(Ordering::Acquire) & OVERFLOW != 0 {
            return;
        }
        let bytes = waiting.bytes + message.bytes();
        if bytes > self.bytes_max || !waiting.share.hold(bytes) {
            waiting.messages.clear();
            self.note(&mut waiting, 0);
            return self.call(OVERFLOW);
        }
        waiting.messages.push_back(message);
        self.note(&mut waiting, bytes);
        drop(waiting);
        self.call(MESSAGES);
    }

    /// So many bytes wait now: what is held already, or less.
    fn note(&self, waiting: &mut Waiting, bytes: usize) {
        waiting.share.hold(bytes);
        waiting.bytes = bytes;
        self.waiting_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Has the connection look around.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Orders the connection to end.
    pub(crate) fn kill(&self) {
        self.call(KILLED);
    }

    fn call(&self, call: u8) {
        self.calls.fetch_or(call, Ordering::AcqRel);
        self.waker.wake();
    }

    /// What is new; `waker` is woken by whatever comes later.
    pub(crate) fn poll(&self, waker: &Waker) -> Call {
        self.waker.register(waker);
        match self.calls.load(Ordering::Acquire) {
            0 => Call::None,
            calls if calls & KILLED != 0 => Call::Killed,
            calls if calls & OVERFLOW != 0 => Call::Overflow,
            _ => Call::Messages,
        }
    }

    /// The oldest messages that wait, until they have `bytes` together; the others are still called for.
    pub(crate) fn take(&self, bytes: usize) -> Vec<Message> {
        self.calls.fetch_and(!MESSAGES, Ordering::AcqRel);
        let (mut taken, mut taken_bytes) = (Vec::new(), 0);
        let mut waiting = self.waiting.lock();
        while taken_bytes < bytes
            && let Some(message) = waiting.messages.pop_front()
        {
            taken_bytes += message.bytes();
            taken.push(message);
        }
        if !waiting.messages.is_empty() {
            self.calls.fetch_or(MESSAGES, Ordering::AcqRel);
        }
        let left = waiting.bytes.saturating_sub(taken_bytes);
        self.note(&mut waiting, left);
        taken
    }

    /// Bytes of the messages that wait.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One alone in its budget.
    fn mailbox(bytes_max: usize) -> Mailbox {
        Mailbox::new(bytes_max, &Budget::new(usize::MAX))
    }

    fn message(bytes: usize) -> Message {
        Message {
            pattern: None,
            channel: Bytes::from_static(b"c"),
            payload: vec![b'x'; bytes].into(),
        }
    }

    #[test]
    fn messages_are_taken_in_order_and_a_kill_comes_first() {
        let mailbox = mailbox(1 << 20);
        assert_eq!(mailbox.poll(Waker::noop()), Call::None);
        mailbox.post(message(1));
        mailbox.post(message(2));
        assert_eq!(mailbox.poll(Waker::noop()), Call::Messages);
        assert_eq!(mailbox.take(1000), [message(1), message(2)]);
        assert_eq!(mailbox.poll(Waker::noop()), Call::None);
        assert_eq!(mailbox.waiting_bytes(), 0);
        mailbox.post(message(1));
        mailbox.kill();
        assert_eq!(mailbox.poll(Waker::noop()), Call::Killed);
    }

    #[test]
    fn messages_that_were_not_taken_still_count() {
        let mailbox = mailbox(2000);
        for bytes in [500, 400, 300] {
            mailbox.post(message(bytes));
        }
        assert_eq!(mailbox.take(600), [message(500)]);
        assert_eq!(mailbox.poll(Waker::noop()), Call::Messages);
        mailbox.post(message(600));
        assert_eq!(mailbox.poll(Waker::noop()), Call::Messages);
        mailbox.post(message(600));
        assert_eq!(mailbox.poll(Waker::noop()), Call::Overflow);
    }

    #[test]
    fn one_who_takes_nothing_is_ended_and_holds_no_memory() {
        let mailbox = mailbox(1000);
        mailbox.post(message(800));
        mailbox.post(message(800));
        assert_eq!(mailbox.poll(Waker::noop()), Call::Overflow);
        assert!(mailbox.waiting.lock().messages.is_empty());
        mailbox.post(message(1));
        assert_eq!(mailbox.waiting_bytes(), 0);
    }

    #[test]
    fn those_who_take_nothing_share_one_budget() {
        let budget = Budget::new(1 << 20);
        let [one, other] = [(), ()].map(|()| Mailbox::new(1 << 20, &budget));
        one.post(message(600 << 10));
        other.post(message(600 << 10));
        assert_eq!(one.poll(Waker::noop()), Call::Messages);
        assert_eq!(other.poll(Waker::noop()), Call::Overflow);
        assert_eq!(one.take(1 << 20).len(), 1);
        assert_eq!(budget.taken_bytes(), 0);
        // Who is ended gives back what waited.
        one.post(message(600 << 10));
        one.post(message(600 << 10));
        assert_eq!(one.poll(Waker::noop()), Call::Overflow);
        assert_eq!(budget.taken_bytes(), 0);
    }
}
