//! Writes: appended at once, answered when the log is safe.

use std::sync::Arc;

use kreon_base::{Lsn, Result};
use kreon_engine::{DeletedRange, Operation as Change, RegionState, Terms};
use kreon_wire::{Durability, FailureKind, Operation, Reply, Write};

use super::asked::Asked;
use super::shipping::{OWN_BYTES_MAX, Shipping};
use crate::hosted::Wait;

impl Asked {
    pub fn write(self, write: &Write<'_>) {
        if !self.office.takes_writes() {
            let text = "too few members of the group are in sync";
            return self.refuse(FailureKind::Unavailable, text);
        }
        let tables: Vec<&str> = write.tables.iter().collect();
        let holds = self.office.holds();
        let has = |operation: Operation<'_>| {
            let table = tables.get(usize::from(operation.table())).copied();
            let table = table.unwrap_or_default();
            match &operation {
                Operation::Put { key, .. } | Operation::Delete { key, .. } => holds.has(table, key),
                Operation::DeleteRange { bounds, .. } => holds.has_all(table, bounds),
            }
        };
        let placed = write.operations.iter().filter(|operation| has(*operation));
        match placed.count() {
            count if count == write.operations.len() => {}
            0 => return self.misplaced(),
            _ => {
                let text = "a batch lies in one group, and this one has not all of its keys";
                return self.refuse(FailureKind::CrossGroup, text);
            }
        }
        match self.append(&tables, write) {
            // Only deletions of nothing.
            Ok(Lsn(0)) => self.due.reply(&Reply::Done),
            Ok(end) => {
                let wait = match write.durability {
                    Durability::Replicated => Wait::Acknowledged,
                    Durability::Sync => Wait::Durable,
                };
                self.hosted.await_log(&self.office, (end, wait), self.due);
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Appends the changes as one unit; the position behind it.
    fn append(&self, tables: &[&str], write: &Write<'_>) -> Result<Lsn> {
        let regions = tables.iter().map(|table| self.office.region(table));
        let regions: Vec<Arc<RegionState>> = regions.collect::<Result<_>>()?;
        let own = |bound: std::ops::Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        let mut ranges = Vec::new();
        for operation in write.operations.iter() {
            if let Operation::DeleteRange { bounds, .. } = operation {
                ranges.push(DeletedRange::of((own(bounds.start), own(bounds.end)))?);
            }
        }
        let mut ranges = ranges.iter();
        let mut changes = Vec::with_capacity(write.operations.len());
        for operation in write.operations.iter() {
            // Its number was checked with the write.
            let Some(region) = regions.get(usize::from(operation.table())) else {
                continue;
            };
            let (key, value) = match operation {
                Operation::Put { key, value, .. } => (key, Some(value)),
                Operation::Delete { key, .. } => (key, None),
                Operation::DeleteRange { .. } => {
                    if let Some(Some(range)) = ranges.next() {
                        changes.push(range.operation(region));
                    }
                    continue;
                }
            };
            changes.push(Change {
                region,
                key,
                value,
                is_range: false,
                terms: Terms::default(),
            });
        }
        let value_bytes = |change: &Change<'_>| change.value.map_or(0, <[u8]>::len);
        let lengths = changes
            .iter()
            .map(|change| change.key.len() + value_bytes(change));
        let bytes = lengths.sum();
        let mirror = match bytes <= OWN_BYTES_MAX {
            true => self.hosted.mirror(&self.office),
            false => None,
        };
        Shipping::append(mirror, bytes, || self.office.engine.write_ahead(&changes))
    }
}
