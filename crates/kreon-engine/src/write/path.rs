//! The write path: room, append to the log, insert into L0', and the flush of a `Sync` write.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Lsn, Result, Timestamp, planted};
use kreon_format::{FRAGMENT_HEADER_BYTES, LOG_PAYLOAD_BYTES, fragment_bytes};
use kreon_l0::{Approach, Keep, L0};

use super::prepare::Prepared;
use crate::keys::L0Key;
use crate::level::{Memory, View};
use crate::maintenance::{Ground, Maintenance};
use crate::operation::Operation;
use crate::options::{Background, Durability};
use crate::placement;
use crate::read::Reader;
use crate::visibility::{KeySet, mark};
use kreon_log::{Place, WHOLE_UNIT_BYTES_MAX};
use kreon_volume::Purpose;

fn marks(operations: &[Operation<'_>]) -> KeySet {
    if operations.iter().any(|operation| operation.is_range) {
        return KeySet::of_every_key();
    }
    KeySet::of(
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

/// Bytes of keys, attributes and values.
fn record_bytes(operations: &[Operation<'_>]) -> u64 {
    let bytes = |operation: &Operation<'_>| operation.key.len() + operation.value_bytes();
    operations.iter().map(bytes).sum::<usize>() as u64
}

/// Retries of a unit that needs several segments, after space was freed: other writers may take that space first.
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
pub(super) struct Written {
    /// The position behind it.
    end: Lsn,
    /// The writer must look at the space.
    is_look_due: bool,
    /// How long the writer is to sleep, because space is scarce.
    owed: Duration,
    /// L0' must be frozen.
    is_l0_full: bool,
}

/// Inserts of a batch whose cache misses overlap.
const TOGETHER: usize = 8;

/// The write path of a store.
pub struct Writer {
    pub(super) on: Ground,
    pub(super) reader: Arc<Reader>,
    maintenance: Arc<Maintenance>,
}

impl Writer {
    /// `maintenance` freezes full L0s and frees space.
    pub fn new(on: &Ground, reader: &Arc<Reader>, maintenance: &Arc<Maintenance>) -> Self {
        Self {
            on: on.clone(),
            reader: Arc::clone(reader),
            maintenance: Arc::clone(maintenance),
        }
    }

    /// When a value ends that is written now and lives for `ttl`: to the millisecond, rounded up, and not after
    /// [`Timestamp::MAX`].
    ///
    /// # Errors
    /// `InvalidArgument` for no time at all.
    pub fn expiry_after(&self, ttl: Duration) -> Result<Timestamp> {
        if ttl.is_zero() {
            return Err(Error::invalid("a value lives for no time at all"));
        }
        let ms = ttl.as_nanos().div_ceil(1_000_000);
        let ms = u64::try_from(ms).unwrap_or(u64::MAX);
        Ok(self.on.storage.options.clock.now().plus_ms(ms))
    }

    /// Applies `operations` as one unit: all or nothing, for readers and for crashes.
    ///
    /// # Errors
    /// `InvalidArgument`, `Closed`, `Poisoned`, `OutOfSpace`: nothing was applied. `Poisoned` with
    /// [`Durability::Sync`] also if the flush failed: applied for readers, but not known to be durable.
    pub fn write(&self, operations: &[Operation<'_>], durability: Durability) -> Result<()> {
        self.write_by(operations, durability, |stored, is_admitted| {
            self.append_and_insert(stored, is_admitted)
        })
    }

    /// The same; `append` does with the operations, as they are stored, what
    /// [`append_and_insert`](Self::append_and_insert) does, or fails.
    pub(super) fn write_by(
        &self,
        operations: &[Operation<'_>],
        durability: Durability,
        append: impl FnMut(&[Operation<'_>], bool) -> Result<Option<Written>>,
    ) -> Result<()> {
        if durability == Durability::Sync {
            self.on.storage.log.expect_wait();
        }
        let Some(written) = self.apply(operations, append)? else {
            return Ok(());
        };
        if durability == Durability::Sync {
            self.on
                .storage
                .log
                .sync(written.end)
                .inspect_err(|error| self.on.storage.poison.set(error))?;
        }
        if written.is_l0_full {
            self.maintenance.freeze_if_full();
        }
        Ok(())
    }

    /// Applies `operations` as one unit, as [`write`](Self::write), and returns the position behind
    /// them, to be waited for.
    ///
    /// # Errors
    /// `InvalidArgument`, `Closed`, `Poisoned`, `OutOfSpace`: nothing was applied.
    pub fn write_ahead(&self, operations: &[Operation<'_>]) -> Result<Lsn> {
        let append =
            |stored: &[Operation<'_>], is_admitted| self.append_and_insert(stored, is_admitted);
        let Some(written) = self.apply(operations, append)? else {
            return Ok(Lsn(0));
        };
        if written.is_l0_full {
            self.maintenance.freeze_if_full();
        }
        Ok(written.end)
    }

    /// Applies `operations` for readers and in the log, not yet durably. `None`: there are none.
    #[inline]
    fn apply(
        &self,
        given: &[Operation<'_>],
        mut append: impl FnMut(&[Operation<'_>], bool) -> Result<Option<Written>>,
    ) -> Result<Option<Written>> {
        self.on.storage.check_writable()?;
        given.iter().try_for_each(Operation::check)?;
        if given.is_empty() {
            return Ok(None);
        }
        let prepared = Prepared::of(given, &self.on.storage.options.clock);
        let operations = &*prepared.operations();
        let watch = self.reader.watch_range(operations)?;
        let (mut is_admitted, mut tries) = (false, tries_of(operations));
        loop {
            let written = match append(operations, is_admitted) {
                Err(error)
                    if error.kind() == ErrorKind::OutOfSpace
                        && tries > 0
                        && self.maintenance.gc.free_space_for(segments(operations))? =>
                {
                    tries -= 1;
                    continue;
                }
                outcome => outcome?,
            };
            if let Some(written) = written {
                if written.is_look_due {
                    self.on.space.look_at_space();
                }
                // Deletions free space.
                if !written.owed.is_zero() && purpose(operations) == Purpose::Put {
                    let bytes = record_bytes(operations);
                    self.on.throttle.pay(written.owed, bytes);
                }
                self.reader.note_deletions(operations, watch, written.end);
                return Ok(Some(written));
            }
            self.make_room(purpose(operations))?;
            is_admitted = true;
        }
    }

    /// From the reservation in the log to the insertion in L0, inside the gate. `None`: nothing was
    /// written, as the writer is to [make room](Self::make_room) first and was not admitted.
    pub(super) fn append_and_insert(
        &self,
        operations: &[Operation<'_>],
        is_admitted: bool,
    ) -> Result<Option<Written>> {
        let _inside = self.on.visibility.gate.enter();
        self.append_inside(operations, is_admitted)
    }

    /// The same in the gate, or with the gate closed.
    pub(super) fn append_inside(
        &self,
        operations: &[Operation<'_>],
        is_admitted: bool,
    ) -> Result<Option<Written>> {
        // Closing the store waits for writers inside; later ones must not write.
        self.on.storage.check_open()?;
        operations
            .iter()
            .try_for_each(|operation| operation.region.check())?;
        // Loaded once: L0' stays the same while a writer is inside the gate.
        let view = self.on.storage.views.load();
        if !is_admitted && self.must_make_room(&view) {
            return Ok(None);
        }
        let l0 = view.active.as_ref();
        let end = match operations {
            [operation] if operation.is_range => self.write_range(l0, operation)?,
            [operation] => self.write_one(l0, operation)?,
            _ => self.write_unit(l0, operations)?,
        };
        let is_freeze_due = view.frozen.is_none() && self.on.space.is_freeze_due(end);
        let is_l0_full = l0.is_full(self.on.storage.split.l0_bytes) || is_freeze_due;
        let bytes = record_bytes(operations);
        let start = Lsn(end.0.saturating_sub(bytes));
        Ok(Some(Written {
            end,
            is_look_due: self.on.space.is_look_due(start, end),
            owed: self.on.throttle.owed_for(bytes),
            is_l0_full,
        }))
    }

    fn write_one(&self, l0: &L0, operation: &Operation<'_>) -> Result<Lsn> {
        let key = L0Key::new(operation.region.id, operation.key);
        // The leaf comes from memory while the record is copied into the log.
        let spot = l0.approach(key.as_slice());
        let (place, end) = self.on.storage.log.append_one(&operation.record())?;
        if self.on.visibility.batches.any() {
            let mark = mark(operation.region.id, operation.key);
            self.on.visibility.batches.wait_for_earlier(place.lsn, mark);
        }
        let keep = Keep {
            snapshot_max: self.on.visibility.snapshots.newest(),
            ..Keep::default()
        };
        self.insert(spot, operation, (place, end), keep);
        Ok(end)
    }

    fn write_range(&self, l0: &Memory, operation: &Operation<'_>) -> Result<Lsn> {
        let range = operation.range()?;
        // A unit of many keys: what is written to one of them at a later position shows with the deletion, or the
        // others would be seen to outlive it.
        let log = &self.on.storage.log;
        let mut unit = self
            .on
            .visibility
            .batches
            .begin(KeySet::of_every_key(), || log.tail());
        let (place, end) = log.append_one(&operation.record())?;
        unit.appended(place.lsn, end);
        planted!(DeletionNotAwaited => drop(unit));
        let keep = Keep {
            snapshot_max: self.on.visibility.snapshots.newest(),
            visible_before: self.on.visibility.batches.settled(),
            ..Keep::default()
        };
        l0.delete_range(operation.region.id, range, place.lsn, keep);
        Ok(end)
    }

    fn write_unit(&self, l0: &Memory, operations: &[Operation<'_>]) -> Result<Lsn> {
        let log = &self.on.storage.log;
        let mut unit = self
            .on
            .visibility
            .batches
            .begin(marks(operations), || log.tail());
        let records: Vec<_> = operations.iter().map(Operation::record).collect();
        let mut places = Vec::with_capacity(records.len());
        let end = log.append(&records, |place| places.push(place))?;
        if let Some(first) = places.first() {
            unit.appended(first.lsn, end);
        }
        let keep = Keep {
            // No newer snapshot opens while this writer is inside the gate.
            snapshot_max: self.on.visibility.snapshots.newest(),
            unit_pending: true,
            visible_before: self.on.visibility.batches.settled(),
        };
        planted!(BatchSeenInPart => let keep = Keep { unit_pending: false, ..keep });
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
            let bytes = fragment_bytes(record_bytes(std::slice::from_ref(operation)) as usize);
            let end = Lsn(place.lsn.0 + bytes as u64);
            self.insert(spot, operation, (*place, end), keep);
        }
    }

    /// Inserts an operation whose record is in the log, at `place` and before `end`.
    #[inline]
    fn insert(
        &self,
        spot: Approach<'_>,
        operation: &Operation<'_>,
        (place, end): (Place, Lsn),
        keep: Keep,
    ) {
        let (region, key, value) = (operation.region, operation.key, operation.value);
        let value_bytes = value.map(|_| operation.value_bytes() as u32);
        let of_store = self.on.storage.options.inline_value_bytes_max;
        let inline_max = region.own.inline_value_bytes_max(of_store);
        let whole = (value, operation.attributes());
        let payload = placement::place(key, value_bytes, whole, place.offset, inline_max);
        let was_known = spot.insert(place.lsn, payload, keep);
        if value.is_some() {
            region.gaps.note_put(key);
        }
        let space = &self.on.space;
        space.note_written((place.lsn, end), region.id, key, was_known);
    }

    /// Whether [`Self::make_room`] has something to do for a writer.
    pub fn must_make_room(&self, view: &View) -> bool {
        let bytes = view.active.bytes();
        match view.frozen {
            None => view.active.is_full(self.on.storage.split.l0_bytes),
            Some(_) => {
                bytes >= self.on.storage.split.l0_bytes
                    || self.on.throttle.is_look_due(bytes)
                    || view.active.is_crowded()
            }
        }
    }

    /// Makes sure that L0' has room, slowing the writer down while a spill is under way.
    fn make_room(&self, purpose: Purpose) -> Result<()> {
        let view = self.on.storage.views.load();
        let (used, full) = (view.active.bytes(), self.on.storage.split.l0_bytes);
        let (is_full, is_crowded) = (view.active.is_full(full), view.active.is_crowded());
        let is_spilling = view.frozen.is_some();
        drop(view);
        if is_full && !is_spilling {
            self.maintenance.freeze_if_full();
        }
        if !is_spilling {
            return Ok(());
        }
        if used < full && !is_crowded {
            // Deletions free space: what slows down new data must not slow them down.
            let is_driven = self.on.storage.options.background == Background::Driven;
            if purpose == Purpose::Put && !is_driven {
                let delay = self.on.throttle.delay(used, full);
                if !delay.is_zero() {
                    kreon_sync::sleep(delay);
                }
            }
            return Ok(());
        }
        // Deletions may overfill L0' by half when spills fail for lack of space.
        let limit = match purpose {
            Purpose::Delete => self.on.storage.split.l0_bytes + self.on.storage.split.l0_bytes / 2,
            Purpose::Put | Purpose::Collection | Purpose::Maintenance => {
                self.on.storage.split.l0_bytes
            }
        };
        self.maintenance.want_spill();
        self.on.throttle.wait_for_room(|| {
            self.on.storage.check_writable()?;
            let view = self.on.storage.views.load();
            let is_over = view.active.bytes() >= limit || view.active.is_crowded();
            Ok(view.frozen.is_some() && is_over)
        })
    }
}
