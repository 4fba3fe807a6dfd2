//! Snapshots that clients have open in a group.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_engine::OpenSnapshot;
use kreon_sync::{AtomicU64, Mutex, Ordering};
use kreon_wire::{SnapshotId, Term};

use crate::client::ClientLink;

/// An open snapshot of a client.
struct Held {
    client: Arc<ClientLink>,
    /// Of the office.
    term: Term,
    snapshot: Arc<OpenSnapshot>,
    used: Instant,
    /// It goes with the last page.
    is_of_scan: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.client.snapshots.fetch_sub(1, Ordering::Relaxed);
        self.client.usage.snapshots.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Snapshots that clients have open in a group.
#[derive(Default)]
pub struct Snapshots {
    held: Mutex<HashMap<SnapshotId, Held>>,
    /// Those of offices that are over. Closing one takes a lock of the store, which nobody may wait for who has the lock of the
    /// group's machines.
    over: Mutex<Vec<Held>>,
    /// Numbers are not used again in this start.
    last: AtomicU64,
}

impl Snapshots {
    /// Keeps a snapshot of a client. None: it has too many.
    pub fn keep(
        &self,
        client: &Arc<ClientLink>,
        (term, snapshot): (Term, &Arc<OpenSnapshot>),
        is_of_scan: bool,
    ) -> Option<SnapshotId> {
        let before = client.snapshots.fetch_add(1, Ordering::Relaxed);
        client.usage.snapshots.fetch_add(1, Ordering::Relaxed);
        let held = Held {
            client: Arc::clone(client),
            term,
            snapshot: Arc::clone(snapshot),
            used: Instant::now(),
            is_of_scan,
        };
        if before >= client.usage.limits.snapshots_max {
            return None;
        }
        let id = SnapshotId(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        self.held.lock().insert(id, held);
        Some(id)
    }

    /// A snapshot of this client in the office of `term`, and whether it goes with the last page of its scan.
    pub fn get(
        &self,
        client: &ClientLink,
        (term, id): (Term, SnapshotId),
    ) -> Option<(Arc<OpenSnapshot>, bool)> {
        let mut held = self.held.lock();
        let found = held.get_mut(&id)?;
        if found.client.name != client.name || found.term != term {
            return None;
        }
        found.used = Instant::now();
        Some((Arc::clone(&found.snapshot), found.is_of_scan))
    }

    /// A client needs it no more.
    pub fn release(&self, client: &ClientLink, id: SnapshotId) {
        let mut held = self.held.lock();
        let is_own = held
            .get(&id)
            .is_some_and(|held| held.client.name == client.name);
        let released = if is_own { held.remove(&id) } else { None };
        drop(held);
        drop(released);
    }

    /// Closes what nobody used for `patience`.
    pub fn close_idle(&self, now: Instant, patience: Duration) {
        let over = std::mem::take(&mut *self.over.lock());
        drop(over);
        let is_idle = |held: &Held| now.saturating_duration_since(held.used) > patience;
        self.close(is_idle);
    }

    /// The link of a client has ended.
    pub fn close_of(&self, client: &ClientLink) {
        self.close(|held| held.client.name == client.name);
    }

    /// The office is over: they are closed with the next idle ones.
    pub fn end(&self) {
        let held: Vec<_> = self.held.lock().drain().map(|(_, held)| held).collect();
        self.over.lock().extend(held);
    }

    fn close(&self, which: impl Fn(&Held) -> bool) {
        let mut held = self.held.lock();
        let closed: Vec<_> = held.extract_if(|_, held| which(held)).collect();
        drop(held);
        drop(closed);
    }
}
