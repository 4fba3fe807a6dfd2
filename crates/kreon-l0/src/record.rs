//! The record of a key in the arena: the key, its newest version, and a link to older versions.
//!
//! The newest version is in the record itself, in three words that a writer replaces under a latch in the first of them
//! (a sequence lock whose sequence is the LSN), so an update of a logged value allocates nothing. The bytes of a value
//! are never replaced, as readers borrow them: an inline value is behind the key (first version of a key) or in a
//! [`Retained`] version. Attributes stand in front of it, or there alone if the value is in the log: a version with
//! attributes is in the record itself only as the first of its key.

use kreon_base::sync::{AtomicU64, Ordering, fence};

use kreon_base::{Attributes, LogOffset, Lsn, Payload};

use crate::arena::{AtomicTagged, Ref, Tagged};
use crate::latch::Backoff;
use crate::version::Version;

/// Limit of LSNs, exclusive.
pub(crate) const LSN_MAX: u64 = LSN_HELD;

/// Limit of log offsets, exclusive.
pub(crate) const OFFSET_MAX: u64 = 1 << 60;

/// Flag in the LSN word of a record: a writer is replacing the newest version.
const LSN_HELD: u64 = 1 << 63;

/// The record of one key. In the arena the key follows, then attributes and inline value of its first version.
pub(crate) struct Record {
    lsn: AtomicU64,
    place: AtomicU64,
    /// Tag: length of the newest version's value. Reference: the version beneath, or the newest version itself if its
    /// place is [`Where::Retained`].
    link: AtomicTagged<Retained>,
}

/// A version outside the record: an older one, or one with an inline value or attributes (which follow in the arena). Only
/// the reference to the version beneath can change.
pub(crate) struct Retained {
    pub lsn: u64,
    pub place: ValuePlace,
    /// Tag: length of the value. Reference: the version beneath, changed under the record's latch.
    pub link: AtomicTagged<Retained>,
}

/// Place of a version's value, the pending mark, and the mark of attributes, in one word: two bits, two times one bit, and
/// 60 bits of log offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ValuePlace(u64);

/// Place of a version's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Where {
    Logged(LogOffset),
    Deleted(LogOffset),
    /// Behind the key of the record.
    Record,
    /// Behind the [`Retained`] version.
    Retained,
}

impl ValuePlace {
    const PENDING: u64 = 1 << 61;
    const ATTRIBUTES: u64 = 1 << 60;

    /// Packs a place; an offset must be below [`OFFSET_MAX`].
    pub(crate) fn new(at: Where, pending: bool) -> Self {
        let bits = match at {
            Where::Logged(offset) => offset.0,
            Where::Deleted(offset) => offset.0 | 1 << 62,
            Where::Record => 2 << 62,
            Where::Retained => 3 << 62,
        };
        Self(bits | if pending { Self::PENDING } else { 0 })
    }

    /// The place of a payload whose value is at `inline` if it is inline.
    pub(crate) fn of(payload: &Payload<'_>, inline: Where, pending: bool) -> Self {
        let at = match *payload {
            Payload::Logged { offset, .. } => Where::Logged(offset),
            Payload::Tombstone { offset } => Where::Deleted(offset),
            // `Erased` occurs only in trees; an insert rejects it.
            Payload::Inline { .. } | Payload::Erased { .. } => inline,
        };
        let place = Self::new(at, pending);
        match payload.attributes().is_none() {
            true => place,
            false => Self(place.0 | Self::ATTRIBUTES),
        }
    }

    /// Unpacks the place.
    pub(crate) fn at(self) -> Where {
        let offset = LogOffset(self.0 & (OFFSET_MAX - 1));
        match self.0 >> 62 {
            0 => Where::Logged(offset),
            1 => Where::Deleted(offset),
            2 => Where::Record,
            _ => Where::Retained,
        }
    }

    /// Whether the value, or the tombstone, is in the log.
    pub(crate) fn in_log(self) -> bool {
        matches!(self.at(), Where::Logged(_) | Where::Deleted(_))
    }

    /// Whether the version has attributes: they begin the bytes that stand where an inline value would.
    #[inline]
    pub(crate) fn has_attributes(self) -> bool {
        self.0 & Self::ATTRIBUTES != 0
    }

    /// Whether it is marked pending.
    pub(crate) fn pending(self) -> bool {
        self.0 & Self::PENDING != 0
    }

    /// The version with this place, LSN, length, and attributes and inline value.
    #[inline]
    pub(crate) fn version(self, lsn: u64, value_bytes: u32, inline: &[u8]) -> Version<'_> {
        let (attributes, value) = match self.has_attributes() {
            false => (Attributes::NONE, inline),
            true => split_attributes(inline),
        };
        let payload = match self.at() {
            Where::Logged(offset) => Payload::Logged {
                offset,
                value_bytes,
                attributes,
            },
            Where::Deleted(offset) => Payload::Tombstone { offset },
            Where::Record | Where::Retained => Payload::Inline { value, attributes },
        };
        Version {
            lsn: Lsn(lsn),
            payload,
            pending: self.pending(),
        }
    }
}

/// Bytes of attributes in the arena.
pub(crate) fn attribute_bytes(attributes: Attributes) -> [u8; Attributes::BYTES] {
    attributes.word().to_le_bytes()
}

/// Attributes and what follows them.
fn split_attributes(bytes: &[u8]) -> (Attributes, &[u8]) {
    match bytes.split_first_chunk() {
        Some((stored, value)) => {
            let attributes = Attributes::of_word(u64::from_le_bytes(*stored));
            (attributes.unwrap_or_default(), value)
        }
        None => (Attributes::NONE, bytes),
    }
}

/// A consistent copy of a record's newest version.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Newest {
    pub lsn: u64,
    pub place: ValuePlace,
    pub link: Tagged<Retained>,
}

impl Newest {
    /// The newest version itself, if it is outside the record.
    pub(crate) fn retained(&self) -> Option<Ref<Retained>> {
        match self.place.at() {
            Where::Retained => self.link.to,
            _ => None,
        }
    }
}

impl Record {
    /// A record that is not shared yet.
    pub(crate) fn new(newest: Newest) -> Self {
        Self {
            lsn: AtomicU64::new(newest.lsn),
            place: AtomicU64::new(newest.place.0),
            link: AtomicTagged::new(newest.link),
        }
    }

    /// A consistent copy of the newest version. Waits while a writer replaces it.
    ///
    /// Equal LSNs before and after the reads mean that the version is the same. Changes that keep the LSN (a moved
    /// record, a version put beneath) change either the place or the link, never both.
    pub(crate) fn read(&self) -> Newest {
        let mut pause = Backoff::default();
        loop {
            let lsn = self.lsn.load(Ordering::Acquire);
            let place = ValuePlace(self.place.load(Ordering::Relaxed));
            let link = self.link.load();
            // Pairs with the release fence in `hold`.
            fence(Ordering::Acquire);
            if lsn & LSN_HELD == 0 && self.lsn.load(Ordering::Relaxed) == lsn {
                return Newest { lsn, place, link };
            }
            pause.wait();
        }
    }

    /// Takes the record's latch if the newest version and its link are still as in `seen`.
    pub(crate) fn hold(&self, seen: &Newest) -> Option<HeldRecord<'_>> {
        self.lsn
            .compare_exchange(
                seen.lsn,
                seen.lsn | LSN_HELD,
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .ok()?;
        let held = HeldRecord {
            record: self,
            lsn: seen.lsn,
        };
        let place = ValuePlace(self.place.load(Ordering::Relaxed));
        if place != seen.place || self.link.load() != seen.link {
            return None;
        }
        // Orders the held LSN before all changes.
        fence(Ordering::Release);
        Some(held)
    }
}

/// A record whose latch is held. Dropping it ends the change.
pub(crate) struct HeldRecord<'a> {
    record: &'a Record,
    lsn: u64,
}

impl HeldRecord<'_> {
    /// Replaces the newest version and ends the change.
    pub(crate) fn publish(mut self, newest: Newest) {
        self.record.place.store(newest.place.0, Ordering::Relaxed);
        self.record.link.store(newest.link);
        self.lsn = newest.lsn;
    }
}

impl Drop for HeldRecord<'_> {
    fn drop(&mut self) {
        self.record.lsn.store(self.lsn, Ordering::Release);
    }
}
