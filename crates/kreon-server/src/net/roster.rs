//! The connections of one thread, until they have ended.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::clients::ClientEntry;

/// The connections of a thread.
#[derive(Debug, Default)]
pub(super) struct Roster {
    entries: RefCell<HashMap<u64, Arc<ClientEntry>>>,
    is_empty: Notify,
}

/// The place of a connection, left by the drop: a task that panics leaves it, too.
#[derive(Debug)]
pub(super) struct Seat<'a> {
    roster: &'a Roster,
    id: u64,
}

impl Roster {
    pub(super) fn add(&self, id: u64, entry: &Arc<ClientEntry>) -> Seat<'_> {
        self.entries.borrow_mut().insert(id, Arc::clone(entry));
        Seat { roster: self, id }
    }

    /// Has all of them look around.
    pub(super) fn wake_all(&self) {
        for entry in self.entries.borrow().values() {
            entry.mailbox.wake();
        }
    }

    pub(super) fn count(&self) -> usize {
        self.entries.borrow().len()
    }

    /// Completes when there are none.
    pub(super) async fn all_ended(&self) {
        loop {
            let notified = self.is_empty.notified();
            if self.count() == 0 {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut entries = self.roster.entries.borrow_mut();
        entries.remove(&self.id);
        if entries.is_empty() {
            self.roster.is_empty.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use tokio::runtime::{Builder, LocalOptions};
    use tokio::task::{spawn_local, yield_now};
    use tokio::time::timeout;

    use super::*;
    use crate::budget::Budget;
    use crate::clients::Mailbox;

    fn entry(id: u64) -> Arc<ClientEntry> {
        let mailbox = Mailbox::new(1, &Budget::new(usize::MAX));
        Arc::new(ClientEntry::new(id, Default::default(), mailbox))
    }

    #[test]
    fn connection_whose_task_panics_is_not_waited_for() {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().build_local(LocalOptions::default());
        runtime.unwrap().block_on(async {
            let roster = Rc::new(Roster::default());
            let serve = |id: u64, is_panicking: bool| {
                let roster = Rc::clone(&roster);
                spawn_local(async move {
                    let _seat = roster.add(id, &entry(id));
                    yield_now().await;
                    assert!(!is_panicking, "a command panics");
                })
            };
            let (panics, ends) = (serve(1, true), serve(2, false));
            yield_now().await;
            assert_eq!(roster.count(), 2);
            let ended = timeout(Duration::from_secs(10), roster.all_ended()).await;
            assert!(ended.is_ok(), "{} connections are left", roster.count());
            assert!(panics.await.is_err() && ends.await.is_ok());
        });
    }
}
