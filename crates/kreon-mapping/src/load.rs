//! Bringing one page from the device into a frame.

use kreon_base::{Error, PAGE_BYTES, PageBytes, PageNo, Priority, Result};
use kreon_device::AlignedBuf;

use crate::mapping::Mapping;
use crate::options::PageRequest;
use crate::well::{FreeFrame, PageState, Pinned};

/// A page on its way from the device into a frame. Others who want the page wait for this one.
/// Dropped without success, it leaves the page absent.
pub(crate) struct Load<'a> {
    mapping: &'a Mapping,
    page: PageNo,
    priority: Priority,
    /// There until the page is published.
    frame: Option<FreeFrame>,
}

/// How [`Mapping::begin_load`] went.
pub(crate) enum Begin<'a> {
    /// The caller is to read the page.
    Begun(Load<'a>),
    /// The page is resident or being loaded by another.
    NotAbsent(FreeFrame),
    /// The table has no room for the page.
    NoRoom(FreeFrame),
}

/// How [`Load::end`] went.
pub(crate) enum End<'a> {
    /// The page is resident, and pinned if the thread had a cell left.
    Published(Option<Pinned<'a>>),
    /// The page was discarded or made fresh meanwhile. The bytes are what the device had; nobody else
    /// gets to see them.
    Cancelled(Load<'a>),
}

impl<'a> Load<'a> {
    /// Goes on with a load whose frame was away, filled without anybody waiting.
    pub(crate) fn resume(
        mapping: &'a Mapping,
        page: PageNo,
        priority: Priority,
        frame: FreeFrame,
    ) -> Self {
        Self {
            mapping,
            page,
            priority,
            frame: Some(frame),
        }
    }

    /// Sends the frame away, to be [resumed](Self::resume) with.
    pub(crate) fn suspend(mut self) -> Option<FreeFrame> {
        self.frame.take()
    }

    pub(crate) fn page(&self) -> PageNo {
        self.page
    }

    /// Whether the page was neither discarded nor made fresh meanwhile.
    pub(crate) fn is_wanted(&self) -> bool {
        let space = &self.mapping.pages.space;
        let frame = self.frame.as_ref();
        frame.is_some_and(|frame| space.is_loading(self.page, frame))
    }

    /// Where the device is to put the page.
    pub(crate) fn bytes_mut(&mut self) -> Option<&mut PageBytes> {
        let space = &self.mapping.pages.space;
        self.frame.as_mut().map(|frame| space.bytes_mut(frame))
    }

    /// What the device put there.
    pub(crate) fn bytes(&self) -> Option<&PageBytes> {
        let space = &self.mapping.pages.space;
        self.frame.as_ref().map(|frame| space.bytes(frame))
    }

    /// Publishes the page. The caller then wakes the tasks that wait for it.
    pub(crate) fn end(mut self) -> End<'a> {
        let Some(frame) = self.frame.take() else {
            return End::Published(None);
        };
        let mut locked = self.mapping.pages.lock(self.page);
        match locked.end_load(self.page, self.priority, frame) {
            Ok(pinned) => End::Published(pinned),
            Err(frame) => {
                drop(locked);
                self.frame = Some(frame);
                End::Cancelled(self)
            }
        }
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        if let Some(frame) = self.frame.take() {
            let mut locked = self.mapping.pages.lock(self.page);
            self.mapping.pages.space.abandon_load(self.page, &frame);
            locked.detach(self.page);
            locked.changed();
            drop(locked);
            self.mapping.pool.put(frame);
            self.mapping.waiters.wake(self.page);
        }
    }
}

impl Mapping {
    /// Marks an absent page as being loaded into `frame`.
    pub(crate) fn begin_load(
        &self,
        page: PageNo,
        priority: Priority,
        frame: FreeFrame,
    ) -> Begin<'_> {
        let mut locked = self.pages.lock(page);
        if self.pages.space.state(page) != PageState::Absent {
            return Begin::NotAbsent(frame);
        }
        if !locked.attach(page) {
            return Begin::NoRoom(frame);
        }
        if !self.pages.space.begin_load(page, &frame) {
            locked.detach(page);
            return Begin::NotAbsent(frame);
        }
        Begin::Begun(Load {
            mapping: self,
            page,
            priority,
            frame: Some(frame),
        })
    }

    /// Waits while somebody is loading the page. How that ends, the caller must look.
    pub(crate) fn wait_loaded(&self, page: PageNo) {
        if self.pages.space.state(page) == PageState::Loading {
            let mut locked = self.pages.lock(page);
            while self.pages.space.state(page) == PageState::Loading {
                locked.wait();
            }
        }
    }

    /// Serves a page that was not found resident: loads it, or waits for who is loading it, or reads
    /// it past the frames if there is none to be had.
    #[cold]
    pub(crate) fn read_missing<R>(
        &self,
        request: PageRequest<'_>,
        use_page: impl FnOnce(&PageBytes) -> R,
    ) -> Result<R> {
        let page = request.page;
        self.check_page(page)?;
        if let Some(mapped) = &self.mapped {
            return self.read_mapped(mapped, request, use_page);
        }
        self.counters.misses.add(request.priority, 1);
        loop {
            self.wait_loaded(page);
            if let Some(pinned) = self.pages.space.pin(page) {
                return Ok(use_page(pinned.bytes()));
            }
            // Resident and yet not to be pinned: the thread has no cell left.
            if let Some(copy) = self.pages.space.copy(page) {
                return Ok(use_page(&copy));
            }
            let Some(frame) = self.take_frame() else {
                return self.read_past(request, use_page);
            };
            match self.begin_load(page, request.priority, frame) {
                Begin::Begun(mut load) => {
                    self.fill(&mut load, request)?;
                    let ended = load.end();
                    self.waiters.wake(page);
                    match ended {
                        End::Published(Some(pinned)) => return Ok(use_page(pinned.bytes())),
                        End::Published(None) => {}
                        End::Cancelled(load) => {
                            if let Some(bytes) = load.bytes() {
                                return Ok(use_page(bytes));
                            }
                        }
                    }
                }
                Begin::NotAbsent(frame) => self.pool.put(frame),
                Begin::NoRoom(frame) => {
                    self.pool.put(frame);
                    if !self.make_table_room() {
                        return self.read_past(request, use_page);
                    }
                }
            }
        }
    }

    /// Lends the page if it is resident; never waits. The priority is that of a request for it.
    pub fn read_resident<R>(
        &self,
        page: PageNo,
        priority: Priority,
        use_page: impl FnOnce(&PageBytes) -> R,
    ) -> Option<R> {
        if let Some(pinned) = self.pages.space.pin(page) {
            self.counters.hits.add(pinned.thread(), priority);
            return Some(use_page(pinned.bytes()));
        }
        self.pages.space.copy(page).map(|copy| use_page(&copy))
    }

    /// Reads the page of a load and checks it.
    fn fill(&self, load: &mut Load<'_>, request: PageRequest<'_>) -> Result<()> {
        if let Some(bytes) = load.bytes_mut() {
            self.device
                .read_at(request.page.offset_bytes(), bytes.as_mut_slice())?;
            self.counters.pages_read.add(1);
            (request.check)(bytes)?;
        }
        Ok(())
    }

    /// Reads a page into memory of its own.
    pub(crate) fn read_past<R>(
        &self,
        request: PageRequest<'_>,
        use_page: impl FnOnce(&PageBytes) -> R,
    ) -> Result<R> {
        let mut buffer = AlignedBuf::new(PAGE_BYTES);
        let bytes = whole_page(&mut buffer)?;
        self.device
            .read_at(request.page.offset_bytes(), bytes.as_mut_slice())?;
        self.counters.pages_read.add(1);
        self.counters.pages_read_past.add(1);
        (request.check)(bytes)?;
        Ok(use_page(bytes))
    }
}

/// The bytes of a buffer that was made for one page.
fn whole_page(buffer: &mut AlignedBuf) -> Result<&mut PageBytes> {
    buffer
        .first_chunk_mut()
        .ok_or_else(|| Error::invalid("a buffer for a page is shorter than a page"))
}
