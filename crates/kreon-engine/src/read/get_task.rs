//! Asynchronous gets: each poll searches as far as pages are in memory, then begins to load the missing ones.
//!
//! It holds no page, no frame and no view between two polls, so that a task that is never polled again keeps
//! nothing from being reused: what is in flight belongs to the mapping. A poll begins anew, but for the place of
//! a value in the log, which is good as long as the view is the same.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Poll, Waker};

use kreon_base::{PageNo, Result};
use kreon_mapping::{Begun, FinalBytes, PagesWanted, Ticket};

use super::Reader;
use super::get::{Found, Once, find_in_levels};
use super::scan_source::Located;
use crate::level::ResidentNodes;
use crate::level::View;
use crate::level::log_source::LOG_PRIORITY;
use crate::level::view::ViewSequence;
use crate::regions::RegionState;
use crate::visibility::{OpenSnapshot, ReadPoint};
use kreon_log::TakeValue;

/// After so many loads whose pages were evicted before the next poll, a poll waits for the device, so that the get ends.
const LOADS_MAX: u32 = 12;

/// Longest record whose pages are loaded in the background; longer ones are read past the frames.
const RECORD_BYTES_MAX: usize = 64 << 10;

/// An asynchronous get: polled until it has the value.
pub struct GetTask {
    reader: Arc<Reader>,
    region: Arc<RegionState>,
    snapshot: Option<Arc<OpenSnapshot>>,
    /// Of what was begun.
    ticket: Option<Ticket>,
    /// Where the value was found, and the view in which it is there.
    place: Option<(Located, ViewSequence)>,
    /// The leaf that was begun to be loaded because its filter let the key pass.
    passed: Cell<Option<PageNo>>,
    loads: u32,
}

/// How far a poll got.
enum Attempt<R> {
    Done(Option<R>),
    /// Pages are missing that were begun to be loaded, or not.
    Missing(Begun),
}

impl GetTask {
    /// Of a region, now or at a snapshot.
    pub fn new(
        reader: &Arc<Reader>,
        region: &Arc<RegionState>,
        snapshot: Option<&Arc<OpenSnapshot>>,
    ) -> Self {
        Self {
            reader: Arc::clone(reader),
            region: Arc::clone(region),
            snapshot: snapshot.map(Arc::clone),
            ticket: None,
            place: None,
            passed: Cell::new(None),
            loads: 0,
        }
    }

    /// Goes on. `key` is the same each time; `take` gets the value at the end if there is one.
    ///
    /// # Errors
    /// As those of a get.
    pub fn poll<T: TakeValue>(
        &mut self,
        key: &[u8],
        waker: &Waker,
        take: T,
    ) -> Poll<Result<Option<T::Taken>>> {
        self.reader.storage.lifecycle.check_home()?;
        let mut show = Once::new(take);
        loop {
            match self.ticket.as_ref().map(|ticket| ticket.poll(waker)) {
                Some(Poll::Pending) => return Poll::Pending,
                Some(Poll::Ready(Err(error))) => {
                    self.ticket = None;
                    return Poll::Ready(Err(error));
                }
                Some(Poll::Ready(Ok(()))) | None => self.ticket = None,
            }
            if self.loads >= LOADS_MAX {
                return Poll::Ready(self.wait(key, show));
            }
            match self.attempt(key, waker, &mut show) {
                Err(error) => return Poll::Ready(Err(error)),
                Ok(Attempt::Done(shown)) => return Poll::Ready(Ok(shown)),
                Ok(Attempt::Missing(Begun::Ready)) => self.loads += 1,
                Ok(Attempt::Missing(Begun::Refused)) => return Poll::Ready(self.wait(key, show)),
                Ok(Attempt::Missing(Begun::Pending(ticket))) => {
                    self.loads += u32::from(ticket.is_some());
                    self.ticket = ticket;
                    return Poll::Pending;
                }
            }
        }
    }

    fn at(&self) -> ReadPoint<'_> {
        let snapshot = self.snapshot.as_ref();
        snapshot.map_or_else(|| self.reader.now(), |open| open.point())
    }

    /// The same as a get that waits.
    #[cold]
    fn wait<T: TakeValue>(&self, key: &[u8], take: Once<T>) -> Result<Option<T::Taken>> {
        match take.take {
            Some(take) => self.reader.get_value(&self.region, key, self.at(), take),
            None => Ok(None),
        }
    }

    /// Goes as far as what is in memory leads, and begins to load what is missing there. The view is held
    /// for that, too: until they are marked as being loaded, nothing but a view keeps pages from being
    /// discarded and used for something else, and what came from before would stay in their place.
    fn attempt<T: TakeValue>(
        &mut self,
        key: &[u8],
        waker: &Waker,
        show: &mut Once<T>,
    ) -> Result<Attempt<T::Taken>> {
        let (reader, region) = (&*self.reader, &*self.region);
        let view = reader.view_of(region)?;
        let mapping = &reader.storage.mapping;
        let located = match self.place.take() {
            Some((located, sequence)) if sequence == view.sequence() => located,
            _ => match self.find_resident(&view, key, show)? {
                Search::Missing(wanted) => {
                    return mapping.begin(&wanted, waker).map(Attempt::Missing);
                }
                Search::Ended(None | Some(Found::Deleted)) => return Ok(Attempt::Done(None)),
                Search::Ended(Some(Found::Shown(shown))) => return Ok(Attempt::Done(shown)),
                Search::Ended(Some(Found::Located(located))) => located,
            },
        };
        if let Some(wanted) = reader.missing_value(key, &located) {
            self.place = Some((located, view.sequence()));
            return mapping
                .begin_bytes(&wanted, LOG_PRIORITY, waker)
                .map(Attempt::Missing);
        }
        let shown = reader.show_once(region, key, &located, &reader.storage.log_pages(), show)?;
        Ok(Attempt::Done(shown))
    }
}

enum Search<R> {
    Ended(Option<Found<R>>),
    Missing(PagesWanted),
}

impl GetTask {
    /// Looks as far as nodes are resident.
    fn find_resident<T: TakeValue>(
        &self,
        view: &View,
        key: &[u8],
        show: &mut Once<T>,
    ) -> Result<Search<T::Taken>> {
        let (reader, region, at) = (&*self.reader, &*self.region, self.at());
        if let Some(found) = reader.find_in_l0s(view, region, key, at, show) {
            return Ok(Search::Ended(Some(found)));
        }
        let missing = Cell::new(None);
        let nodes_of = |level| ResidentNodes {
            nodes: reader.storage.nodes_for_gets(region.id, level),
            missing: &missing,
            passed: &self.passed,
        };
        let found = find_in_levels(view, region, key, at, nodes_of, show);
        match missing.take() {
            Some(wanted) => Ok(Search::Missing(wanted)),
            None => found.map(Search::Ended),
        }
    }
}

impl Reader {
    /// The bytes of a logged value that must be read before it can be shown without waiting.
    fn missing_value(&self, key: &[u8], located: &Located) -> Option<FinalBytes> {
        let (offset, payload_bytes) = located.record(key)?;
        let bytes = self.storage.log.reader().on_device(offset, payload_bytes)?;
        let (offset, len) = (bytes.offset_bytes, bytes.len_bytes);
        (len <= RECORD_BYTES_MAX && !self.storage.mapping.has_bytes(offset, len)).then_some(bytes)
    }
}
