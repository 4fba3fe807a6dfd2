//! A power cut at one point of a history.

use std::collections::{HashMap, HashSet};

use crate::history::{Event, History};
use crate::image::Image;
use crate::pending::{Pending, PendingWrite};
use crate::survival::Survival;

/// A power cut after some events of a [`History`]: what is durable by then, and what may or may not
/// have arrived besides.
///
/// The model: a sector of 512 bytes holds one of the contents written to it since the last one that
/// is durable, or that one; each sector independently of all others. A write is durable when it ended
/// before a flush began and that flush ended. Discards and growths are writes, too.
#[derive(Clone)]
pub struct Crash<'a> {
    history: &'a History,
    events: usize,
    durable: Image,
    pending: Pending,
    /// Ended, and in no failed flush: what the next flush will speak for.
    ended: HashSet<u64>,
    /// What each flush that has not ended speaks for.
    flushes: HashMap<u64, HashSet<u64>>,
}

impl<'a> Crash<'a> {
    /// A power cut before the first event.
    pub(crate) fn new(history: &'a History) -> Self {
        Self {
            history,
            events: 0,
            durable: history.start.clone(),
            pending: Pending::default(),
            ended: HashSet::new(),
            flushes: HashMap::new(),
        }
    }

    /// Number of events before the cut.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Moves the cut behind the next event; `false` if there is none.
    pub fn advance(&mut self) -> bool {
        let Some(event) = self.history.events.get(self.events) else {
            return false;
        };
        self.events += 1;
        match event {
            Event::WriteBegan {
                write,
                offset,
                content,
            } => self.pending.write(*write, *offset, content.clone()),
            Event::WriteEnded { write } => {
                self.ended.insert(*write);
            }
            Event::Grown { write, len_bytes } => {
                self.pending.grow(*write, *len_bytes);
                self.ended.insert(*write);
            }
            Event::FlushBegan { flush } => {
                self.flushes.insert(*flush, self.ended.clone());
            }
            Event::FlushEnded { flush } => {
                let covered = self.flushes.remove(flush).unwrap_or_default();
                self.pending.settle(&covered, &mut self.durable);
                self.ended.retain(|write| !covered.contains(write));
            }
            Event::FlushFailed { flush } => {
                let doubtful = self.flushes.remove(flush).unwrap_or_default();
                self.ended.retain(|write| !doubtful.contains(write));
            }
        }
        true
    }

    /// What the device holds when the power is back, if of the pending writes that survives which
    /// `survival` chooses. Costs a clone of the durable image, and the pending sectors.
    pub fn image(&self, survival: &mut dyn Survival) -> Image {
        let mut image = self.durable.clone();
        self.pending.survive(survival, &mut image);
        image
    }

    /// The writes that may or may not have arrived, in the order in which they began.
    pub fn pending(&self) -> Vec<PendingWrite> {
        self.pending.list()
    }

    /// The sectors whose content is open, in order, each with the number of contents it may have: the
    /// product of these numbers is the number of crash states here (times those of the length).
    pub fn choices(&self) -> Vec<(u64, usize)> {
        self.pending.choices()
    }
}
