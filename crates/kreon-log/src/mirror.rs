//! Who else holds the log: the members of a group that keep a copy of each byte.
//!
//! Invariants of a log with a mirror:
//! - nothing counts as durable, and no claim is written to the device, that is not durable on all counted members, too;
//! - a segment stays in its buffer until it has landed: the mirror can be fed from memory however slow it is;
//! - writers wait for what has landed as they wait for the device, and no thread polls for it.

use std::sync::Arc;

use kreon_base::{Lsn, Result};

/// Who else holds the log. Positions are those of the log; "counted" are the members that are in the group's set, or
/// possibly in it.
///
/// [`grown`](Self::grown), [`begin_sync`](Self::begin_sync), [`landed`](Self::landed) and [`durable`](Self::durable) are
/// called under locks of the log: they must neither block nor call the log. What the mirror ships it reads with a
/// [`LogTap`](super::LogTap), whose [`landed`](super::LogTap::landed) it calls after its own position has grown.
pub trait LogMirror: Send + Sync {
    /// The committed prefix of the log has grown. Called after each record: a flag that a thread looks at is enough.
    fn grown(&self);

    /// Everything before this is in the memory of all counted members. Never falls. Without members: `Lsn::MAX`, or how
    /// far the mirror allows the buffers to be used again.
    fn landed(&self) -> Lsn;

    /// [`sync`](Self::sync) up to `upto` follows, once the device of this log was flushed: the members may begin.
    fn begin_sync(&self, upto: Lsn) {
        let _ = upto;
    }

    /// Waits until everything before `upto` is durable on all counted members; returns a position from `upto` on of which
    /// that is true.
    ///
    /// # Errors
    /// It will never be: the log takes no more records, and tells this error as the cause. A position before `upto` is
    /// taken for such an error.
    fn sync(&self, upto: Lsn) -> Result<Lsn>;

    /// A lower bound of what is durable on all counted members. Before a log is opened: the end up to which all of them
    /// were made equal, at least the end of the log.
    fn durable(&self) -> Lsn;
}

/// The mirror of a log; without one, everything counts as landed and durable elsewhere.
#[derive(Clone, Default)]
pub(super) struct Elsewhere(Option<Arc<dyn LogMirror>>);

impl Elsewhere {
    pub fn new(mirror: Option<&Arc<dyn LogMirror>>) -> Self {
        Self(mirror.cloned())
    }

    /// Whether there is no mirror.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// See [`LogMirror::grown`].
    #[inline]
    pub fn grown(&self) {
        if let Some(mirror) = &self.0 {
            mirror.grown();
        }
    }

    /// See [`LogMirror::landed`].
    #[inline]
    pub fn landed(&self) -> Lsn {
        self.0.as_ref().map_or(Lsn::MAX, |mirror| mirror.landed())
    }

    /// See [`LogMirror::durable`].
    pub fn durable(&self) -> Lsn {
        self.0.as_ref().map_or(Lsn::MAX, |mirror| mirror.durable())
    }

    /// See [`LogMirror::begin_sync`].
    pub fn begin_sync(&self, upto: Lsn) {
        if let Some(mirror) = &self.0 {
            mirror.begin_sync(upto);
        }
    }

    /// See [`LogMirror::sync`].
    pub fn sync(&self, upto: Lsn) -> Result<Lsn> {
        self.0
            .as_ref()
            .map_or(Ok(Lsn::MAX), |mirror| mirror.sync(upto))
    }
}
