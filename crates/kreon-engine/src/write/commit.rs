//! Writes on a condition: that what the caller has read is still so.
//!
//! The gate is closed while the condition is judged and the unit is appended and inserted: no other write comes between,
//! and each write that began before is wholly in L0 and is judged. Nothing is read from the device meanwhile. Where a
//! judgement needs the trees, they are looked at before, and again if they changed until the gate was closed. The flush
//! of a `Sync` write follows when the gate is open again, together with those of other writers.

use kreon_base::{Error, Result, planted};

use super::path::Writer;
use crate::level::View;
use crate::operation::Operation;
use crate::options::Durability;
use crate::read::Reader;

/// From so many looks at the trees on, spills and merges wait for the next one.
const LOOKS_BESIDE_CHANGES: usize = 4;

/// What must hold when a unit is written.
pub trait Condition {
    /// Looks at the trees, if they changed since the last look. The gate is open.
    ///
    /// # Errors
    /// `Conflict` if the condition does not hold any more; those of a get.
    fn look(&mut self, reader: &Reader) -> Result<()>;

    /// Whether it holds now, in `view`, by L0' and L0. The gate is closed.
    fn judge(&self, reader: &Reader, view: &View) -> Judgement;
}

/// What a condition says.
pub enum Judgement {
    /// It holds.
    Holds,
    /// The trees changed since the last look.
    LookAgain,
    /// It does not hold, by this conflict.
    Broken(Error),
}

impl Writer {
    /// As [`write`](Self::write), if `condition` holds at that moment. For all other writers condition and write are one
    /// step.
    ///
    /// # Errors
    /// Those of a write; `Conflict` and those of a get: nothing was applied.
    pub fn write_if(
        &self,
        operations: &[Operation<'_>],
        durability: Durability,
        condition: &mut impl Condition,
    ) -> Result<()> {
        self.write_by(operations, durability, |stored, is_admitted| {
            let mut looks = 0;
            loop {
                // Each look that was in vain had a spill, merge or load end beside it: the last one keeps them off.
                let changes =
                    (looks >= LOOKS_BESIDE_CHANGES).then(|| self.on.versions.lock_changes());
                condition.look(&self.reader)?;
                let closed = self.on.visibility.gate.close();
                let view = self.on.storage.views.load();
                match condition.judge(&self.reader, &view) {
                    Judgement::Holds => {
                        planted!(CommitInTwoSteps => {
                            drop(closed);
                            kreon_sync::yield_now();
                            return self.append_and_insert(stored, is_admitted)
                        });
                        return self.append_inside(stored, is_admitted);
                    }
                    Judgement::Broken(conflict) => return Err(conflict),
                    Judgement::LookAgain => looks += 1,
                }
                debug_assert!(
                    changes.is_none(),
                    "trees change only by those who have the right to"
                );
            }
        })
    }
}
