//! Everything that was done to a device, in order.

use std::sync::Arc;

use crate::crash::Crash;
use crate::image::Image;

/// What a write wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// So many zeroes: a discard.
    Zeroes(u64),
}

impl Content {
    /// Length in bytes.
    pub fn len_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeroes(len_bytes) => *len_bytes,
        }
    }
}

/// One thing that happened. A power cut may come between any two events.
///
/// Writes, discards and growths share one row of numbers (`write`), from 0 in the order in which
/// they began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// From here on parts of it may be on the device.
    WriteBegan {
        /// Its number.
        write: u64,
        /// Where it goes, in bytes.
        offset: u64,
        /// What it writes.
        content: Content,
    },
    /// It was reported as done. A write that failed never ends.
    WriteEnded {
        /// Its number.
        write: u64,
    },
    /// The device became longer.
    Grown {
        /// Its number.
        write: u64,
        /// The new length.
        len_bytes: u64,
    },
    /// A flush was called: it speaks for the writes that have ended before.
    FlushBegan {
        /// Its number, from 0.
        flush: u64,
    },
    /// What ended before it began is durable.
    FlushEnded {
        /// Its number.
        flush: u64,
    },
    /// What ended before it began is in doubt for ever: the operating system may have dropped it, and
    /// no later flush brings it back.
    FlushFailed {
        /// Its number.
        flush: u64,
    },
}

/// What a device held at first, and all that was done to it since.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What it held at first; all of it durable.
    pub start: Image,
    /// What was done.
    pub events: Vec<Event>,
}

impl History {
    /// A power cut after all events.
    pub fn crash(&self) -> Crash<'_> {
        self.crash_after(self.events.len())
    }

    /// A power cut after the first `events` events. Costs a walk over these; to visit many cuts in
    /// turn, [`advance`](Crash::advance) one.
    pub fn crash_after(&self, events: usize) -> Crash<'_> {
        let mut crash = Crash::new(self);
        while crash.events() < events && crash.advance() {}
        crash
    }
}
