//! Installs new levels: makes them durable by a checkpoint, then shows them to readers.

use std::sync::Arc;

use kreon_base::{PageNo, Result};
use kreon_volume::page_runs::discard;

use super::Versions;
use crate::checkpoint::{self, Change};
use crate::level::Levels;
use crate::spill::Spilled;
use crate::state::Ledger;

impl Versions {
    /// Makes a change of levels durable and shows it to readers. `keep_frozen` leaves L0 in the view.
    pub fn install(
        &self,
        spilled: Spilled,
        change_ledger: impl FnOnce(&mut Ledger),
        keep_frozen: bool,
    ) -> Result<()> {
        let Spilled {
            levels,
            kept,
            dropped,
            charges,
            mut dead,
        } = spilled;
        let levels = Arc::new(levels);
        let mut ledger = self.storage.ledger.lock();
        let mut changed = ledger.with_made(&self.storage.made);
        change_ledger(&mut changed);
        debug_assert!(changed.marker >= ledger.marker, "the marker goes back");
        debug_assert!(
            changed.moved_marker >= ledger.moved_marker,
            "the marker of moved records goes back"
        );
        let fresh = kept.clone();
        let change = Change {
            levels: Arc::clone(&levels),
            ledger: changed,
            kept,
            dropped,
            charges,
        };
        let unreachable = match checkpoint::commit(&self.storage, &mut ledger, change) {
            Ok(unreachable) => unreachable,
            Err(error) => {
                self.discard_fresh(&fresh)?;
                return Err(error);
            }
        };
        self.storage.views.change(|view| {
            debug_assert!(keep_frozen || view.frozen.is_some(), "no L0 was spilled");
            let frozen = view.frozen.clone().filter(|_| keep_frozen);
            (Arc::clone(&view.active), frozen, levels)
        });
        let soon_free = unreachable.pages.len() as u64;
        // No segment is used for something else before this: only a commit, which takes the ledger, retires any.
        dead.sort_unstable();
        let reader = self.storage.log.reader();
        self.storage
            .dead
            .note(&dead, |segment| reader.sequence_of(segment));
        self.storage
            .views
            .retire(unreachable.pages, unreachable.segments);
        drop(ledger);
        self.space.set_reserve_but(soon_free);
        self.space.plan_space();
        Ok(())
    }

    /// Makes another ledger durable, with the same levels.
    pub fn install_ledger(&self, change_ledger: impl FnOnce(&mut Ledger)) -> Result<()> {
        let levels = Levels::clone(&self.storage.views.load().levels);
        self.install(Spilled::nothing(levels), change_ledger, true)
    }

    /// Releases the fresh pages of a change that was not installed.
    pub fn discard_fresh(&self, fresh: &[PageNo]) -> Result<()> {
        discard(&self.storage.mapping, fresh);
        self.storage.allocator.lock().release_pages(fresh)?;
        self.space.set_reserve();
        Ok(())
    }
}
