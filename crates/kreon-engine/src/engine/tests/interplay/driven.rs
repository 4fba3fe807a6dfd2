//! What nobody else does in a driven store.

use super::*;

impl Run {
    /// A writer without room would wait for a spill for ever.
    pub fn make_room(&self) {
        let storage = &self.engine().subsystems.storage;
        let is_full = || {
            let view = storage.views.load();
            view.frozen.is_some() && view.active.bytes() >= storage.split.l0_bytes
        };
        if self.options.background == Background::Driven && is_full() {
            self.work(Work::Spill);
        }
    }
}
