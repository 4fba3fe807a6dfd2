//! Segments on standby: taken of the volume while it has room, and used where nothing else is left.
//!
//! An opening begins a log of its own: a segment that takes records, and the one that its header names. It takes over what the log
//! before it had named and never wrote, one segment at the least, so it needs one more than the store had that crashed. Deletions
//! may have filled the volume to its last segment by then; so the store has for its next openings what nothing else can take:
//!
//! - One segment always. An opening that has used it gets it back: when it has committed, every segment of the log before that holds
//!   nothing but deletions is free.
//! - A second one while the log of this opening holds values: the segment that the values end in does not become free.
//! - A third one for collection, whose copies need a segment before those of its victims are free. So a volume without any free
//!   segment is collected all the same.
//!
//! New data is refused while there are fewer than three; deletions are not. Commits fill them up, before they record what is in use: a
//! crash loses none. So an opening finds at least as many as the store had, and needs no segment that its replay would take for
//! nodes. The bitmap has them as segments of a log of their own, [`STANDBY`], which nobody writes or reads.

use kreon_base::{Result, SegmentId};
use kreon_format::MOVED_SEQUENCE_MIN;
use kreon_sync::{
    AtomicBool, Mutex,
    Ordering::{Acquire, Release},
};
use kreon_volume::{Allocator, Purpose};

use super::home::{STANDBY, out_of_space};

/// So many are enough for new data.
const WHOLE: usize = 3;

/// The segments on standby. The lock of the allocator is taken under that of these.
#[derive(Default)]
pub(super) struct Standby {
    held: Mutex<Held>,
    /// New data is taken, and known to be: for a look without the lock.
    takes_values: AtomicBool,
}

#[derive(Default)]
struct Held {
    segments: Vec<SegmentId>,
    /// The log of this opening may hold values.
    has_values: bool,
}

impl Held {
    /// Those that stay for openings.
    fn for_openings(&self) -> usize {
        1 + usize::from(self.has_values)
    }
}

impl Standby {
    /// Those that the last commit of an earlier opening has recorded.
    pub(super) fn recorded(allocator: &Allocator) -> Self {
        let found = allocator.log_segments(STANDBY).into_iter();
        let held = Held {
            segments: found.map(|(segment, _)| segment).collect(),
            has_values: false,
        };
        Self {
            held: Mutex::new(held),
            takes_values: AtomicBool::new(false),
        }
    }

    /// Whether there are enough for new data.
    pub(super) fn is_whole(&self) -> bool {
        self.held.lock().segments.len() >= WHOLE
    }

    /// New data is about to be appended.
    ///
    /// # Errors
    /// `OutOfSpace` if there are too few.
    #[inline]
    pub(super) fn allow_values(&self) -> Result<()> {
        match self.takes_values.load(Acquire) {
            true => Ok(()),
            false => self.begin_values(),
        }
    }

    fn begin_values(&self) -> Result<()> {
        let mut held = self.held.lock();
        if held.segments.len() < WHOLE {
            return Err(out_of_space("new data"));
        }
        held.has_values = true;
        self.takes_values.store(true, Release);
        Ok(())
    }

    /// Takes as many of the volume as are missing and can be had, before a commit records them. All but the first one only while
    /// the volume has room for new data: collection and deletions need what is left more.
    pub(super) fn fill(&self, allocator: &Mutex<Allocator>) {
        let mut held = self.held.lock();
        while held.segments.len() < WHOLE {
            let purpose = match held.segments.is_empty() {
                true => Purpose::Maintenance,
                false => Purpose::Put,
            };
            // Its number says that it is not of the log of writes, and nothing else.
            let taken = allocator
                .lock()
                .allocate_log_segment(STANDBY, MOVED_SEQUENCE_MIN, purpose);
            // Without room new data is refused, and the next commit tries again.
            let Ok(segment) = taken else { return };
            held.segments.push(segment);
        }
    }

    /// One for an opening.
    pub(super) fn take_for_opening(&self) -> Option<SegmentId> {
        self.held.lock().segments.pop()
    }

    /// One for collection, unless openings may need all.
    pub(super) fn take_for_collection(&self) -> Option<SegmentId> {
        let mut held = self.held.lock();
        if held.segments.len() <= held.for_openings() {
            return None;
        }
        self.takes_values.store(false, Release);
        held.segments.pop()
    }
}
