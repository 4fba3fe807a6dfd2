//! L0' becomes L0, and a new L0' takes the writes.

use std::sync::Arc;

use kreon_base::Lsn;

use super::Versions;
use crate::level::Frozen;

impl Versions {
    /// Freezes L0' if it has at least `bytes_min` bytes and no L0 is being spilled.
    pub fn freeze(&self, bytes_min: usize) -> bool {
        let _freezing = self.freezes.lock();
        let view = self.storage.views.load_full();
        let active = &view.active;
        if view.frozen.is_some() || active.is_empty() || !active.is_full(bytes_min) {
            return false;
        }
        let hidden_max = self.space.hidden_max();
        let _closed = self.visibility.gate.close();
        let end = self.storage.log.tail();
        let moved_end = self.inserted();
        self.storage.log.restrain();
        self.space.frozen_at(end, hidden_max);
        self.storage.views.change(|view| {
            debug_assert!(view.frozen.is_none(), "one L0 is frozen at a time");
            let frozen = Frozen {
                l0: Arc::clone(&view.active),
                end,
                moved_end,
            };
            (
                Arc::new(view.active.successor()),
                Some(Arc::new(frozen)),
                Arc::clone(&view.levels),
            )
        });
        true
    }

    /// The log's tail, if all that was written is in the levels. The caller holds [the right to change the
    /// levels](Self::lock_changes) until its change is installed: a spill beside it would move markers further.
    pub fn quiet_tail(&self) -> Option<Lsn> {
        let _freezing = self.freezes.lock();
        let _closed = self.visibility.gate.close();
        let view = self.storage.views.load();
        let is_quiet = view.frozen.is_none() && view.active.is_empty();
        is_quiet.then(|| self.storage.log.tail())
    }
}
