//! The word that the table keeps for a page.

/// Most frames of a mapping: what the word has room for. 1 TiB of frames.
pub(crate) const FRAMES_MAX: usize = (1 << 28) - 1;

const FRAME: u32 = (1 << 28) - 1;
const WRITING: u32 = 1 << 28;
const DIRTY: u32 = 1 << 29;
const LOADING: u32 = 1 << 30;
const REFERENCED: u32 = 1 << 31;

/// What the table says about a page: 0 when it has no frame, else the number of the frame plus one and
/// flags. 32 bits and not 64: the table of a volume is half as large, in memory and in the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry(pub u32);

/// What the table says about a page, for those who do not read its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageState {
    /// It has no frame: its content is on the device.
    Absent,
    /// Somebody is reading it from the device.
    Loading,
    /// It has a frame that readers can use.
    Resident {
        /// Number of the frame.
        frame: u32,
        /// Whether it was read since the evictor last looked.
        referenced: bool,
        /// Whether the device does not have it yet.
        dirty: bool,
        /// Whether somebody is writing it to the device.
        writing: bool,
    },
}

impl Entry {
    pub const ABSENT: Self = Self(0);

    pub const fn loading(frame: u32) -> Self {
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

    /// To be and-ed into an entry that the evictor passed over.
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
            assert_eq!(Entry::clean(frame).resident(), Some(frame));
            assert_eq!(Entry::loading(frame).resident(), None);
            assert_eq!(Entry::loading(frame).state(), PageState::Loading);
            let busy = Entry::dirty(frame).with_writing().with_referenced();
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
                Entry(busy.0 & Entry::WRITTEN & Entry::NOT_REFERENCED),
                Entry::clean(frame)
            );
            assert_eq!(
                Entry(busy.0 & Entry::NOT_WRITTEN & Entry::NOT_REFERENCED),
                Entry::dirty(frame)
            );
        }
        assert_eq!(Entry::ABSENT.state(), PageState::Absent);
    }
}
