//! From fragment to fragment over the durable part of an open log, as a replay goes.

use std::sync::Arc;

use kreon_base::{Error, Incarnation, Lsn, Result};
use kreon_format::{LogResume, incarnation_mark};

use super::window::{Loaded, Window};
use crate::log::Log;

/// A position in the log, at the start of a fragment.
pub(super) struct Cursor {
    pub log: Arc<Log>,
    pub position: Lsn,
    /// The run that wrote what stands here.
    incarnation: Incarnation,
    /// Where the next run took over, if one did.
    next: Option<LogResume>,
    window: Window,
}

impl Cursor {
    /// At `position`, the start of a fragment.
    pub fn new(log: &Arc<Log>, position: Lsn) -> Self {
        let mut cursor = Self {
            log: Arc::clone(log),
            position,
            incarnation: Incarnation(0),
            next: None,
            window: Window::new(),
        };
        cursor.go_to(position);
        cursor
    }

    /// Goes to `position`, the start of a fragment.
    pub fn go_to(&mut self, position: Lsn) {
        let (incarnation, ahead) = self.log.runs_from(position);
        (self.incarnation, self.next) = (incarnation, ahead.first().copied());
        self.position = position;
        self.window.clear();
    }

    /// Passes over the bytes between the end of a run and the start of the next, if it is there; whether it was.
    pub fn take_over(&mut self) -> bool {
        let mut has_taken = false;
        while let Some(next) = self.next.filter(|next| next.end == self.position) {
            self.position = next.resume;
            let (incarnation, ahead) = self.log.runs_from(next.resume);
            (self.incarnation, self.next) = (incarnation, ahead.first().copied());
            has_taken = true;
        }
        has_taken
    }

    /// The fragment here, and the step over it; `None` if it does not end at or before `until`. What does not verify is read
    /// again, once: the device may have read it wrong.
    ///
    /// # Errors
    /// `NotFound`: the segment is not kept any more. `Corruption`, `Io`.
    pub fn step(&mut self, until: Lsn) -> Result<Option<Loaded>> {
        if self.position >= until {
            return Ok(None);
        }
        let (log, at, mark) = (&self.log, self.position, incarnation_mark(self.incarnation));
        let first = self.window.load(log, at, until, mark);
        let loaded = first.or_else(|_| {
            self.window.clear();
            self.window.load(log, at, until, mark)
        });
        let Some(loaded) = loaded? else {
            return Ok(None);
        };
        let end = Lsn(at.0 + u64::from(loaded.extent));
        if self.next.is_some_and(|next| end > next.end) {
            return Err(Error::corruption(format!(
                "a record over the end of its run at {}",
                loaded.offset
            )));
        }
        self.position = end;
        Ok(Some(loaded))
    }

    /// What follows the header of the record's fragment that was stepped over.
    pub fn payload(&self, loaded: &Loaded) -> &[u8] {
        self.window.payload(loaded)
    }
}
