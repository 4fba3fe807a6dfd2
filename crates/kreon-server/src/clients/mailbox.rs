//! What other threads have for a connection: messages of its subscriptions, and orders to end.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::Waker;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

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
    messages: Mutex<VecDeque<Message>>,
    waker: AtomicWaker,
}

impl Mailbox {
    /// One for messages of `bytes_max` together.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            calls: AtomicU8::new(0),
            waiting_bytes: AtomicUsize::new(0),
            bytes_max,
            messages: Mutex::default(),
            waker: AtomicWaker::new(),
        }
    }

    /// Leaves a message. One too many ends the connection, and what waited is given up.
    pub(crate) fn post(&self, message: Message) {
        let bytes = message.bytes();
        let waiting = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        if waiting + bytes > self.bytes_max {
            self.messages.lock().clear();
            return self.call(OVERFLOW);
        }
        self.messages.lock().push_back(message);
        self.call(MESSAGES);
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
        let mut messages = self.messages.lock();
        while taken_bytes < bytes
            && let Some(message) = messages.pop_front()
        {
            taken_bytes += message.bytes();
            taken.push(message);
        }
        if !messages.is_empty() {
            self.calls.fetch_or(MESSAGES, Ordering::AcqRel);
        }
        drop(messages);
        self.waiting_bytes.fetch_sub(taken_bytes, Ordering::Relaxed);
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

    fn message(bytes: usize) -> Message {
        Message {
            pattern: None,
            channel: Bytes::from_static(b"c"),
            payload: vec![b'x'; bytes].into(),
        }
    }

    #[test]
    fn messages_are_taken_in_order_and_a_kill_comes_first() {
        let mailbox = Mailbox::new(1 << 20);
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
        let mailbox = Mailbox::new(2000);
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
        let mailbox = Mailbox::new(1000);
        mailbox.post(message(800));
        mailbox.post(message(800));
        assert_eq!(mailbox.poll(Waker::noop()), Call::Overflow);
        assert!(mailbox.messages.lock().is_empty());
    }
}
