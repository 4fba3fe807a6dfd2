//! The well by itself: tokens and entries under threads, with no locks around them. Small enough for
//! Miri: `cargo +nightly miri test -p kreon-mapping well`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use kreon_base::{PageBytes, PageNo};
use kreon_device::Backing;
use std::sync::Mutex;

use super::*;

const PAGES: u64 = 3;
const ROUNDS: usize = if cfg!(miri) { 10 } else { 5000 };

fn intact(page: PageNo, bytes: &PageBytes) -> bool {
    let [first, .., last] = bytes;
    first == last && *first == bytes[2048] && u64::from(*first) % PAGES == page.0
}

/// Fills a frame with a number that belongs to the page.
fn fill(space: &FrameSpace, page: PageNo, frame: &mut FreeFrame, round: usize) {
    let number = (round as u64 % 80 * PAGES + page.0) as u8;
    space.bytes_mut(frame).fill(number);
}

/// Readers of all pages until told to stop.
fn read(space: &FrameSpace, stop: &AtomicBool) {
    let mut page = 0;
    while !stop.load(Relaxed) {
        page = (page + 1) % PAGES;
        if let Some(outer) = space.pin(PageNo(page)) {
            assert!(intact(PageNo(page), outer.bytes()));
            let other = PageNo((page + 1) % PAGES);
            if let Some(inner) = space.pin(other) {
                assert!(intact(other, inner.bytes()));
            }
            assert!(intact(PageNo(page), outer.bytes()));
        }
        if let Some(copy) = space.copy(PageNo(page)) {
            assert!(intact(PageNo(page), &copy));
        }
        thread::yield_now();
    }
}

/// Publishes, writes, retires and reuses frames of one page.
fn churn(space: &FrameSpace, page: PageNo, free: &Mutex<Vec<FreeFrame>>, round: usize) {
    let limbo = match free.lock().expect("no panic").pop() {
        None => Vec::new(),
        Some(mut frame) => {
            if round.is_multiple_of(2) {
                assert!(space.begin_load(page, &frame));
                fill(space, page, &mut frame, round);
                let pinned = space.end_load(page, frame).expect("not cancelled");
                assert!(pinned.is_some_and(|pinned| intact(page, pinned.bytes())));
            } else {
                fill(space, page, &mut frame, round);
                space.publish_dirty(page, frame).expect("absent");
                let writing = space.begin_write(page).expect("dirty");
                assert!(space.retire(page).is_none());
                assert!(intact(page, writing.bytes()));
                writing.finish(round.is_multiple_of(3));
            }
            space.clear_referenced(page);
            thread::yield_now();
            space.retire(page).into_iter().collect()
        }
    };
    let mut limbo = limbo;
    while !limbo.is_empty() {
        let (settled, used) = space.settle(limbo);
        limbo = used;
        free.lock()
            .expect("no panic")
            .extend(settled.into_iter().map(|(frame, _)| frame));
        thread::yield_now();
    }
}

#[test]
fn frames_are_never_reused_under_a_reader() {
    let (space, frames) = FrameSpace::new(4, PAGES, false, Backing::Ahead).unwrap();
    let free = Mutex::new(frames.collect::<Vec<_>>());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| read(&space, &stop));
        }
        let churners: Vec<_> = (0..PAGES)
            .map(|page| {
                let (space, free) = (&space, &free);
                scope.spawn(move || (0..ROUNDS).for_each(|i| churn(space, PageNo(page), free, i)))
            })
            .collect();
        for churner in churners {
            churner.join().unwrap();
        }
        stop.store(true, Relaxed);
    });
    assert_eq!(free.lock().expect("no panic").len(), 4);
}

#[test]
fn a_cancelled_load_keeps_its_frame_and_cannot_publish() {
    let (space, mut frames) = FrameSpace::new(2, PAGES, false, Backing::Ahead).unwrap();
    let (first, second) = (frames.next().unwrap(), frames.next().unwrap());
    let page = PageNo(1);
    assert!(space.begin_load(page, &first));
    assert!(!space.begin_load(page, &second));
    assert_eq!(space.state(page), PageState::Loading);
    assert!(space.pin(page).is_none());
    assert!(space.retire(page).is_none());
    assert!(space.cancel_load(page));
    // Another load of the page begins: the first must not be taken for it.
    assert!(space.begin_load(page, &second));
    let first = space.end_load(page, first).err().unwrap();
    assert!(!space.abandon_load(page, &first));
    assert!(space.end_load(page, second).is_ok());
    assert!(!space.cancel_load(page));
    assert!(space.publish_dirty(page, first).is_err());
}

#[test]
fn a_retired_frame_is_free_only_after_its_readers() {
    let (space, frames) = FrameSpace::new(2, PAGES, false, Backing::Ahead).unwrap();
    for (page, frame) in (0..).map(PageNo).zip(frames) {
        space.publish_dirty(page, frame).unwrap();
    }
    let pinned = space.pin(PageNo(0)).unwrap();
    assert!(space.is_pinned(&space.pins(), 0) || space.is_pinned(&space.pins(), 1));
    let retired = (0..2)
        .filter_map(|page| space.retire(PageNo(page)))
        .collect();
    let (free, used) = space.settle(retired);
    assert_eq!(free.iter().map(|(_, page)| page.0).collect::<Vec<_>>(), [1]);
    assert_eq!(
        used.iter().map(|frame| frame.page.0).collect::<Vec<_>>(),
        [0]
    );
    let (free, used) = space.settle(used);
    assert!(free.is_empty());
    drop(pinned);
    let (free, used) = space.settle(used);
    assert_eq!((free.len(), used.len()), (1, 0));
}
