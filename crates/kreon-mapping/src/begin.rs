//! Beginning to load pages for a task.

use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;

use kreon_base::{PAGE_BYTES, PageBytes, PageNo, Priority, Result, wake};

use crate::background::{BackgroundReads, Cargo, Wanted};
use crate::drive;
use crate::load::{Begin, Load};
use crate::mapping::Mapping;
use crate::ticket::Ticket;
use crate::well::PageState;

/// A [`check`](crate::PageRequest::check) that outlives its maker.
pub type PageCheck = Arc<dyn Fn(&PageBytes) -> Result<()> + Send + Sync>;

/// Most reads that a thread that drives them itself gathers before it hands them to the device.
const GATHERED_READS_MAX: usize = 16;

/// Consecutive pages that a task wants.
#[derive(Clone)]
pub struct PagesWanted {
    /// The first.
    pub first: PageNo,
    /// How many.
    pub count: u32,
    /// Eviction priority of those that have to be loaded.
    pub priority: Priority,
    /// As in [`PageRequest`](crate::PageRequest); `None`: any bytes will do.
    pub check: Option<PageCheck>,
}

/// How [`Mapping::begin`] went.
#[derive(Debug)]
pub enum Begun {
    /// All is resident, or was a moment ago.
    Ready,
    /// The waker will be called; the outcome is in the ticket, if there is one.
    Pending(Option<Ticket>),
    /// There is no way to load them in the background just now.
    Refused,
}

impl PagesWanted {
    fn pages(&self) -> impl Iterator<Item = PageNo> + use<> {
        let first = self.first.0;
        (first..first + u64::from(self.count)).map(PageNo)
    }
}

impl Mapping {
    /// Begins to load those of the pages that are absent, neighbours as one read, and has `waker` called
    /// when they are resident, or another task's or thread's load of one of them has ended. Does not wait for
    /// the device, but where a dirty page must be written to get a frame.
    ///
    /// # Errors
    /// `InvalidArgument` if the volume cannot have the pages.
    pub fn begin(self: &Arc<Self>, wanted: &PagesWanted, waker: &Waker) -> Result<Begun> {
        let first = wanted.first.0;
        self.begin_pages(wanted, first..first + u64::from(wanted.count), waker)
    }

    /// The same, where only the pages `needed` are asked for: errors of the others are nothing to the task.
    pub(crate) fn begin_pages(
        self: &Arc<Self>,
        wanted: &PagesWanted,
        needed: Range<u64>,
        waker: &Waker,
    ) -> Result<Begun> {
        wanted.pages().try_for_each(|page| self.check_page(page))?;
        let Some(reads) = self.background() else {
            return Ok(Begun::Refused);
        };
        let (mut absent, mut elsewhere) = (Vec::new(), None);
        for page in wanted.pages() {
            match self.pages.space.state(page) {
                PageState::Absent => absent.push(page),
                PageState::Loading => elsewhere = Some(page),
                PageState::Resident { .. } => {}
            }
        }
        if absent.is_empty() {
            return Ok(elsewhere.map_or(Begun::Ready, |page| self.wait_for(page, waker)));
        }
        if reads.is_full() && reads.wait_for_room(waker) {
            return Ok(Begun::Pending(None));
        }
        self.counters.misses.add(wanted.priority, 1);
        let Some(loads) = self.begin_loads(&absent, wanted.priority) else {
            return Ok(Begun::Refused);
        };
        if loads.is_empty() {
            // Others were quicker.
            return Ok(absent
                .first()
                .map_or(Begun::Ready, |page| self.wait_for(*page, waker)));
        }
        let ticket = Ticket::new(waker);
        let is_begun = self.take_off(reads, (wanted, &needed), loads, &ticket);
        Ok(self.see_off(reads, is_begun, ticket, waker))
    }

    /// All that belongs to the ticket is in flight, unless nothing is.
    pub(crate) fn see_off(
        self: &Arc<Self>,
        reads: &BackgroundReads,
        is_begun: bool,
        ticket: Ticket,
        waker: &Waker,
    ) -> Begun {
        let ended = ticket.close();
        if !is_begun {
            return match reads.wait_for_room(waker) {
                true => Begun::Pending(None),
                false => Begun::Refused,
            };
        }
        self.hand_over(reads);
        // What has ended before the ticket was closed has woken nobody.
        ended.into_iter().for_each(wake);
        Begun::Pending(Some(ticket))
    }

    /// Waits for the load of another.
    fn wait_for(&self, page: PageNo, waker: &Waker) -> Begun {
        let is_loading = || self.pages.space.state(page) == PageState::Loading;
        match self.waiters.wait(page, waker, is_loading) {
            true => Begun::Pending(None),
            false => Begun::Ready,
        }
    }

    /// Marks the pages as being loaded, those left out that others load. `None` if there are not enough
    /// frames, or no room in the table.
    fn begin_loads(&self, pages: &[PageNo], priority: Priority) -> Option<Vec<Load<'_>>> {
        let mut frames = self.take_frames(pages.len());
        let mut loads = Vec::with_capacity(pages.len());
        let mut is_refused = frames.len() < pages.len();
        for page in pages {
            if is_refused {
                break;
            }
            let frame = frames.pop()?;
            match self.begin_load_making_room(*page, priority, frame) {
                Begin::Begun(load) => loads.push(load),
                Begin::NotAbsent(frame) => frames.push(frame),
                Begin::NoRoom(frame) => {
                    frames.push(frame);
                    is_refused = true;
                }
            }
        }
        for frame in frames {
            self.pool.put(frame);
        }
        (!is_refused).then_some(loads)
    }

    /// Puts the loads in flight, neighbours together; whether at least one is.
    fn take_off(
        &self,
        reads: &BackgroundReads,
        (wanted, needed): (&PagesWanted, &Range<u64>),
        mut loads: Vec<Load<'_>>,
        ticket: &Ticket,
    ) -> bool {
        let mut is_begun = false;
        while let Some(first) = loads.first().map(Load::page) {
            let run = loads
                .iter()
                .zip(first.0..)
                .take_while(|(load, page)| load.page().0 == *page)
                .count();
            let frames = loads.drain(..run).filter_map(Load::suspend).collect();
            let what = Wanted::Pages {
                first,
                priority: wanted.priority,
                check: wanted.check.clone(),
                needed: needed.clone(),
            };
            let stub = ticket.stub();
            let begun = reads.flights.begin(
                &self.pages.space,
                first.offset_bytes(),
                run * PAGE_BYTES,
                frames,
                Cargo { what, stub },
            );
            match begun {
                Ok(()) => is_begun = true,
                Err((frames, cargo)) => {
                    for (page, frame) in (first.0..).map(PageNo).zip(frames) {
                        drop(Load::resume(self, page, wanted.priority, frame));
                    }
                    // The task looks again when the others have ended.
                    drop(cargo.stub.end(Ok(())));
                }
            }
        }
        is_begun
    }

    /// Sees to it that what is in flight gets to the device and back.
    fn hand_over(self: &Arc<Self>, reads: &BackgroundReads) {
        let queue = reads.flights.queue();
        if !drive::is_driving(self) || queue.waiting() >= GATHERED_READS_MAX {
            queue.submit();
        }
        reads.reactor.rouse();
    }
}
