//! Connections that wait for an element of a list.
//!
//! Who makes a list serves those who wait for it, the longest first, with the lock of the key in hand: no element passes by a
//! waiting connection. A waiter is *claimed* when it leaves the queues; from then on its element is on the way, and a timeout
//! waits for it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::durable::Epoch;
use super::watch::DbKey;
use crate::reply::CommandError;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Left,
    Right,
}

/// What a waiter gets.
#[derive(Debug)]
pub(crate) struct Served {
    pub key: DbKey,
    pub element: Vec<u8>,
    /// What the reply rests on.
    pub epoch: Epoch,
}

/// A waiting connection.
#[derive(Debug)]
struct Waiter {
    end: End,
    /// Taken by whoever claims it.
    sender: Mutex<Option<oneshot::Sender<Served>>>,
}

type Queues = HashMap<DbKey, VecDeque<Arc<Waiter>>>;

/// Who waits for which lists.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// Number of queues: a push that finds none takes no lock.
    count: AtomicUsize,
    queues: Mutex<Queues>,
}

/// A place in the queues of some keys, until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    waiters: Arc<Waiters>,
    waiter: Arc<Waiter>,
    keys: Vec<DbKey>,
    receiver: oneshot::Receiver<Served>,
}

/// A waiter that was taken out of its queue, to be served.
#[derive(Debug)]
pub(crate) struct Claim {
    pub end: End,
    sender: oneshot::Sender<Served>,
}

impl Waiters {
    /// Waits for an element at `end` of one of `keys`. With the locks of the keys, after all were found empty.
    pub(crate) fn wait(self: &Arc<Self>, keys: Vec<DbKey>, end: End) -> Waiting {
        let (sender, receiver) = oneshot::channel();
        let waiter = Arc::new(Waiter {
            end,
            sender: Mutex::new(Some(sender)),
        });
        let mut queues = self.queues.lock();
        for key in &keys {
            let queue = queues.entry(key.clone()).or_default();
            queue.push_back(Arc::clone(&waiter));
        }
        self.count.store(queues.len(), SeqCst);
        drop(queues);
        Waiting {
            waiters: Arc::clone(self),
            waiter,
            keys,
            receiver,
        }
    }

    /// Whether nobody waits for anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(SeqCst) == 0
    }

    /// Whether anybody waits for `key`.
    pub(crate) fn has(&self, key: &DbKey) -> bool {
        !self.is_empty() && self.queues.lock().contains_key(key)
    }

    /// Claims who has waited longest for `key`.
    pub(crate) fn claim(&self, key: &DbKey) -> Option<Claim> {
        let queues = &mut *self.queues.lock();
        let claim = loop {
            let Some(waiter) = queues.get_mut(key).and_then(VecDeque::pop_front) else {
                break None;
            };
            // Who is gone, or was served with another key, is passed over.
            let sender = waiter.sender.lock().take();
            if let Some(sender) = sender.filter(|sender| !sender.is_closed()) {
                let end = waiter.end;
                break Some(Claim { end, sender });
            }
        };
        if queues.get(key).is_some_and(VecDeque::is_empty) {
            queues.remove(key);
        }
        self.count.store(queues.len(), SeqCst);
        claim
    }
}

impl Claim {
    /// Hands over the element. If the connection has ended meanwhile the element is lost, as with Redis.
    pub(crate) fn serve(self, served: Served) {
        drop(self.sender.send(served));
    }
}

impl Waiting {
    /// Completes when the waiter was served.
    ///
    /// # Errors
    /// Whoever claimed it has failed: see the log.
    pub(crate) async fn served(&mut self) -> Result<Served, CommandError> {
        let failed =
            CommandError::new("ERR the element could not be taken, see the log of the server");
        (&mut self.receiver).await.map_err(|_| failed)
    }

    /// The end of the wait: nobody can claim it any more. Completes at once, with nothing, unless it was claimed before.
    ///
    /// # Errors
    /// As [`served`](Self::served).
    pub(crate) async fn end(mut self) -> Result<Option<Served>, CommandError> {
        let was_claimed = self.waiter.sender.lock().take().is_none();
        match was_claimed {
            true => self.served().await.map(Some),
            false => Ok(None),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let queues = &mut *self.waiters.queues.lock();
        for key in &self.keys {
            if let Some(queue) = queues.get_mut(key) {
                queue.retain(|other| !Arc::ptr_eq(other, &self.waiter));
                if queue.is_empty() {
                    queues.remove(key);
                }
            }
        }
        self.waiters.count.store(queues.len(), SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn longest_waiting_is_served_once_and_first() {
        let waiters = Arc::new(Waiters::default());
        let key = |name: &'static str| (0, Bytes::from_static(name.as_bytes()));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut first = waiters.wait(vec![key("a"), key("b")], End::Left);
        let second = waiters.wait(vec![key("a")], End::Right);
        let claim = waiters.claim(&key("b")).unwrap();
        assert_eq!(claim.end, End::Left);
        claim.serve(Served {
            key: key("b"),
            element: b"1".to_vec(),
            epoch: Epoch::default(),
        });
        let served = runtime.block_on(first.served()).unwrap();
        assert_eq!((served.key, served.element), (key("b"), b"1".to_vec()));
        let claim = waiters.claim(&key("a")).unwrap();
        assert_eq!(claim.end, End::Right, "the first was served already");
        claim.serve(Served {
            key: key("a"),
            element: b"2".to_vec(),
            epoch: Epoch::default(),
        });
        let served = runtime.block_on(second.end()).unwrap();
        let served = served.unwrap();
        assert_eq!(served.element, b"2", "a timeout takes what is on the way");
        drop(first);
        assert!(waiters.is_empty() && waiters.claim(&key("a")).is_none());
        let third = waiters.wait(vec![key("a")], End::Left);
        assert!(runtime.block_on(third.end()).unwrap().is_none());
        assert!(waiters.is_empty());
        let mut fourth = waiters.wait(vec![key("a")], End::Left);
        drop(waiters.claim(&key("a")).unwrap());
        let failed = runtime.block_on(fourth.served());
        assert!(failed.is_err(), "its element was not taken: {failed:?}");
    }
}
