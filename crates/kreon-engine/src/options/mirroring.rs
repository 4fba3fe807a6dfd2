//! What a store is given that is one member of a group of identical volumes: its primary.

use std::fmt;
use std::sync::Arc;

use kreon_base::{Error, Incarnation, Result};
use kreon_device::Device;
use kreon_format::INCARNATION_MAX;
use kreon_log::LogMirror;

/// What the primary of a group is opened with. By default a store is alone: it counts its incarnations itself and writes to
/// one device.
#[derive(Clone, Default)]
pub struct Mirroring {
    /// The incarnation of this opening, 1 to 2^48 - 1: larger than that of the superblock, else the opening fails with
    /// `InvalidArgument` and writes nothing. `None`: that of the superblock and 1, or 1 for a new store.
    ///
    /// Two openings of copies of one volume must never get the same.
    pub incarnation: Option<Incarnation>,
    /// Takes the writes and flushes of the log. Pages, moved records, images, bitmaps, catalogue and superblock go to the
    /// device that the store is opened on, and are read there; both must hold the same bytes. `None`: that device takes
    /// the log, too.
    pub log_device: Option<Arc<dyn Device>>,
    /// Who else holds the log. With a mirror, nothing counts as durable that is not so with all counted members; segments
    /// of the log stay in memory until they have landed, and writers wait for that; and the log is written in blocks of
    /// 4096 bytes.
    ///
    /// A [`LogTap`](crate::LogTap), which reads the log for the mirror, does not keep the store open.
    pub log_mirror: Option<Arc<dyn LogMirror>>,
}

impl Mirroring {
    /// The incarnation of an opening of a store whose superblock is of `newest`; of a new store: `Incarnation(0)`.
    ///
    /// # Errors
    /// `InvalidArgument`: the one that was given is not larger, or larger than any can be.
    pub(crate) fn incarnation_after(&self, newest: Incarnation) -> Result<Incarnation> {
        let Some(given) = self.incarnation else {
            return Ok(Incarnation(newest.0 + 1));
        };
        if given <= newest {
            return Err(Error::invalid(format!(
                "{given} was given for this opening, but the store is of {newest} already: another opening of it, or of \
                 a copy, came before"
            )));
        }
        if given.0 > INCARNATION_MAX {
            return Err(Error::invalid(format!(
                "{given} was given for this opening, the largest is {INCARNATION_MAX}"
            )));
        }
        Ok(given)
    }

    /// Takes the writes of the log, of a store that is opened on `device`.
    pub(crate) fn log_device<'a>(&'a self, device: &'a Arc<dyn Device>) -> &'a Arc<dyn Device> {
        self.log_device.as_ref().unwrap_or(device)
    }

    /// Whether the store is the primary of a group, or opened as such.
    pub fn is_given(&self) -> bool {
        self.incarnation.is_some() || self.log_device.is_some() || self.log_mirror.is_some()
    }
}

impl fmt::Debug for Mirroring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mirroring")
            .field("incarnation", &self.incarnation)
            .field("log_device", &self.log_device.is_some())
            .field("log_mirror", &self.log_mirror.is_some())
            .finish()
    }
}
