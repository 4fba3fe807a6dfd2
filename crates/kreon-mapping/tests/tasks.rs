//! Loads that nobody waits for in a call, over a device whose reads end when the test says so.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

use common::any;
use common::slow::{Slow, State, VOLUME_BYTES, held};
use kreon_base::{Error, ErrorKind, PageNo, Priority};
use kreon_mapping::{Begun, FinalBytes, Mapping, MappingOptions, PagesWanted, Ticket};

fn mapping() -> (Arc<State>, Arc<Mapping>) {
    let state = Arc::new(State::default());
    state.depth.store(64, SeqCst);
    let mut options = MappingOptions::new(1 << 20, VOLUME_BYTES);
    options.shards = 4;
    let mapping = Mapping::new(Arc::new(Slow(Arc::clone(&state))), options).unwrap();
    (state, Arc::new(mapping))
}

/// A waker that counts.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn waker() -> (Arc<Calls>, Waker) {
    let calls = Arc::new(Calls::default());
    (Arc::clone(&calls), Waker::from(calls))
}

fn wanted(first: u64, count: u32) -> PagesWanted {
    PagesWanted {
        first: PageNo(first),
        count,
        priority: Priority(255),
        check: None,
    }
}

fn begin(mapping: &Arc<Mapping>, wanted: &PagesWanted, waker: &Waker) -> Option<Ticket> {
    match mapping.begin(wanted, waker).unwrap() {
        Begun::Pending(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn until(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(20), "it never came");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn neighbours_are_one_read_and_all_who_want_a_page_share_it() {
    let (state, mapping) = mapping();
    let (calls, waker1) = waker();
    let (others, waker2) = waker();
    let ticket = begin(&mapping, &wanted(10, 3), &waker1).unwrap();
    assert!(begin(&mapping, &wanted(11, 1), &waker2).is_none());
    // A waker is kept once.
    assert!(begin(&mapping, &wanted(11, 1), &waker2).is_none());
    assert_eq!(state.reads.load(SeqCst), 1);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| common::version(&mapping, 12));
        assert!(ticket.poll(&waker1).is_pending());
        state.released.store(1, SeqCst);
        assert_eq!(reader.join().unwrap().unwrap(), 0);
    });
    until(|| calls.0.load(SeqCst) == 1 && others.0.load(SeqCst) == 1);
    assert!(matches!(ticket.poll(&waker1), Poll::Ready(Ok(()))));
    assert!((10..13).all(|page| mapping.is_resident(PageNo(page))));
    assert_eq!(state.blocking_reads.load(SeqCst), 0);
    let again = mapping.begin(&wanted(10, 3), &waker1).unwrap();
    assert!(matches!(again, Begun::Ready));
}

#[test]
fn what_comes_short_or_fails_is_read_again_and_its_error_told_to_who_began_it() {
    let (state, mapping) = mapping();
    let (calls, waker) = waker();
    state.is_short.store(true, SeqCst);
    *state.bad.lock().unwrap() = Some(21);
    let good = begin(&mapping, &wanted(10, 1), &waker).unwrap();
    let bad = begin(&mapping, &wanted(20, 2), &waker).unwrap();
    state.released.store(2, SeqCst);
    until(|| calls.0.load(SeqCst) == 2);
    assert!(matches!(good.poll(&waker), Poll::Ready(Ok(()))));
    let Poll::Ready(Err(error)) = bad.poll(&waker) else {
        panic!("no error");
    };
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(mapping.is_resident(PageNo(10)) && mapping.is_resident(PageNo(20)));
    assert!(!mapping.is_resident(PageNo(21)));
    *state.bad.lock().unwrap() = None;
    assert_eq!(common::version(&mapping, 21).unwrap(), 0);
}

#[test]
fn a_record_comes_without_its_pages_and_is_kept() {
    let (state, mapping) = mapping();
    let (calls, waker) = waker();
    // Within a page, over the border of two, and the longest that is kept.
    for (n, (offset, len)) in [(5000, 1030), (12_000, 1030), (40_900, 3072)]
        .into_iter()
        .enumerate()
    {
        let bytes = FinalBytes {
            offset_bytes: offset,
            len_bytes: len,
            final_end_bytes: 2 << 20,
        };
        let begun = mapping.begin_bytes(&bytes, Priority(255), &waker).unwrap();
        let Begun::Pending(Some(ticket)) = begun else {
            panic!("{begun:?}");
        };
        state.released.store(1, SeqCst);
        until(|| calls.0.load(SeqCst) == n + 1);
        assert!(matches!(ticket.poll(&waker), Poll::Ready(Ok(()))));
        assert!(mapping.has_bytes(offset, len));
        let mut scratch = Vec::new();
        let seen = mapping.with_bytes(offset, len, Priority(255), &mut scratch, <[u8]>::to_vec);
        assert_eq!(seen.unwrap(), held(offset, len));
    }
    assert_eq!(state.blocking_reads.load(SeqCst), 0);
    assert_eq!(mapping.stats().pages_resident, 0);
}

#[test]
fn nothing_is_kept_of_a_record_that_came_short() {
    let (state, mapping) = mapping();
    let (calls, waker) = waker();
    let free = mapping.stats().frames_free;
    state.is_short.store(true, SeqCst);
    let bytes = FinalBytes {
        offset_bytes: 5000,
        len_bytes: 1030,
        final_end_bytes: 2 << 20,
    };
    drop(mapping.begin_bytes(&bytes, Priority(255), &waker).unwrap());
    state.released.store(1, SeqCst);
    until(|| calls.0.load(SeqCst) == 1);
    assert!(!mapping.has_bytes(5000, 1030));
    assert_eq!(mapping.stats().frames_free, free);
}

#[test]
fn a_page_that_does_not_verify_is_seen_by_nobody() {
    let (state, mapping) = mapping();
    let (calls, waker) = waker();
    let mut wanted = wanted(10, 1);
    wanted.check = Some(Arc::new(|_| Err(Error::corruption("as ordered"))));
    let ticket = begin(&mapping, &wanted, &waker).unwrap();
    state.released.store(1, SeqCst);
    until(|| calls.0.load(SeqCst) == 1);
    assert!(matches!(ticket.poll(&waker), Poll::Ready(Err(_))));
    assert!(!mapping.is_resident(PageNo(10)));
}

#[test]
fn without_frames_a_task_is_refused_and_without_room_in_flight_it_waits() {
    let (state, mapping) = mapping();
    let (_, waker) = waker();
    let frames = mapping.stats().frames;
    state.depth.store(usize::MAX, SeqCst);
    for page in 0..frames {
        // What nobody waits for any more keeps its frame all the same.
        drop(begin(&mapping, &wanted(page * 2, 1), &waker));
    }
    let refused = mapping.begin(&wanted(5001, 1), &waker).unwrap();
    assert!(matches!(refused, Begun::Refused));
    // Past the frames.
    assert_eq!(
        mapping
            .read(any(5001), |bytes| common::verify(5001, bytes))
            .unwrap(),
        Ok(0)
    );
    state.released.store(frames as usize - 8, SeqCst);
    until(|| state.in_flight.lock().unwrap().len() == 8);
    state.depth.store(8, SeqCst);
    let (calls, waker) = self::waker();
    assert!(begin(&mapping, &wanted(5001, 1), &waker).is_none());
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(calls.0.load(SeqCst), 0);
    state.released.store(1, SeqCst);
    until(|| calls.0.load(SeqCst) == 1);
    assert!(begin(&mapping, &wanted(5001, 1), &waker).is_some());
    state.released.store(usize::MAX, SeqCst);
}

#[test]
fn a_mapping_that_goes_waits_for_what_is_in_flight() {
    let (state, mapping) = mapping();
    let (_, waker) = waker();
    for page in 0..20 {
        drop(begin(&mapping, &wanted(page * 2, 1), &waker));
    }
    std::thread::scope(|scope| {
        let gone = scope.spawn(move || drop(mapping));
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(state.in_flight.lock().unwrap().len(), 20);
        state.released.store(usize::MAX, SeqCst);
        gone.join().unwrap();
        until(|| state.in_flight.lock().unwrap().is_empty());
    });
}

#[test]
fn a_discarded_page_is_not_published_by_a_load_from_before() {
    let (state, mapping) = mapping();
    let (calls, waker) = waker();
    let ticket = begin(&mapping, &wanted(10, 1), &waker).unwrap();
    mapping.discard(PageNo(10), 1);
    common::fresh(&mapping, 10, 7).unwrap();
    state.released.store(1, SeqCst);
    until(|| calls.0.load(SeqCst) == 1);
    assert!(matches!(ticket.poll(&waker), Poll::Ready(Ok(()))));
    assert_eq!(common::version(&mapping, 10).unwrap(), 7);
}

#[test]
fn what_comes_for_a_discarded_page_is_no_error_whatever_it_is() {
    let (state, mapping) = mapping();
    let (calls, waker) = waker();
    let mut wanted = wanted(10, 2);
    wanted.check = Some(Arc::new(|_| Err(Error::corruption("a hole by now"))));
    let ticket = begin(&mapping, &wanted, &waker).unwrap();
    mapping.discard(PageNo(10), 2);
    state.released.store(1, SeqCst);
    until(|| calls.0.load(SeqCst) == 1);
    assert!(matches!(ticket.poll(&waker), Poll::Ready(Ok(()))));
    assert!(!mapping.is_resident(PageNo(10)) && !mapping.is_resident(PageNo(11)));
}

#[test]
fn a_waker_that_panics_harms_no_other() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("as ordered");
        }
    }
    let (state, mapping) = mapping();
    let (calls, good) = waker();
    let bad = Waker::from(Arc::new(Panics));
    for round in 0..2 {
        let first = begin(&mapping, &wanted(10 + round, 1), &bad).unwrap();
        // Woken after it, and by the same thread the next time.
        let second = begin(&mapping, &wanted(20 + round, 1), &good).unwrap();
        assert!(begin(&mapping, &wanted(10 + round, 1), &good).is_none());
        state.released.store(2, SeqCst);
        until(|| calls.0.load(SeqCst) == 2 * (round as usize + 1));
        assert!(first.poll(&good).is_ready() && second.poll(&good).is_ready());
    }
}

#[test]
fn a_driving_thread_that_waits_for_its_own_read_is_looked_after() {
    let (state, mapping) = mapping();
    let (_, waker) = waker();
    state.released.store(usize::MAX, SeqCst);
    mapping.drive(async {
        for page in 0..20 {
            drop(begin(&mapping, &wanted(page, 1), &waker));
            assert_eq!(common::version(&mapping, page).unwrap(), 0);
        }
    });
    assert_eq!(state.blocking_reads.load(SeqCst), 0);
}
