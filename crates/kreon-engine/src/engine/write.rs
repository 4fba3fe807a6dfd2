//! The write path: room, log, L0, and the flush if the write asks for it.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Bug, Error, KEY_BYTES_MAX, Lsn, Payload, Result, VALUE_BYTES_MAX};
use kreon_format::{
    FRAGMENT_HEADER_BYTES, LOG_PAYLOAD_BYTES, RecordKind, fragment_bytes, range_end,
};
use kreon_l0::{Keep, L0};

use super::collect::is_full;
use super::core::Core;
use super::region::RegionState;
use super::units::{Marks, mark};
use crate::keys::L0Key;
use crate::level::{Memory, View};
use crate::log::{NewRecord, Place, WHOLE_UNIT_BYTES_MAX};
use crate::options::{Background, Durability};
use crate::placement;
use crate::volume::Purpose;

/// One change of one key, or the deletion of a range of keys.
#[derive(Clone, Copy)]
pub struct Operation<'a> {
    /// Where.
    pub region: &'a RegionState,
    /// Which.
    pub key: &'a [u8],
    /// The new value; `None` deletes the key.
    pub value: Option<&'a [u8]>,
    /// Deletes all keys from `key` on, up to where `value` says, which [`range_value`](kreon_format::range_value)
    /// has made.
    pub is_range: bool,
}

impl Operation<'_> {
    fn check(&self) -> Result<()> {
        if self.key.len() > KEY_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a key has at most {KEY_BYTES_MAX} bytes, this one {}",
                self.key.len()
            )));
        }
        if self.is_range {
            return self.range().map(drop);
        }
        match self.value {
            Some(value) if value.len() > VALUE_BYTES_MAX => Err(Error::invalid(format!(
                "a value has at most {VALUE_BYTES_MAX} bytes, this one {}",
                value.len()
            ))),
            _ => Ok(()),
        }
    }

    /// The keys of the range that it deletes: from the first on, before the second.
    pub(super) fn range(&self) -> Result<(&[u8], Option<&[u8]>)> {
        let end = range_end(self.value.unwrap_or_default());
        let end = end.map_err(|_| Error::invalid("the end of a range that is none"))?;
        Ok((self.key, end))
    }

    fn record(&self) -> NewRecord<'_> {
        NewRecord {
            region: self.region.id,
            kind: match self.value {
                Some(_) if self.is_range => RecordKind::DeleteRange,
                Some(_) => RecordKind::Put,
                None => RecordKind::Delete,
            },
            key: self.key,
            value: self.value.unwrap_or_default(),
        }
    }
}

fn marks(operations: &[Operation<'_>]) -> Marks {
    if operations.iter().any(|operation| operation.is_range) {
        return Marks::of_every_key();
    }
    Marks::of(
        operations
            .iter()
            .map(|operation| (operation.region.id, operation.key)),
    )
}

fn purpose(operations: &[Operation<'_>]) -> Purpose {
    let is_put = |operation: &Operation<'_>| operation.value.is_some() && !operation.is_range;
    match operations.iter().any(is_put) {
        true => Purpose::Put,
        false => Purpose::Delete,
    }
}

/// Bytes of keys and values.
fn record_bytes(operations: &[Operation<'_>]) -> u64 {
    let bytes =
        |operation: &Operation<'_>| operation.key.len() + operation.value.map_or(0, <[u8]>::len);
    operations.iter().map(bytes).sum::<usize>() as u64
}

/// A unit that may take several segments is tried again so often after space was freed: others may take that, too,
/// and there may never be enough.
const TRIES_LONG: usize = 4;

/// Segments of the log that a unit needs to itself.
fn segments(operations: &[Operation<'_>]) -> u32 {
    let bytes = record_bytes(operations) + (operations.len() * FRAGMENT_HEADER_BYTES) as u64;
    match bytes {
        0..=WHOLE_UNIT_BYTES => 1,
        // Where it begins and ends there is less room, and the last names the next.
        _ => u32::try_from(bytes / u64::from(LOG_PAYLOAD_BYTES) + 3).unwrap_or(u32::MAX),
    }
}

/// What goes into one segment, whatever its records take to be aligned.
const WHOLE_UNIT_BYTES: u64 = WHOLE_UNIT_BYTES_MAX as u64 / 2;

fn tries_of(operations: &[Operation<'_>]) -> usize {
    match segments(operations) {
        1 => usize::MAX,
        _ => TRIES_LONG,
    }
}

/// A unit that is in the log and in L0'.
struct Written {
    /// The position behind it.
    end: Lsn,
    /// The writer is to look at the space.
    is_look_due: bool,
    /// How long it sleeps, because garbage collection is behind.
    sleep: Duration,
    /// L0' is to be frozen.
    is_l0_full: bool,
}

/// So many inserts of a unit wait for memory together.
const TOGETHER: usize = 8;

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
        if durability == Durability::Sync {
            self.parts.log.expect_wait();
        }
        let Some(written) = self.apply(operations)? else {
            return Ok(());
        };
        if durability == Durability::Sync {
            self.parts
                .log
                .sync(written.end)
                .inspect_err(|error| self.parts.poison.set(error))?;
        }
        if written.is_l0_full {
            self.rotate();
        }
        Ok(())
    }

    /// Applies `operations` as one unit, as [`write`](Self::write), and returns the position behind
    /// them, to be waited for.
    ///
    /// # Errors
    /// `InvalidArgument`, `Closed`, `Poisoned`, `OutOfSpace`: nothing was applied.
    pub fn write_ahead(self: &Arc<Self>, operations: &[Operation<'_>]) -> Result<Lsn> {
        let Some(written) = self.apply(operations)? else {
            return Ok(Lsn(0));
        };
        if written.is_l0_full {
            self.rotate();
        }
        Ok(written.end)
    }

    /// Applies `operations` for readers and in the log, not yet durably. `None`: there are none.
    fn apply(self: &Arc<Self>, operations: &[Operation<'_>]) -> Result<Option<Written>> {
        self.check_writable()?;
        operations.iter().try_for_each(Operation::check)?;
        if operations.is_empty() {
            return Ok(None);
        }
        let watch = self.watch_range(operations)?;
        let (mut is_admitted, mut tries) = (false, tries_of(operations));
        loop {
            let written = match self.append_and_insert(operations, is_admitted) {
                Err(error)
                    if is_full(&error) && tries > 0 && self.relieve(segments(operations))? =>
                {
                    tries -= 1;
                    continue;
                }
                outcome => outcome?,
            };
            if let Some(written) = written {
                if written.is_look_due {
                    self.look_at_space();
                }
                // Deletions free space.
                if !written.sleep.is_zero() && purpose(operations) == Purpose::Put {
                    crate::sync::sleep(written.sleep);
                }
                self.note_deletions(operations, watch, written.end);
                return Ok(Some(written));
            }
            self.make_room(purpose(operations))?;
            is_admitted = true;
        }
    }

    /// From the reservation in the log to the insertion in L0, inside the gate. `None`: nothing was
    /// written, as the writer is to [make room](Self::make_room) first and was not admitted.
    fn append_and_insert(
        &self,
        operations: &[Operation<'_>],
        is_admitted: bool,
    ) -> Result<Option<Written>> {
        let _inside = self.gate.enter();
        // Closing waits for those inside; who comes later must not write.
        self.check_open()?;
        operations
            .iter()
            .try_for_each(|operation| operation.region.check())?;
        // Loaded once: L0' stays the same while anybody is inside the gate.
        let view = self.parts.views.load();
        if !is_admitted && self.must_make_room(&view) {
            return Ok(None);
        }
        let l0 = view.active.as_ref();
        let end = match operations {
            [operation] if operation.is_range => self.write_range(l0, operation)?,
            [operation] => self.write_one(l0, operation)?,
            _ => self.write_unit(l0, operations)?,
        };
        let is_freeze_due = view.frozen.is_none() && self.collector.is_freeze_due(end);
        let is_l0_full = l0.is_full(self.split.l0_bytes) || is_freeze_due;
        let bytes = record_bytes(operations);
        let start = Lsn(end.0.saturating_sub(bytes));
        Ok(Some(Written {
            end,
            is_look_due: self.collector.is_look_due(start, end),
            sleep: self.collector.sleep_after(start, end),
            is_l0_full,
        }))
    }

    fn write_one(&self, l0: &L0, operation: &Operation<'_>) -> Result<Lsn> {
        let key = L0Key::new(operation.region.id, operation.key);
        // The leaf comes from memory while the record is copied into the log.
        let spot = l0.approach(key.as_slice());
        let (place, end) = self.parts.log.append_one(&operation.record())?;
        if self.units.any() {
            let mark = mark(operation.region.id, operation.key);
            self.units.wait_for_earlier(place.lsn, mark);
        }
        let keep = Keep {
            snapshot_max: self.snapshots.newest(),
            ..Keep::default()
        };
        let was_known = spot.insert(place.lsn, self.payload(operation, place), keep);
        if operation.value.is_some() {
            operation.region.gaps.note_put(operation.key);
        }
        let (region, key) = (operation.region.id, operation.key);
        let collector = &self.collector;
        collector.note_written((place.lsn, end), region, key, was_known);
        Ok(end)
    }

    fn write_range(&self, l0: &Memory, operation: &Operation<'_>) -> Result<Lsn> {
        let range = operation.range()?;
        let (place, end) = self.parts.log.append_one(&operation.record())?;
        if self.units.any() {
            self.units.wait_for_all_earlier(place.lsn);
        }
        let keep = Keep {
            snapshot_max: self.snapshots.newest(),
            visible_before: self.units.settled(),
            ..Keep::default()
        };
        l0.delete_range(operation.region.id, range, place.lsn, keep);
        Ok(end)
    }

    fn write_unit(&self, l0: &Memory, operations: &[Operation<'_>]) -> Result<Lsn> {
        let log = &self.parts.log;
        let mut unit = self.units.begin(marks(operations), || log.tail());
        let records: Vec<_> = operations.iter().map(Operation::record).collect();
        let mut places = Vec::with_capacity(records.len());
        let end = log.append(&records, |place| places.push(place))?;
        if let Some(first) = places.first() {
            unit.appended(first.lsn, end);
        }
        let keep = Keep {
            // Inside the gate none opens that is newer.
            snapshot_max: self.snapshots.newest(),
            unit_pending: !Bug::BatchSeenInPart.is_planted(),
            visible_before: self.units.settled(),
        };
        for (operation, place) in operations.iter().zip(&places).filter(|(o, _)| o.is_range) {
            l0.delete_range(operation.region.id, operation.range()?, place.lsn, keep);
        }
        for (operations, places) in operations.chunks(TOGETHER).zip(places.chunks(TOGETHER)) {
            self.insert_together(l0, operations, places, keep);
        }
        Ok(end)
    }

    /// Inserts at most [`TOGETHER`] operations.
    fn insert_together(&self, l0: &L0, operations: &[Operation<'_>], places: &[Place], keep: Keep) {
        let keys: [_; TOGETHER] = std::array::from_fn(|at| {
            let operation = operations.get(at).filter(|operation| !operation.is_range)?;
            Some(L0Key::new(operation.region.id, operation.key))
        });
        let spots = keys
            .each_ref()
            .map(|key| key.as_ref().map(|key| l0.approach(key.as_slice())));
        for ((operation, place), spot) in operations.iter().zip(places).zip(spots) {
            let Some(spot) = spot else {
                continue;
            };
            let was_known = spot.insert(place.lsn, self.payload(operation, *place), keep);
            if operation.value.is_some() {
                operation.region.gaps.note_put(operation.key);
            }
            let bytes = fragment_bytes(record_bytes(std::slice::from_ref(operation)) as usize);
            let end = Lsn(place.lsn.0 + bytes as u64);
            let (region, key) = (operation.region.id, operation.key);
            let collector = &self.collector;
            collector.note_written((place.lsn, end), region, key, was_known);
        }
    }

    fn payload<'v>(&self, operation: &Operation<'v>, place: Place) -> Payload<'v> {
        let value_bytes = operation.value.map(|value| value.len() as u32);
        let inline_max = self.options.inline_value_bytes_max;
        let (key, value) = (operation.key, operation.value);
        placement::place(key, value_bytes, value, place.offset, inline_max)
    }

    /// Whether [`Self::make_room`] has something to do for a writer.
    pub(super) fn must_make_room(&self, view: &View) -> bool {
        let bytes = view.active.bytes();
        match view.frozen {
            None => view.active.is_full(self.split.l0_bytes),
            Some(_) => {
                bytes >= self.split.l0_bytes
                    || self.pressure.is_look_due(bytes)
                    || view.active.is_crowded()
            }
        }
    }

    /// Makes sure that L0' has room, slowing the writer down while a spill is under way.
    fn make_room(self: &Arc<Self>, purpose: Purpose) -> Result<()> {
        let view = self.parts.views.load();
        let (used, full) = (view.active.bytes(), self.split.l0_bytes);
        let (is_full, is_crowded) = (view.active.is_full(full), view.active.is_crowded());
        let is_spilling = view.frozen.is_some();
        drop(view);
        if is_full && !is_spilling {
            self.rotate();
        }
        if !is_spilling {
            return Ok(());
        }
        if used < full && !is_crowded {
            // Deletions free space: what slows down new data must not slow them down.
            let is_driven = self.options.background == Background::Driven;
            if purpose == Purpose::Put && !is_driven {
                let delay = self.pressure.delay(used, full);
                if !delay.is_zero() {
                    crate::sync::sleep(delay);
                }
            }
            return Ok(());
        }
        // Deletions may overfill L0' by half when spills fail for lack of space.
        let limit = match purpose {
            Purpose::Delete => self.split.l0_bytes + self.split.l0_bytes / 2,
            Purpose::Put | Purpose::Collection | Purpose::Upkeep => self.split.l0_bytes,
        };
        self.want_spill();
        self.pressure.wait_for_room(|| {
            self.check_writable()?;
            let view = self.parts.views.load();
            let is_over = view.active.bytes() >= limit || view.active.is_crowded();
            Ok(view.frozen.is_some() && is_over)
        })
    }
}
