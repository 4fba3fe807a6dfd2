//! The durable units of an open log in their order, for whoever follows it.
//!
//! A *border* is a position where no unit is under way: a feed may begin there. Which positions are borders only the log itself
//! tells, so a position that is handed in is looked for from a border before it on; that reads a segment at the most, but
//! for units that are longer.
//!
//! - `window`: a part of a segment, read in large pieces
//! - `cursor`: from fragment to fragment, over the seams between the runs of the store
//! - `durable`: what a log knows of its runs and of its durable end
//! - `borders`: the oldest border, the last one, and whether a position is one

mod borders;
mod cursor;
mod durable;
mod window;

use std::sync::Arc;

use kreon_base::{Error, Lsn, Result};

pub use self::borders::{Borders, not_kept};
use self::cursor::Cursor;
use super::log::Log;
use super::replay::{Found, ReplayRecord, Units};

/// Reads units, straight from the device: what readers have in memory stays there. Takes the memory of one segment, and that
/// of the unit that is read.
pub struct LogFeed {
    cursor: Cursor,
    units: Units,
    /// Behind the last unit.
    border: Lsn,
}

impl LogFeed {
    /// From `border` on.
    fn new(log: &Arc<Log>, border: Lsn) -> Self {
        Self {
            cursor: Cursor::new(log, border),
            units: Units::new(usize::MAX),
            border,
        }
    }

    /// Behind the last unit that was read.
    pub fn position(&self) -> Lsn {
        self.border
    }

    /// Hands the records of the next unit to `visit` and returns `true`, if there is one that ends at or before `until`, before
    /// which everything is durable. After an error the same unit is next.
    ///
    /// # Errors
    /// `NotFound`: the log does not keep it any more. `Corruption`, `Io`, those of `visit`.
    pub fn next(
        &mut self,
        until: Lsn,
        visit: &mut impl FnMut(ReplayRecord<'_>) -> Result<()>,
    ) -> Result<bool> {
        let read = self.read(until, visit);
        if read.is_err() {
            self.units = Units::new(usize::MAX);
            self.cursor.go_to(self.border);
        }
        read
    }

    fn read(
        &mut self,
        until: Lsn,
        visit: &mut impl FnMut(ReplayRecord<'_>) -> Result<()>,
    ) -> Result<bool> {
        loop {
            if self.units.incomplete().is_none() {
                self.cursor.take_over();
                if self.cursor.position <= until {
                    self.border = self.cursor.position;
                }
            }
            let Some(step) = self.cursor.step(until)? else {
                return Ok(false);
            };
            let wrong = |what: &str| Err(Error::corruption(format!("{what} at {}", step.offset)));
            let Some(header) = step.header else {
                match self.units.is_in_record() {
                    true => return wrong("filler in a record"),
                    false => continue,
                }
            };
            let found = Found {
                lsn: step.lsn,
                offset: step.offset,
                header,
                payload: self.cursor.payload(&step),
                fills_segment: step.fills_segment,
            };
            if let Err(what) = self.units.add(&found, visit)? {
                return wrong(what);
            }
            if self.units.incomplete().is_none() {
                self.border = self.cursor.position;
                return Ok(true);
            }
        }
    }
}
