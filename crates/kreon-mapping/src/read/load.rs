//! One page on its way from the device into a frame.
//!
//! While a page is being loaded, other readers of it wait for that load. A load that is dropped without success leaves
//! the page absent.

use kreon_base::{PageBytes, PageNo, Priority};

use crate::evict::Frames;
use crate::table::{LoadStart, PageTable};
use crate::well::{FreeFrame, Pinned};

/// The load of a page.
pub(crate) struct Load<'a> {
    table: &'a PageTable,
    page: PageNo,
    priority: Priority,
    /// There until the page is published.
    frame: Option<FreeFrame>,
}

/// How [`Load::begin`] went.
pub(crate) enum Begin<'a> {
    /// The caller is to read the page.
    Begun(Load<'a>),
    /// The page is resident or being loaded by another.
    NotAbsent(FreeFrame),
    /// The page array has no room for the page.
    NoRoom(FreeFrame),
}

/// Marks an absent page as being loaded into `frame`, and makes room in the page array for it if need be.
pub(crate) fn begin_load(
    frames: &Frames,
    page: PageNo,
    priority: Priority,
    frame: FreeFrame,
) -> Begin<'_> {
    match Load::begin(frames.table(), page, priority, frame) {
        Begin::NoRoom(frame) if frames.make_table_room() => {
            Load::begin(frames.table(), page, priority, frame)
        }
        begin => begin,
    }
}

impl<'a> Load<'a> {
    /// Marks an absent page as being loaded into `frame`.
    pub(super) fn begin(
        table: &'a PageTable,
        page: PageNo,
        priority: Priority,
        frame: FreeFrame,
    ) -> Begin<'a> {
        match table.lock(page).begin_load(page, &frame) {
            LoadStart::Begun => Begin::Begun(Self::resume(table, page, priority, frame)),
            LoadStart::NotAbsent => Begin::NotAbsent(frame),
            LoadStart::NoRoom => Begin::NoRoom(frame),
        }
    }

    /// Goes on with a load whose frame was [taken out](Self::suspend) and filled.
    pub(crate) fn resume(
        table: &'a PageTable,
        page: PageNo,
        priority: Priority,
        frame: FreeFrame,
    ) -> Self {
        Self {
            table,
            page,
            priority,
            frame: Some(frame),
        }
    }

    /// Takes the frame out; the page stays marked. [Resume](Self::resume) with the frame.
    pub(crate) fn suspend(mut self) -> Option<FreeFrame> {
        self.frame.take()
    }

    pub(crate) fn page(&self) -> PageNo {
        self.page
    }

    /// Whether the page was neither discarded nor made fresh meanwhile.
    pub(crate) fn is_wanted(&self) -> bool {
        let frame = self.frame.as_ref();
        frame.is_some_and(|frame| self.table.space().is_loading(self.page, frame))
    }

    /// The frame, to be filled by the device.
    pub(crate) fn bytes_mut(&mut self) -> Option<&mut PageBytes> {
        let space = self.table.space();
        self.frame.as_mut().map(|frame| space.bytes_mut(frame))
    }

    /// The bytes that the device put there.
    pub(crate) fn bytes(&self) -> Option<&PageBytes> {
        let space = self.table.space();
        self.frame.as_ref().map(|frame| space.bytes(frame))
    }

    /// Publishes the page, pinned if the thread had a pin left. The caller then wakes the tasks that wait for it. The
    /// load comes back if the page was discarded or made fresh meanwhile: its bytes are those that the device had, and
    /// remain private.
    pub(crate) fn end(mut self) -> Result<Option<Pinned<'a>>, Self> {
        let Some(frame) = self.frame.take() else {
            return Ok(None);
        };
        let mut locked = self.table.lock(self.page);
        locked
            .end_load(self.page, self.priority, frame)
            .map_err(|frame| {
                drop(locked);
                self.frame = Some(frame);
                self
            })
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        if let Some(frame) = self.frame.take() {
            self.table.lock(self.page).abandon_load(self.page, &frame);
            self.table.pool().put(frame);
            self.table.waiters().wake(self.page);
        }
    }
}
