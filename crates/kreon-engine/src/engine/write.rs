//! The write path: room, log, L0, and the flush if the write asks for it.

use std::sync::Arc;

use kreon_base::{Bug, Error, KEY_BYTES_MAX, Lsn, Result, VALUE_BYTES_MAX};
use kreon_format::RecordKind;
use kreon_l0::Keep;

use super::core::Core;
use super::pressure;
use super::region::RegionState;
use super::units::{Marks, mark};
use crate::keys::L0Key;
use crate::log::{NewRecord, Place};
use crate::options::{Background, Durability};
use crate::placement;
use crate::volume::Purpose;

/// One change of one key.
#[derive(Clone, Copy)]
pub struct Operation<'a> {
    /// Where.
    pub region: &'a RegionState,
    /// Which.
    pub key: &'a [u8],
    /// The new value; `None` deletes the key.
    pub value: Option<&'a [u8]>,
}

impl Operation<'_> {
    fn check(&self) -> Result<()> {
        if self.key.len() > KEY_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a key has at most {KEY_BYTES_MAX} bytes, this one {}",
                self.key.len()
            )));
        }
        match self.value {
            Some(value) if value.len() > VALUE_BYTES_MAX => Err(Error::invalid(format!(
                "a value has at most {VALUE_BYTES_MAX} bytes, this one {}",
                value.len()
            ))),
            _ => Ok(()),
        }
    }

    fn record(&self) -> NewRecord<'_> {
        NewRecord {
            region: self.region.id,
            kind: if self.value.is_some() {
                RecordKind::Put
            } else {
                RecordKind::Delete
            },
            key: self.key,
            value: self.value.unwrap_or_default(),
        }
    }
}

fn marks(operations: &[Operation<'_>]) -> Marks {
    Marks::of(
        operations
            .iter()
            .map(|operation| (operation.region.id, operation.key)),
    )
}

impl Core {
    /// Applies `operations` as one unit: all or nothing, for readers and for crashes.
    ///
    /// # Errors
    /// `InvalidArgument`, `Closed`, `Poisoned`, `OutOfSpace`: nothing was applied. `Io` with
    /// [`Durability::Sync`]: applied for readers, but not known to be durable; the store is poisoned.
    pub fn write(
        self: &Arc<Self>,
        operations: &[Operation<'_>],
        durability: Durability,
    ) -> Result<()> {
        self.check_writable()?;
        operations.iter().try_for_each(Operation::check)?;
        if operations.is_empty() {
            return Ok(());
        }
        let purpose = match operations.iter().any(|operation| operation.value.is_some()) {
            true => Purpose::Put,
            false => Purpose::Delete,
        };
        self.make_room(purpose)?;
        let end = self.append_and_insert(operations)?;
        if durability == Durability::Sync {
            self.parts
                .log
                .sync(end)
                .inspect_err(|error| self.parts.poison.set(error))?;
        }
        if self.is_l0_full() {
            self.rotate();
        }
        Ok(())
    }

    /// From the reservation in the log to the insertion in L0, inside the gate. Returns the position
    /// behind the unit.
    fn append_and_insert(&self, operations: &[Operation<'_>]) -> Result<Lsn> {
        let _inside = self.gate.enter();
        // Closing waits for those inside; who comes later must not write.
        self.check_open()?;
        operations
            .iter()
            .try_for_each(|operation| operation.region.check())?;
        let log = &self.parts.log;
        if let [operation] = operations {
            let (place, end) = log.append_one(&operation.record())?;
            if self.units.any() {
                let mark = mark(operation.region.id, operation.key);
                self.units.wait_for_earlier(place.lsn, &[mark]);
            }
            self.insert(operation, place, false);
            return Ok(end);
        }
        let keys = marks(operations);
        let mut unit = self.units.begin(keys.clone(), || log.tail());
        let records: Vec<_> = operations.iter().map(Operation::record).collect();
        let mut places = Vec::with_capacity(records.len());
        let end = log.append(&records, |place| places.push(place))?;
        if let Some(first) = places.first() {
            unit.appended(first.lsn, end);
            self.units.wait_for_earlier(first.lsn, keys.sorted());
        }
        for (operation, place) in operations.iter().zip(places) {
            self.insert(operation, place, true);
        }
        Ok(end)
    }

    fn insert(&self, operation: &Operation<'_>, place: Place, unit_pending: bool) {
        let value_bytes = operation.value.map(|value| value.len() as u32);
        let inline_max = self.options.inline_value_bytes_max;
        let (key, value) = (operation.key, operation.value);
        let payload = placement::place(key, value_bytes, value, place.offset, inline_max);
        let key = L0Key::new(operation.region.id, operation.key);
        let view = self.parts.views.load();
        let keep = Keep {
            snapshot_max: self.snapshots.newest(),
            unit_pending: unit_pending && !Bug::BatchSeenInPart.is_planted(),
        };
        view.active.insert(key.as_slice(), place.lsn, payload, keep);
    }

    fn is_l0_full(&self) -> bool {
        self.parts.views.load().active.bytes() >= self.split.l0_bytes
    }

    /// Makes sure that L0' has room, slowing the writer down while a spill is under way.
    fn make_room(self: &Arc<Self>, purpose: Purpose) -> Result<()> {
        let view = self.parts.views.load();
        let used = view.active.bytes() as f64 / self.split.l0_bytes as f64;
        let is_spilling = view.frozen.is_some();
        drop(view);
        if used >= 1.0 && !is_spilling {
            self.rotate();
        }
        if !is_spilling || used < 0.5 {
            return Ok(());
        }
        if used < 1.0 {
            // Deletions free space: what slows down new data must not slow them down.
            let is_driven = self.options.background == Background::Driven;
            if purpose == Purpose::Put && !is_driven {
                crate::sync::sleep(pressure::delay(used));
            }
            return Ok(());
        }
        // Deletions may overfill L0' by half when spills fail for lack of space.
        let limit = match purpose {
            Purpose::Delete => self.split.l0_bytes + self.split.l0_bytes / 2,
            Purpose::Put | Purpose::Upkeep => self.split.l0_bytes,
        };
        self.want_spill();
        self.pressure.wait_for_room(|| {
            self.check_writable()?;
            let view = self.parts.views.load();
            Ok(view.frozen.is_some() && view.active.bytes() >= limit)
        })
    }
}
