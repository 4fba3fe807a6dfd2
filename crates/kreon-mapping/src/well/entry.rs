//! The entry that the page array has for a page.

/// Most frames of a mapping: what the word has room for. 1 TiB of frames.
pub(crate) const FRAMES_MAX: usize = (1 << 28) - 1;

const FRAME: u32 = (1 << 28) - 1;
const WRITING: u32 = 1 << 28;
const DIRTY: u32 = 1 << 29;
const LOADING: u32 = 1 << 30;
const REFERENCED: u32 = 1 << 31;

/// The state of a page: 0 if it has no frame, else the number of the frame plus one, and flags. 32 bits and not 64: the
/// array is half as large, in memory and in the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageEntry(pub u32);

/// The state of a page, for code that does not read its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageState {
    /// It has no frame: its content is on the device.
    Absent,
    /// It is being read from the device.
    Loading,
    /// It has a frame that readers can use.
    Resident {
        /// Number of the frame.
        frame: u32,
        /// Whether it was read since the last hunt that visited it.
        referenced: bool,
        /// Whether the device does not have it yet.
        dirty: bool,
        /// Whether it is being written to the device.
        writing: bool,
    },
}

impl PageEntry {
    pub const ABSENT: Self = Self(0);

    pub const fn loading(frame: u32) -> Self {
        debug_assert!((frame as usize) < FRAMES_MAX);
        Self(LOADING | (frame + 1))
    }

    pub const fn clean(frame: u32) -> Self {
        Self(frame + 1)
    }

    pub const fn dirty(frame: u32) -> Self {
        Self(DIRTY | (frame + 1))
    }

    /// The frame that readers of the page can use, if there is one.
    pub const fn resident(self) -> Option<u32> {
        match (self.0 & FRAME).checked_sub(1) {
            Some(frame) if self.0 & LOADING == 0 => Some(frame),
            _ => None,
        }
    }

    pub const fn is_loading(self) -> bool {
        self.0 & LOADING != 0
    }

    pub const fn is_writing(self) -> bool {
        self.0 & WRITING != 0
    }

    pub const fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }

    pub const fn is_referenced(self) -> bool {
        self.0 & REFERENCED != 0
    }

    pub const fn with_referenced(self) -> Self {
        Self(self.0 | REFERENCED)
    }

    pub const fn with_writing(self) -> Self {
        Self(self.0 | WRITING)
    }

    /// To be and-ed into an entry whose bytes arrived on the device.
    pub const WRITTEN: u32 = !(WRITING | DIRTY);

    /// To be and-ed into an entry whose write failed: it stays dirty.
    pub const NOT_WRITTEN: u32 = !WRITING;

    /// To be and-ed into an entry whose second chance is spent.
    pub const NOT_REFERENCED: u32 = !REFERENCED;

    pub const fn state(self) -> PageState {
        if self.is_loading() {
            return PageState::Loading;
        }
        match self.resident() {
            None => PageState::Absent,
            Some(frame) => PageState::Resident {
                frame,
                referenced: self.is_referenced(),
                dirty: self.is_dirty(),
                writing: self.is_writing(),
            },
        }
    }
}

const _: () = assert!(FRAME & (WRITING | DIRTY | LOADING | REFERENCED) == 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_tells_what_was_put_in() {
        for frame in [0, 1, 77, FRAMES_MAX as u32 - 1] {
            assert_eq!(PageEntry::clean(frame).resident(), Some(frame));
            assert_eq!(PageEntry::loading(frame).resident(), None);
            assert_eq!(PageEntry::loading(frame).state(), PageState::Loading);
            let busy = PageEntry::dirty(frame).with_writing().with_referenced();
            assert_eq!(
                busy.state(),
                PageState::Resident {
                    frame,
                    referenced: true,
                    dirty: true,
                    writing: true
                }
            );
            assert_eq!(
                PageEntry(busy.0 & PageEntry::WRITTEN & PageEntry::NOT_REFERENCED),
                PageEntry::clean(frame)
            );
            assert_eq!(
                PageEntry(busy.0 & PageEntry::NOT_WRITTEN & PageEntry::NOT_REFERENCED),
                PageEntry::dirty(frame)
            );
        }
        assert_eq!(PageEntry::ABSENT.state(), PageState::Absent);
    }
}
