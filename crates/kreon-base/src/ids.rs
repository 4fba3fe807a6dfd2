//! A newtype for each kind of number, so that two kinds never mix.

use crate::{PAGE_BYTES, SEGMENT_BYTES, SEGMENT_PAGES};

/// Makes a newtype of a number that is shown with its label.
#[doc(hidden)]
#[macro_export]
macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $label:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, concat!($label, " {}"), self.0)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(self, f)
            }
        }
    };
}

id!(
    /// Number of a page on the volume: its byte offset divided by [`PAGE_BYTES`].
    PageNo(u64), "page"
);
id!(
    /// Number of a segment on the volume: its byte offset divided by [`SEGMENT_BYTES`].
    SegmentId(u32), "segment"
);
id!(
    /// Byte offset on the volume where a record starts. Garbage collection changes it when it moves the record.
    LogOffset(u64), "log offset"
);
id!(
    /// Position of a record in the log's endless stream of payload bytes, and so the order of writes: one reservation
    /// yields both place and order.
    Lsn(u64), "lsn"
);
id!(
    /// Number of a durable state; each checkpoint adds one.
    Epoch(u64), "epoch"
);
id!(
    /// Number of openings of a store for writing. Log segments carry it, so that replay never takes records that an
    /// earlier opening left behind a torn tail for a continuation of the log.
    Incarnation(u64), "incarnation"
);
id!(
    /// Number of a region, not reused after the region is dropped.
    RegionId(u32), "region"
);
id!(
    /// Number of a log: 0 is the main log, 1 the log of moved records.
    LogId(u16), "log"
);
id!(
    /// Eviction priority of a page in the mapping: the higher, the sooner it is evicted
    /// (`Kreon 3.3.1`).
    Priority(u8), "priority"
);

impl PageNo {
    /// Byte offset of the page on the volume.
    pub const fn offset_bytes(self) -> u64 {
        self.0 * PAGE_BYTES as u64
    }

    /// The segment that holds the page; the last one there could be, if its number is too high for any.
    pub const fn segment(self) -> SegmentId {
        SegmentId::nearest(self.0 / SEGMENT_PAGES)
    }

    /// The page that holds the byte at `offset_bytes`.
    pub const fn containing(offset_bytes: u64) -> Self {
        Self(offset_bytes / PAGE_BYTES as u64)
    }
}

impl SegmentId {
    /// The segment of this number; no damaged pointer becomes that of another segment, for lack of bits.
    const fn nearest(number: u64) -> Self {
        match number > u32::MAX as u64 {
            true => Self(u32::MAX),
            false => Self(number as u32),
        }
    }

    /// Byte offset of the segment on the volume.
    pub const fn offset_bytes(self) -> u64 {
        self.0 as u64 * SEGMENT_BYTES
    }

    /// First page of the segment.
    pub const fn first_page(self) -> PageNo {
        PageNo(self.0 as u64 * SEGMENT_PAGES)
    }
}

impl LogOffset {
    /// The segment that holds the byte at this offset; the last one there could be, if its number is too high for any.
    pub const fn segment(self) -> SegmentId {
        SegmentId::nearest(self.0 / SEGMENT_BYTES)
    }

    /// Byte offset inside the segment.
    pub const fn within_segment(self) -> u32 {
        (self.0 % SEGMENT_BYTES) as u32
    }
}

impl Lsn {
    /// An LSN above that of every write.
    pub const MAX: Self = Self(u64::MAX);
}

impl Epoch {
    /// The epoch of the next checkpoint.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_beyond_all_segments_is_in_none_that_there_is() {
        for number in [u64::from(u32::MAX), 1 << 32, (1 << 32) + 7] {
            assert_eq!(
                PageNo(number * SEGMENT_PAGES).segment(),
                SegmentId(u32::MAX)
            );
            assert_eq!(
                LogOffset(number * SEGMENT_BYTES).segment(),
                SegmentId(u32::MAX)
            );
        }
        assert_eq!(PageNo(7 * SEGMENT_PAGES + 1).segment(), SegmentId(7));
    }
}
