//! Whether L0' must be frozen early, because the log hides too many dead bytes.

use std::cell::Cell;

use kreon_base::{Lsn, RegionId};

use super::Space;
use super::garbage::Noted;
use crate::keys::L0Key;
use crate::level::{ResidentNodes, View};
use crate::tree;
use crate::tuning::{LOOKS_PER_BOUND, SAMPLE_BYTES, SAMPLES_MIN};

impl Space {
    /// Notes a record from `start` to `end` in the log, if it stands at a border. `was_known`: L0' had its key.
    /// Inside the gate.
    pub fn note_written(
        &self,
        (start, end): (Lsn, Lsn),
        region: RegionId,
        key: &[u8],
        was_known: bool,
    ) {
        let borders = end.0 / SAMPLE_BYTES - start.0 / SAMPLE_BYTES;
        if borders == 0 {
            return;
        }
        let bytes = borders * SAMPLE_BYTES;
        let mut hidden = self.garbage.lock();
        hidden.note(bytes, region, key, was_known);
    }

    /// Whether the log hides too many dead bytes since the last freeze; if not, sets where in the log to ask again.
    pub fn hides_too_much(&self) -> bool {
        let hidden = &self.garbage;
        // Judged without the lock, which writers take. Another writer finds nothing to judge meanwhile and goes on.
        let (since, open) = hidden.lock().take_open();
        let view = self.storage.views.load();
        let judged: Vec<_> = open
            .iter()
            .map(|noted| (noted.bytes, self.may_replace(&view, noted)))
            .collect();
        let Some((dead_bytes, judged_bytes)) = hidden.lock().judge(since, &judged) else {
            return false;
        };
        if judged_bytes >= SAMPLES_MIN * SAMPLE_BYTES {
            self.snapshot.judged(dead_bytes, judged_bytes);
        }
        let bound = self.plan_anew(&self.space_at_a_look()).hidden_max;
        if dead_bytes >= bound {
            return true;
        }
        let more = (bound - dead_bytes).max(bound / LOOKS_PER_BOUND);
        self.freeze_at(self.storage.log.tail(), more);
        false
    }

    /// Whether L0 or the trees have the key, as far as memory tells: if it does not, they do.
    fn may_replace(&self, view: &View, noted: &Noted) -> bool {
        let key = L0Key::new(noted.region, &noted.key);
        let in_frozen = view.frozen.as_ref().is_some_and(|frozen| {
            let found = frozen.l0.get(key.as_slice(), Lsn::MAX, |_| true, |_| ());
            found.is_some()
        });
        in_frozen
            || (1..)
                .zip(view.levels.of(noted.region))
                .any(|(level, tree)| {
                    let (missing, passed) = (Cell::new(None), Cell::new(None));
                    let nodes = ResidentNodes {
                        nodes: self.storage.nodes_of_level(noted.region, level),
                        missing: &missing,
                        passed: &passed,
                    };
                    let found = tree::get(&nodes, tree, &noted.key, Lsn::MAX, |_| ());
                    !matches!(found, Ok(None))
                })
    }
}
