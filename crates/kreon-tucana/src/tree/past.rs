//! Generations of a tree before the current one: on their way to the device, and until nobody reaches what they replaced.

use std::collections::VecDeque;
use std::sync::Arc;

use kreon_base::{Epoch, planted};
use kreon_sync::Mutex;

use super::generation::Generation;

/// All of them, in the order of their epochs.
#[derive(Default)]
pub(super) struct Past(Mutex<State>);

/// The oldest first.
#[derive(Default)]
struct State {
    /// Those whose nodes are not published yet.
    frozen: VecDeque<Arc<Generation>>,
    /// Those whose replaced pages readers or the durable state may still reach.
    published: VecDeque<Arc<Generation>>,
    /// What is durable.
    committed: Epoch,
}

impl Past {
    /// Adds the generation that `end` ends. One at a time: they come in their order.
    pub(super) fn freeze<T>(
        &self,
        end: impl FnOnce() -> (Arc<Generation>, T),
    ) -> (Arc<Generation>, T) {
        let mut state = self.0.lock();
        let (ended, noted) = end();
        state.frozen.push_back(Arc::clone(&ended));
        (ended, noted)
    }

    /// Those to publish whose epochs are not later than `last`.
    pub(super) fn frozen_up_to(&self, last: Epoch) -> Vec<Arc<Generation>> {
        let state = self.0.lock();
        let due = state.frozen.iter().take_while(|one| one.epoch <= last);
        due.cloned().collect()
    }

    /// Whether any is to be published, or `is_changed` says so of the current one. No freeze comes in between.
    pub(super) fn has_frozen_or(&self, is_changed: impl FnOnce() -> bool) -> bool {
        let state = self.0.lock();
        !state.frozen.is_empty() || is_changed()
    }

    /// The oldest frozen generation is published.
    pub(super) fn oldest_is_published(&self) {
        let mut state = self.0.lock();
        let published = state.frozen.pop_front();
        state.published.extend(published);
    }

    /// All up to an epoch is durable.
    pub(super) fn commit(&self, epoch: Epoch) {
        let mut state = self.0.lock();
        state.committed = state.committed.max(epoch);
    }

    /// Takes those out whose replaced pages neither the durable state nor a reader reaches any more. Returns the last epoch whose
    /// readers are all gone, too.
    pub(super) fn take_passed(&self) -> (Epoch, Vec<Arc<Generation>>) {
        let mut state = self.0.lock();
        let (committed, mut over) = (state.committed, Vec::new());
        let passed = loop {
            // Nobody can begin to read a generation that is over.
            let Some(oldest) = state.published.front() else {
                break committed;
            };
            let is_held = Arc::strong_count(oldest) > 1;
            planted!(SnapshotPagesReused => let is_held = false);
            if oldest.epoch > committed || is_held {
                break Epoch(oldest.epoch.0 - 1);
            }
            over.extend(state.published.pop_front());
        };
        (passed, over)
    }
}
