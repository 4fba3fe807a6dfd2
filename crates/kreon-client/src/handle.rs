//! What everything that users hold keeps open: the threads of a client, and where what lies.

use std::sync::Arc;

use kreon_wire::{GroupId, KeyRange as Held};

use crate::call::Kind;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::running::Running;
use crate::slot::Answer;

/// A handle of a running client; its threads end with the last one.
#[derive(Clone)]
pub(crate) struct Handle {
    running: Arc<Running>,
    /// Bytes of a page of a scan.
    pub(crate) page_bytes: u32,
}

impl Handle {
    pub(crate) fn new(running: Running, page_bytes: u32) -> Self {
        Self {
            running: Arc::new(running),
            page_bytes: page_bytes.max(1),
        }
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.running.driver
    }

    /// The ranges of a table with their groups, ascending, as far as is known.
    pub(crate) fn ranges(&self, table: &str) -> Vec<(GroupId, Held)> {
        let state = self.driver().state();
        let mut ranges: Vec<_> = state
            .groups()
            .flat_map(|config| config.ranges.iter().map(|range| (config.group, range)))
            .filter(|(_, range)| range.table == table)
            .map(|(group, range)| (group, range.clone()))
            .collect();
        drop(state);
        ranges.sort_by(|a, b| a.1.start.cmp(&b.1.start));
        ranges
    }

    /// What ends a call: that its table is gone, if nobody served it for that.
    pub(crate) fn why(&self, table: &str, error: Error) -> Error {
        let is_gone = error.kind() == ErrorKind::Unavailable && self.ranges(table).is_empty();
        if is_gone { no_table(table) } else { error }
    }

    /// The answer to a call, or what ended it.
    pub(crate) fn known(&self, table: &str, answer: Result<Answer>) -> Result<Answer> {
        answer.map_err(|error| self.why(table, error))
    }

    /// Waits for the answer to a call.
    pub(crate) fn answer(&self, kind: Kind, place: (&str, &[u8]), body: Vec<u8>) -> Result<Answer> {
        let answer = self.driver().call(kind, place, body);
        self.known(place.0, answer)
    }
}

pub(crate) fn no_table(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("no table {name:?}"))
}
