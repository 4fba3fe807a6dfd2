//! Records that tasks begin to read: what they get where frames are scarce, and where a neighbour cannot be read.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use common::any;
use common::slow::{Slow, State, VOLUME_BYTES, held};
use kreon_base::{PageNo, Priority, Result};
use kreon_mapping::{Begun, FinalBytes, Mapping, MappingOptions};

const LAST: Priority = Priority(255);

fn mapping(memory_bytes: usize) -> (Arc<State>, Arc<Mapping>) {
    let state = Arc::new(State::default());
    state.depth.store(64, SeqCst);
    let options = MappingOptions::new(memory_bytes, VOLUME_BYTES);
    let mapping = Mapping::new(Arc::new(Slow(Arc::clone(&state))), options).unwrap();
    (state, Arc::new(mapping))
}

fn record(offset_bytes: u64, len_bytes: usize) -> FinalBytes {
    FinalBytes {
        offset_bytes,
        len_bytes,
        final_end_bytes: (offset_bytes | ((2 << 20) - 1)) + 1,
    }
}

/// Reads a record as a task does, once: the outcome.
fn begin_and_wait(state: &State, mapping: &Arc<Mapping>, record: &FinalBytes) -> Result<()> {
    let begun = mapping.begin_bytes(record, LAST, Waker::noop()).unwrap();
    let Begun::Pending(Some(ticket)) = begun else {
        panic!("{begun:?}");
    };
    state.released.store(1, SeqCst);
    let start = Instant::now();
    loop {
        if let Poll::Ready(outcome) = ticket.poll(Waker::noop()) {
            return outcome;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "it never came");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_neighbour_that_cannot_be_read_is_nothing_to_a_record() {
    let (state, mapping) = mapping(8 << 20);
    state.is_short.store(true, SeqCst);
    *state.bad.lock().unwrap() = Some(25);
    let wanted = record(20 * 4096 + 100, 1030);
    begin_and_wait(&state, &mapping, &wanted).expect("the record's own page is good");
    assert!(mapping.is_resident(PageNo(20)) && !mapping.is_resident(PageNo(25)));
    assert!(mapping.has_bytes(wanted.offset_bytes, wanted.len_bytes));
    // Its own page is not.
    let bad = record(25 * 4096 - 10, 1030);
    assert!(begin_and_wait(&state, &mapping, &bad).is_err());
}

#[test]
fn a_record_is_there_when_it_has_come_though_pages_that_matter_more_fill_the_memory() {
    let (state, mapping) = mapping(32 << 20);
    let frames = mapping.stats().frames;
    for page in 0..frames + 1000 {
        mapping.read(any(4000 + page), |_| ()).unwrap();
    }
    for number in 0..100 {
        let wanted = record(number * 40_000 + 3500, 1030);
        begin_and_wait(&state, &mapping, &wanted).unwrap();
        assert!(
            mapping.has_bytes(wanted.offset_bytes, wanted.len_bytes),
            "{number}: {:?}",
            mapping.stats()
        );
        let mut scratch = Vec::new();
        let seen = mapping.with_bytes(
            wanted.offset_bytes,
            1030,
            LAST,
            &mut scratch,
            <[u8]>::to_vec,
        );
        assert_eq!(seen.unwrap(), held(wanted.offset_bytes, 1030));
    }
}
