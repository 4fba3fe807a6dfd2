//! What a store tells of its own work: events for a listener of the program. Subscribers of `tracing` get the same, with spans.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use kreon_base::Error;

/// Something that happened in an open store. `took` is wall time.
///
/// Every `..Began` is followed by its `..Ended`, which has the error if the work failed. Spills, images and rounds of
/// collection come one after the other; two merges may be under way at once, of other trees.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A spill began: a full L0 goes into the levels.
    SpillBegan {
        /// Entries in L0.
        entries: u64,
    },
    /// A spill ended, and what it wrote is durable.
    SpillEnded {
        /// Tree pages that were taken apart.
        pages_read: u64,
        /// Tree pages that were written.
        pages_written: u64,
        /// From its beginning.
        took: Duration,
        /// Why it failed. After `OutOfSpace` it is tried again; any other failure stops all writing.
        error: Option<Error>,
    },
    /// A merge of adjacent levels of a region began.
    MergeBegan {
        /// The region's name.
        region: Arc<str>,
        /// The upper level, 1 for L1.
        level: u8,
        /// Number of levels that become one.
        levels: usize,
        /// Bytes of their pages.
        bytes: u64,
    },
    /// A merge ended.
    MergeEnded {
        /// The region's name.
        region: Arc<str>,
        /// The upper level, 1 for L1.
        level: u8,
        /// Tree pages that were taken apart. Here and in `pages_written` 0 if the levels changed meanwhile and stay as they
        /// are.
        pages_read: u64,
        /// Tree pages that were written.
        pages_written: u64,
        /// From its beginning.
        took: Duration,
        /// Why it failed: it is tried again. `Closed`: the region was dropped, or the store closed.
        error: Option<Error>,
    },
    /// A round of garbage collection of the log ended.
    CollectionEnded {
        /// Log segments whose live records were to be moved.
        segments: u64,
        /// Records that were moved.
        records_moved: u64,
        /// Bytes of the log that they take.
        bytes_copied: u64,
        /// From its beginning.
        took: Duration,
        /// Why it failed: it is tried again.
        error: Option<Error>,
    },
    /// A checkpoint is durable: one at the end of each spill, merge and image, and for other changes.
    Checkpointed {
        /// Its epoch.
        epoch: u64,
        /// With the flushes.
        took: Duration,
    },
    /// An image of L0 is durable, which the next opening loads.
    ImageTaken {
        /// Bytes that it wrote.
        bytes: u64,
        /// From its beginning.
        took: Duration,
    },
    /// Writers wait, or sleep at each write.
    StallBegan {
        /// What for.
        reason: Stall,
    },
    /// No writer waits any more for this reason.
    StallEnded {
        /// What they waited for.
        reason: Stall,
        /// From the first that waited to the last.
        took: Duration,
    },
    /// The store takes no more writes until it is reopened.
    Poisoned {
        /// The first failure.
        cause: Error,
    },
}

/// Why writers wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stall {
    /// Both L0s are full: writers wait for the end of a spill.
    FullL0,
    /// Dead space is to be collected before there is more of it: each write sleeps for a time in proportion to its bytes. Over
    /// when none has slept for a second; told with the next write.
    ScarceSpace,
    /// The volume is full: the writer collects garbage itself before it fails with `OutOfSpace`.
    FullVolume,
}

/// The listener of a store; none by default.
#[derive(Clone, Default)]
pub struct Events(Option<Arc<Listener>>);

type Listener = dyn Fn(&Event) + Send + Sync;

impl Events {
    /// With `listener`.
    pub fn of(listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Tells the listener, and `tracing`. A panic of the listener is logged and goes no further.
    pub(crate) fn tell(&self, event: &Event) {
        trace(event);
        if let Some(listener) = &self.0
            && catch_unwind(AssertUnwindSafe(|| listener(event))).is_err()
        {
            tracing::error!(?event, "the listener of a store panicked");
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listener = self.0.as_ref().map(|_| "..");
        f.debug_tuple("Events").field(&listener).finish()
    }
}

/// Failures are logged where they happen.
fn trace(event: &Event) {
    let us = |took: &Duration| took.as_micros() as u64;
    match event {
        Event::SpillBegan { entries } => tracing::debug!(entries, "a spill began"),
        Event::SpillEnded {
            pages_read,
            pages_written,
            took,
            error: None,
        } => tracing::debug!(
            pages_read,
            pages_written,
            took_us = us(took),
            "a spill ended"
        ),
        Event::MergeBegan {
            region,
            level,
            levels,
            bytes,
        } => tracing::debug!(%region, level, levels, bytes, "a merge began"),
        Event::MergeEnded {
            region,
            level,
            pages_read,
            pages_written,
            took,
            error: None,
        } => tracing::debug!(
            %region, level, pages_read, pages_written, took_us = us(took), "a merge ended"
        ),
        Event::CollectionEnded {
            segments,
            records_moved,
            bytes_copied,
            took,
            error: None,
        } => tracing::debug!(
            segments,
            records_moved,
            bytes_copied,
            took_us = us(took),
            "garbage was collected"
        ),
        Event::Checkpointed { epoch, took } => {
            tracing::debug!(epoch, took_us = us(took), "a checkpoint is durable");
        }
        Event::ImageTaken { bytes, took } => {
            tracing::debug!(bytes, took_us = us(took), "an image of L0 was taken");
        }
        Event::StallBegan { reason } => tracing::info!(?reason, "writers wait"),
        Event::StallEnded { reason, took } => {
            tracing::info!(?reason, took_us = us(took), "writers go on");
        }
        Event::SpillEnded { .. }
        | Event::MergeEnded { .. }
        | Event::CollectionEnded { .. }
        | Event::Poisoned { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_listener_that_panics_is_told_the_next_event_all_the_same() {
        let told = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&told);
        let events = Events::of(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            panic!("a listener's own fault");
        });
        for _ in 0..2 {
            events.tell(&Event::SpillBegan { entries: 1 });
        }
        assert_eq!(told.load(Ordering::Relaxed), 2);
    }
}
