//! All connections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::entry::ClientEntry;
use crate::budget::Budget;

/// The connections that there are.
#[derive(Debug)]
pub(crate) struct Clients {
    entries: Mutex<BTreeMap<u64, Arc<ClientEntry>>>,
    next_id: AtomicU64,
    /// Connections, also those that have no entry yet.
    count: AtomicUsize,
    pub accepted: AtomicU64,
    pub refused: AtomicU64,
    pub budget: Arc<Budget>,
}

impl Clients {
    /// None yet; their buffers hold of `budget`.
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self {
            entries: Mutex::default(),
            next_id: AtomicU64::new(1),
            count: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            budget,
        }
    }

    /// A place for a connection if there are fewer than `clients_max`; it is left by the drop.
    pub(crate) fn admit(self: &Arc<Self>, clients_max: usize) -> Option<Admission> {
        if self.count.fetch_add(1, Ordering::AcqRel) >= clients_max {
            self.count.fetch_sub(1, Ordering::AcqRel);
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.accepted.fetch_add(1, Ordering::Relaxed);
        Some(Admission {
            clients: Arc::clone(self),
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// The entries in the order of their numbers.
    pub(crate) fn entries(&self) -> Vec<Arc<ClientEntry>> {
        self.entries.lock().values().cloned().collect()
    }
}

/// The place of a connection among the clients.
#[derive(Debug)]
pub(crate) struct Admission {
    clients: Arc<Clients>,
    pub id: u64,
}

impl Admission {
    /// Lists the connection until the drop.
    pub(crate) fn list(&self, entry: &Arc<ClientEntry>) {
        self.clients
            .entries
            .lock()
            .insert(self.id, Arc::clone(entry));
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.clients.entries.lock().remove(&self.id);
        self.clients.count.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::Mailbox;

    #[test]
    fn no_more_are_admitted_than_may_be_and_an_end_makes_room() {
        let clients = Arc::new(Clients::new(Budget::new(1 << 20)));
        let first = clients.admit(2).unwrap();
        let second = clients.admit(2).unwrap();
        assert!(clients.admit(2).is_none());
        let entry = ClientEntry::new(
            second.id,
            Default::default(),
            Mailbox::new(1, &clients.budget),
        );
        second.list(&Arc::new(entry));
        assert_eq!(clients.entries().len(), 1);
        drop(second);
        assert_eq!(clients.entries().len(), 0);
        let third = clients.admit(2).unwrap();
        assert!(third.id > first.id);
        assert_eq!(
            (clients.count(), clients.refused.load(Ordering::Relaxed)),
            (2, 1)
        );
    }
}
