//! The record of a key in the arena: the key's bytes, its newest version, and a link to older ones.
//!
//! The newest version stands in the record itself, in three words that a writer replaces under a latch
//! in the first of them (a sequence lock whose sequence is the LSN), so an update of a logged value
//! takes no new memory. A value's bytes are never replaced, as readers borrow them: an inline value
//! either stands behind the key (the first version of a key) or in a [`Retained`] version.

use kreon_base::sync::{AtomicU64, Ordering, fence};

use kreon_base::{LogOffset, Lsn, Payload};

use crate::arena::{AtomicTagged, Ref, Tagged};
use crate::latch::Pause;
use crate::version::Version;

/// LSNs end below this.
pub(crate) const LSN_MAX: u64 = LSN_HELD;

/// Log offsets end below this.
pub(crate) const OFFSET_MAX: u64 = 1 << 61;

/// In a record's LSN word: a writer is replacing the newest version.
const LSN_HELD: u64 = 1 << 63;

/// Everything about one key. In the arena the key follows, and the first inline value after it.
pub(crate) struct Record {
    lsn: AtomicU64,
    place: AtomicU64,
    /// Tag: bytes of the newest version's value. Reference: the version beneath, or the newest itself
    /// if its place is [`Where::Retained`].
    link: AtomicTagged<Retained>,
}

/// A version that does not stand in a record: an older one, or one with an inline value (which
/// follows in the arena). All but the reference to the version beneath stays as it is.
pub(crate) struct Retained {
    pub lsn: u64,
    pub place: Place,
    /// Tag: bytes of the value. Reference: the version beneath. Changed under the record's latch.
    pub link: AtomicTagged<Retained>,
}

/// Where the value of a version is, and whether the version is marked pending, in one word: two bits,
/// one bit, and 61 bits of log offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place(u64);

/// Where the value of a version is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Where {
    Logged(LogOffset),
    Deleted(LogOffset),
    /// Behind the key of the record.
    Record,
    /// Behind the [`Retained`] version.
    Retained,
}

impl Place {
    const PENDING: u64 = 1 << 61;

    /// Packs; an offset stays below [`OFFSET_MAX`].
    pub(crate) fn new(at: Where, pending: bool) -> Self {
        let bits = match at {
            Where::Logged(offset) => offset.0,
            Where::Deleted(offset) => offset.0 | 1 << 62,
            Where::Record => 2 << 62,
            Where::Retained => 3 << 62,
        };
        Self(bits | if pending { Self::PENDING } else { 0 })
    }

    /// The place of a payload whose inline value, if it is one, stands at `inline`.
    pub(crate) fn of(payload: &Payload<'_>, inline: Where, pending: bool) -> Self {
        let at = match *payload {
            Payload::Logged { offset, .. } => Where::Logged(offset),
            Payload::Tombstone { offset } => Where::Deleted(offset),
            // Of trees alone: an insert does not take it.
            Payload::Inline { .. } | Payload::Erased { .. } => inline,
        };
        Self::new(at, pending)
    }

    /// Unpacks where.
    pub(crate) fn at(self) -> Where {
        let offset = LogOffset(self.0 & (OFFSET_MAX - 1));
        match self.0 >> 62 {
            0 => Where::Logged(offset),
            1 => Where::Deleted(offset),
            2 => Where::Record,
            _ => Where::Retained,
        }
    }

    /// Whether it is an offset in the log.
    pub(crate) fn in_log(self) -> bool {
        matches!(self.at(), Where::Logged(_) | Where::Deleted(_))
    }

    /// Whether it is marked pending.
    pub(crate) fn pending(self) -> bool {
        self.0 & Self::PENDING != 0
    }

    /// The version that this place and the rest describe.
    pub(crate) fn version(self, lsn: u64, value_bytes: u32, inline: &[u8]) -> Version<'_> {
        let payload = match self.at() {
            Where::Logged(offset) => Payload::Logged {
                offset,
                value_bytes,
            },
            Where::Deleted(offset) => Payload::Tombstone { offset },
            Where::Record | Where::Retained => Payload::Inline { value: inline },
        };
        Version {
            lsn: Lsn(lsn),
            payload,
            pending: self.pending(),
        }
    }
}

/// What a record said about its newest version at one moment.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Newest {
    pub lsn: u64,
    pub place: Place,
    pub link: Tagged<Retained>,
}

impl Newest {
    /// The newest version itself, where it does not stand in the record.
    pub(crate) fn retained(&self) -> Option<Ref<Retained>> {
        match self.place.at() {
            Where::Retained => self.link.to,
            _ => None,
        }
    }
}

impl Record {
    /// A record not shared yet.
    pub(crate) fn new(newest: Newest) -> Self {
        Self {
            lsn: AtomicU64::new(newest.lsn),
            place: AtomicU64::new(newest.place.0),
            link: AtomicTagged::new(newest.link),
        }
    }

    /// The newest version, all its words of one moment. Waits for a writer in the middle of replacing
    /// it.
    ///
    /// Equal LSNs before and after mean that no other version came between. A change that leaves the
    /// LSN as it is (a record moved, a version put beneath) is one of the place or of the link, never of
    /// both.
    pub(crate) fn read(&self) -> Newest {
        let mut pause = Pause::default();
        loop {
            let lsn = self.lsn.load(Ordering::Acquire);
            let place = Place(self.place.load(Ordering::Relaxed));
            let link = self.link.load();
            // Pairs with the release fence in `hold`.
            fence(Ordering::Acquire);
            if lsn & LSN_HELD == 0 && self.lsn.load(Ordering::Relaxed) == lsn {
                return Newest { lsn, place, link };
            }
            pause.wait();
        }
    }

    /// Takes the record's latch if the newest version, and the link to the one beneath, are still as
    /// in `seen`.
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
        let place = Place(self.place.load(Ordering::Relaxed));
        if place != seen.place || self.link.load() != seen.link {
            return None;
        }
        // No change may be seen before the held LSN.
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
    /// Puts a new newest version and ends the change.
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
