//! Records against a model, on few frames. Under Miri: `cargo +nightly miri test -p kreon-mapping record_cache`.

use std::cell::RefCell;

use kreon_base::{PageNo, SEGMENT_BYTES, SEGMENT_PAGES};
use kreon_device::Backing;

use super::cache::RECORD_BYTES_MAX;
use super::*;
use crate::well::FrameSpace;

const STEPS: u64 = if cfg!(miri) { 200 } else { 40_000 };
const LEN_MAX: u64 = if cfg!(miri) {
    90
} else {
    RECORD_BYTES_MAX as u64
};
const FRAMES: u32 = 24;

/// The bytes of a version of the record at `offset`.
fn content(offset: u64, version: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (slots::hash(offset ^ version << 40 ^ i << 50) >> 7) as u8)
        .collect()
}

/// Records of many lengths in a few segments; a segment's version changes when it is forgotten.
#[test]
fn a_record_is_found_as_it_was_put_or_not_at_all() {
    let (space, frames) = FrameSpace::new(FRAMES, 1 << 20, false, Backing::Ahead).expect("memory");
    let free = RefCell::new(frames.collect::<Vec<_>>());
    let cache = RecordCache::new(table_bytes(1 << 20)).expect("tables");
    let mut versions = [0_u64; 4];
    let (mut found, mut into) = (0, Vec::new());
    for step in 0..STEPS {
        let random = slots::hash(step + 1);
        let segment = random % 4;
        // Half of the steps go to few records, which become hot.
        let range = if random & 16 == 0 { 8 } else { 200 };
        let offset = segment * SEGMENT_BYTES + (random >> 8) % range * 4096;
        let len = 1 + (slots::hash(offset) % LEN_MAX) as usize;
        let expected = content(offset, versions[segment as usize], len);
        into.clear();
        if (random >> 40).is_multiple_of(256) {
            versions[segment as usize] += 1;
            cache.forget(PageNo(segment * SEGMENT_PAGES), SEGMENT_PAGES);
        } else if (random >> 40).is_multiple_of(64) {
            cache.give_up(&space, 3, |frame| free.borrow_mut().push(frame));
        } else if cache.get(&space, offset, len, &mut into) {
            assert_eq!(into, expected, "step {step}");
            found += 1;
        } else {
            let generation = cache.generation(offset);
            let take = || free.borrow_mut().pop();
            cache.keep(
                &space,
                (offset, generation),
                &expected,
                || FRAMES as usize,
                take,
            );
        }
        assert_eq!(cache.frames() + free.borrow().len(), FRAMES as usize);
    }
    assert!(found > STEPS / 10, "{found}");
    assert_eq!(cache.hits(), found);
    cache.give_up(&space, FRAMES as usize, |frame| {
        free.borrow_mut().push(frame)
    });
    assert_eq!(
        free.borrow().len(),
        FRAMES as usize,
        "every frame comes back"
    );
}

#[test]
fn a_record_of_an_older_generation_is_not_kept() {
    let (space, frames) = FrameSpace::new(FRAMES, 1 << 20, false, Backing::Ahead).expect("memory");
    let free = RefCell::new(frames.collect::<Vec<_>>());
    let cache = RecordCache::new(table_bytes(1 << 20)).expect("tables");
    let generation = cache.generation(4096);
    cache.forget(PageNo(300), 1);
    let take = || free.borrow_mut().pop();
    cache.keep(&space, (4096, generation), &[1; 100], || 10, take);
    assert!(!cache.get(&space, 4096, 100, &mut Vec::new()));
}
