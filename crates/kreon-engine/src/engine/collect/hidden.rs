//! How much of the log since the last freeze is dead, or makes as much dead, unknown to the accounts until a spill.
//!
//! A record that replaces an older one of L0' or of the trees makes that dead, about as large as itself; the first one of
//! its key makes nothing dead. A writer notes the key that crosses each border of [`SAMPLE_BYTES`] of the log, and whether
//! L0' had it; whether trees have it is asked when it matters, of what is in memory: index nodes and their filters. So a
//! load of new keys is not spilled before L0' is full, and overwrites as soon as they hide too much.

use std::cell::Cell;

use kreon_base::{Lsn, RegionId};

use crate::engine::core::Core;
use crate::engine::resident::ResidentNodes;
use crate::keys::L0Key;
use crate::level::View;
use crate::tree;

/// One key is noted for so many bytes of the log: 128 for the smallest bound on what may be hidden. One costs a lookup
/// in the trees, 1 to 2 us.
const SAMPLE_BYTES: u64 = 128 << 10;

/// With as little as this share of its bound left to grow the log is looked at again: not at every write.
const LOOKS_PER_BOUND: u64 = 8;

/// Longer keys are not noted, as that takes memory, but taken for known ones.
const NOTED_KEY_BYTES_MAX: usize = 256;

/// From so much on the share that is dead is known well enough to tell what is not judged yet.
const JUDGED_MIN: u64 = 8 * SAMPLE_BYTES;

/// What was noted since the last freeze.
#[derive(Default)]
pub(super) struct Hidden {
    /// Where in the log that was.
    since: Lsn,
    /// What the records that were judged stand for, and what of it is dead.
    judged_bytes: u64,
    dead_bytes: u64,
    open: Vec<Noted>,
}

/// A record of L0' that stands for some bytes of the log.
struct Noted {
    region: RegionId,
    key: Vec<u8>,
    bytes: u64,
}

impl Hidden {
    /// Nothing was noted since a freeze at `end`.
    pub fn since(end: Lsn) -> Self {
        Self {
            since: end,
            ..Self::default()
        }
    }

    fn judged(&mut self, bytes: u64, is_dead: bool) {
        self.judged_bytes += bytes;
        self.dead_bytes += if is_dead { bytes } else { 0 };
    }
}

impl super::Collector {
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
        let mut hidden = self.hidden.lock();
        match was_known || key.len() > NOTED_KEY_BYTES_MAX {
            true => hidden.judged(bytes, true),
            false => hidden.open.push(Noted {
                region,
                key: key.to_vec(),
                bytes,
            }),
        }
    }
}

impl Core {
    /// Whether what the log hides since the last freeze is too much; if not, says when to ask again. Asked where the
    /// log has come as far as it was told the last time.
    pub(in crate::engine) fn hides_too_much(&self) -> bool {
        let hidden = &self.collector.hidden;
        // Judged without the lock, which writers take. Who comes meanwhile finds nothing to judge, and goes on.
        let (since, open) = {
            let mut hidden = hidden.lock();
            (hidden.since, std::mem::take(&mut hidden.open))
        };
        let view = self.parts.views.load();
        let judged: Vec<_> = open
            .iter()
            .map(|noted| (noted.bytes, self.may_replace(&view, noted)))
            .collect();
        let (dead_bytes, judged_bytes) = {
            let mut hidden = hidden.lock();
            if hidden.since != since {
                return false;
            }
            for (bytes, is_dead) in judged {
                hidden.judged(bytes, is_dead);
            }
            (hidden.dead_bytes, hidden.judged_bytes)
        };
        if judged_bytes >= JUDGED_MIN {
            self.collector.stock.judged(dead_bytes, judged_bytes);
        }
        let bound = self.plan_anew(&self.space_at_a_look()).hidden_max;
        if dead_bytes >= bound {
            return true;
        }
        let more = (bound - dead_bytes).max(bound / LOOKS_PER_BOUND);
        self.collector.freeze_at(self.parts.log.tail(), more);
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
                        nodes: self.nodes_of_level(noted.region, level),
                        missing: &missing,
                        passed: &passed,
                    };
                    let found = tree::get(&nodes, tree, &noted.key, Lsn::MAX, |_| ());
                    !matches!(found, Ok(None))
                })
    }
}
