//! Every interleaving of few threads on pins, entries and frames. `cargo xtask interleavings loom`.

use std::sync::Arc;

use kreon_base::PageNo;
use kreon_base::sync::{Mutex, Ordering::Relaxed, explore};
use kreon_device::Backing;
use loom::thread;

use super::*;

const A: PageNo = PageNo(0);
const B: PageNo = PageNo(1);

/// A volume of two pages over `frames` frames; the first frame holds page A, made of 1s.
fn space(frames: u32) -> (Arc<FrameSpace>, Vec<FreeFrame>) {
    let (space, free) =
        FrameSpace::new(frames, 2, false, Backing::Ahead).expect("memory for a few frames");
    let mut free: Vec<_> = free.collect();
    let mut first = free.remove(0);
    space.bytes_mut(&mut first).fill(1);
    space.publish_dirty(A, first).expect("absent");
    (Arc::new(space), free)
}

/// A thread with work on the space. What pins does so in one.
fn beside<R: 'static>(
    space: &Arc<FrameSpace>,
    work: impl FnOnce(&FrameSpace) -> R + 'static,
) -> thread::JoinHandle<R> {
    let space = Arc::clone(space);
    thread::spawn(move || {
        let result = work(&space);
        pins::end_thread();
        result
    })
}

/// Reads a page, if it is there, and checks that it is that page.
fn read(space: &FrameSpace, page: PageNo) {
    if let Some(pinned) = space.pin(page) {
        let expected = page.0 as u8 + 1;
        assert_eq!(pinned.bytes()[0], expected);
        // Still there when the reader is about to leave.
        assert_eq!(pinned.bytes()[4095], expected);
    }
}

/// Takes page A's frame away and, once nobody reads it, fills it for page B.
fn reuse(space: &FrameSpace) {
    let Some(retired) = space.retire(A) else {
        return;
    };
    let (free, _in_use) = space.settle(vec![retired]);
    for (mut frame, _) in free {
        space.bytes_mut(&mut frame).fill(2);
        space.publish_dirty(B, frame).expect("absent");
    }
}

#[test]
fn model_a_frame_is_not_reused_under_its_reader() {
    explore("pins: a reader, an evictor that reuses", Some(4), || {
        let (space, _) = space(1);
        let reader = beside(&space, |space| read(space, A));
        let evictor = beside(&space, reuse);
        evictor.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn model_marks_go_with_their_page() {
    explore(
        "marks: one who marks, an evictor that reuses",
        Some(4),
        || {
            let (space, _) = space(1);
            let reader = beside(&space, |space| {
                if let Some(pinned) = space.pin(A) {
                    pinned.marks().fetch_or(1, Relaxed);
                }
            });
            let evictor = beside(&space, reuse);
            evictor.join().unwrap();
            reader.join().unwrap();
            let later = beside(&space, |space| {
                if let Some(pinned) = space.pin(B) {
                    assert_eq!(pinned.marks().load(Relaxed), 0);
                }
            });
            later.join().unwrap();
        },
    );
}

#[test]
fn model_readers_of_both_pages_see_their_own() {
    explore("pins: readers of the old and the new page", Some(3), || {
        let (space, _) = space(1);
        let readers = [A, B].map(|page| beside(&space, move |space| read(space, page)));
        let evictor = beside(&space, reuse);
        evictor.join().unwrap();
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn model_a_copy_through_the_spare_slot_is_of_the_page() {
    explore(
        "pins: a copy by the spare slot, an evictor",
        Some(4),
        || {
            let (space, _) = space(1);
            let reader = beside(&space, |space| {
                if let Some(copy) = space.copy(A) {
                    assert_eq!(*copy, [1; 4096]);
                }
            });
            let evictor = beside(&space, reuse);
            evictor.join().unwrap();
            reader.join().unwrap();
        },
    );
}

#[test]
fn model_a_page_is_not_retired_while_it_is_written() {
    explore(
        "entry: a writeback, an evictor that reuses",
        Some(4),
        || {
            let (space, _) = space(1);
            let writer = beside(&space, |space| {
                if let Some(writing) = space.begin_write(A) {
                    assert_eq!(*writing.bytes(), [1; 4096]);
                    writing.finish(true);
                }
            });
            let evictor = beside(&space, reuse);
            evictor.join().unwrap();
            writer.join().unwrap();
        },
    );
}

#[test]
fn model_a_load_is_published_once_or_cancelled() {
    explore("entry: a load, a discard, a reader", Some(2), || {
        let (space, mut free) = space(2);
        let mut frame = free.remove(0);
        let reader = beside(&space, |space| read(space, B));
        let loader = beside(&space, |space| {
            assert!(space.begin_load(B, &frame));
            space.bytes_mut(&mut frame).fill(2);
            match space.end_load(B, frame) {
                Ok(pinned) => assert_eq!(pinned.expect("a cell").bytes()[0], 2),
                // Cancelled: it is ours alone, so it can be filled with anything.
                Err(mut frame) => space.bytes_mut(&mut frame).fill(9),
            }
        });
        let discarder = beside(&space, |space| {
            let retired = match space.cancel_load(B) {
                true => return true,
                false => space.retire(B),
            };
            let was_there = retired.is_some();
            let (free, _) = space.settle(retired.into_iter().collect());
            for (mut frame, _) in free {
                space.bytes_mut(&mut frame).fill(9);
            }
            was_there
        });
        reader.join().unwrap();
        loader.join().unwrap();
        let is_gone = discarder.join().unwrap();
        assert_eq!(is_gone, space.state(B) == PageState::Absent);
    });
}

/// A frame is filled in place under a lock, by one thread after the other, and published by the last of them. Who finds
/// the lock empty finds the page.
#[test]
fn model_an_open_frame_becomes_the_page_that_its_last_owner_filled() {
    explore("entry: an open frame, a writer, a reader", Some(3), || {
        let (space, mut free) = space(2);
        let mut frame = free.remove(0);
        space.bytes_mut(&mut frame).fill(9);
        let open = Arc::new(Mutex::new(Some(frame)));
        let writer = {
            let open = Arc::clone(&open);
            beside(&space, move |space| {
                let mut open = open.lock();
                let mut frame = open.take().expect("nobody else takes it");
                space.bytes_mut(&mut frame).fill(2);
                space.publish_dirty(B, frame).expect("absent");
            })
        };
        let reader = beside(&space, move |space| {
            if let Some(frame) = &*open.lock() {
                assert_eq!(space.bytes(frame)[0], 9);
                return;
            }
            assert_eq!(space.pin(B).expect("published").bytes()[0], 2);
        });
        // One who does not know of the lock sees the page, or nothing.
        read(&space, B);
        reader.join().unwrap();
        writer.join().unwrap();
        pins::end_thread();
    });
}

#[test]
fn model_a_slot_passes_from_an_ended_thread_to_a_new_one() {
    explore(
        "pins: two threads, one perhaps in the slot of the other",
        Some(2),
        || {
            let (space, _) = space(1);
            let first = beside(&space, |space| read(space, A));
            let second = beside(&space, |space| read(space, A));
            let evictor = beside(&space, reuse);
            evictor.join().unwrap();
            first.join().unwrap();
            second.join().unwrap();
        },
    );
}
