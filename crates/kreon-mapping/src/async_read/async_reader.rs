//! The entry to asynchronous reads. The queue of the device and the reactor's thread are made with the first of them.

use std::sync::{OnceLock, Weak};
use std::task::Waker;
use std::time::Duration;

use kreon_base::{Priority, Result};

use super::begin::{begin_pages, begin_record};
use super::drive::drive;
use super::in_flight::InFlight;
use super::land::land;
use super::reactor::{Reactor, Rounds};
use super::request::{Begun, PagesWanted};
use crate::read::{FinalBytes, PageReader, is_kept_alone, widened};
use crate::well::Flights;

/// How long [`AsyncReader::quiesce`] sleeps at a time.
const QUIESCE_PATIENCE: Duration = Duration::from_millis(10);

/// How often the reactor looks after reads that other threads drive.
const LOOK_AFTER: Duration = Duration::from_millis(1);

/// How long the reactor stays in the queue when nothing is in flight: a task that reads one page after the other need
/// not wake it by a call each time.
const LINGER: Duration = Duration::from_millis(5);

/// How long the reactor waits for several reads to end, to wake their tasks together.
const GATHER: Duration = Duration::from_micros(100);

/// The share of the reads in flight that the reactor waits for.
const GATHER_SHARE: usize = 4;

/// A reader, and the reads of tasks through it.
pub(crate) struct AsyncReader {
    /// Made with the first read; `None` where the device has no queue. Declared before `reader`, so that it is dropped
    /// first: its drop waits for the reads in flight while there are still frames.
    in_flight: OnceLock<Option<InFlight>>,
    reader: PageReader,
}

impl AsyncReader {
    pub(crate) fn new(reader: PageReader) -> Self {
        Self {
            in_flight: OnceLock::new(),
            reader,
        }
    }

    /// For reads that wait in the call.
    #[inline]
    pub(crate) fn reader(&self) -> &PageReader {
        &self.reader
    }

    /// The reads in flight, started if need be with a reactor for `owner`. `None` if the system has no queue or thread
    /// for them, or pages are read through `mmap`.
    fn start(&self, owner: impl FnOnce() -> Weak<dyn Rounds>) -> Option<&InFlight> {
        let in_flight = self.in_flight.get_or_init(|| {
            if self.reader.mapped.is_some() {
                return None;
            }
            let queue = self.reader.device.read_queue()?;
            let reactor = Reactor::start(owner())?;
            // SAFETY: it is a part of `in_flight`, which is dropped before `reader`, and `reader` owns the space whose
            // frames it is given.
            let flights = unsafe { Flights::new(queue) };
            Some(InFlight::new(flights, reactor))
        });
        in_flight
            .as_ref()
            .filter(|in_flight| !in_flight.queue().is_broken())
    }

    /// Begins to load pages. [`Mapping::begin`](crate::Mapping::begin) has the details.
    ///
    /// # Errors
    /// `InvalidArgument` if the volume cannot have the pages.
    pub(crate) fn begin(
        &self,
        owner: impl FnOnce() -> Weak<dyn Rounds>,
        wanted: &PagesWanted,
        waker: &Waker,
    ) -> Result<Begun> {
        let first = wanted.first.0;
        let needed = first..first + u64::from(wanted.count);
        begin_pages(&self.reader, self.start(owner), wanted, needed, waker)
    }

    /// Begins to read bytes of the log: as a record if that is to be kept alone, else by their pages.
    ///
    /// # Errors
    /// `InvalidArgument` if the volume cannot have them.
    pub(crate) fn begin_bytes(
        &self,
        owner: impl FnOnce() -> Weak<dyn Rounds>,
        bytes: &FinalBytes,
        priority: Priority,
        waker: &Waker,
    ) -> Result<Begun> {
        let reader = &self.reader;
        reader
            .table()
            .check_range(bytes.offset_bytes, bytes.len_bytes)?;
        if let Some(records) = is_kept_alone(reader, bytes) {
            let in_flight = self.start(owner);
            return Ok(begin_record(
                reader, in_flight, records, bytes, priority, waker,
            ));
        }
        let (first, count) = widened(reader, bytes);
        let wanted = PagesWanted {
            first,
            count,
            priority,
            check: None,
        };
        let (first, count) = bytes.pages();
        let needed = first.0..first.0 + u64::from(count);
        begin_pages(reader, self.start(owner), &wanted, needed, waker)
    }

    /// Runs a future in this thread, which takes the completions of its reads.
    pub(crate) fn drive<F: Future>(
        &self,
        owner: impl FnOnce() -> Weak<dyn Rounds>,
        future: F,
    ) -> F::Output {
        drive(&self.reader, self.start(owner), future)
    }

    /// Waits for all reads in flight and wakes the tasks that wait for them.
    pub(crate) fn quiesce(&self) {
        let Some(in_flight) = self.started() else {
            return;
        };
        while in_flight.queue().in_flight() > 0 {
            in_flight.queue().wait(1, QUIESCE_PATIENCE);
            land(&self.reader, in_flight);
        }
    }

    fn started(&self) -> Option<&InFlight> {
        self.in_flight.get().and_then(Option::as_ref)
    }
}

impl Rounds for AsyncReader {
    fn is_in_flight(&self) -> bool {
        let started = self.started();
        started.is_some_and(|in_flight| in_flight.queue().in_flight() > 0)
    }

    /// `gathers`: the last round brought something, so that it pays to wait for several reads.
    fn round(&self, gathers: &mut bool) -> bool {
        let Some(in_flight) = self.started() else {
            return false;
        };
        let queue = in_flight.queue();
        let count = queue.in_flight();
        if in_flight.has_drivers() {
            std::thread::sleep(LOOK_AFTER);
            queue.submit();
        } else if *gathers && count > GATHER_SHARE {
            queue.wait(count / GATHER_SHARE, GATHER);
        } else {
            queue.wait(1, LINGER);
        }
        *gathers = land(&self.reader, in_flight);
        count > 0 || queue.in_flight() > 0
    }
}
