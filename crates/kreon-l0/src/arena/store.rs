//! Typed objects in raw memory, each followed by up to two byte strings.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::{mem, ptr, slice};

use kreon_base::sync::Watch;

use super::pool::Pool;
use super::reference::Ref;
use super::space::{PIECE_BYTES_MAX, Space, UNIT_BYTES};

/// Bits of an object's length word for the length of its second byte string.
const SECOND_BITS: u32 = 15;

/// Longest first byte string.
pub(crate) const FIRST_BYTES_MAX: usize = (1 << (32 - SECOND_BITS)) - 1;

/// Longest second byte string.
pub(crate) const SECOND_BYTES_MAX: usize = (1 << SECOND_BITS) - 1;

/// Bytes of the length word between an object and its byte strings.
const LENGTHS_BYTES: usize = 4;

const CACHE_LINE_BYTES: usize = 64;

/// Objects of any plain type, each followed by two byte strings; the [module](super) states the rules.
///
/// Layout of an object: the `T`, a length word (first << 15 | second), the first byte string, the second byte string,
/// padding to a multiple of 8 bytes.
pub(crate) struct Arena {
    space: Space,
    /// Pieces are objects, named by their first units.
    watch: Watch,
}

impl Arena {
    /// An arena with its first chunk.
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        Self {
            space: Space::new(pool),
            watch: Watch::new(),
        }
    }

    /// The pool that provides its chunks and takes them back.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        self.space.pool()
    }

    /// Bytes allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.space.bytes()
    }

    /// Puts `value`, followed by copies of `first` and `second`, into the arena. It is never dropped; its memory is
    /// freed with the arena.
    ///
    /// # Panics
    /// If `first` or `second` is longer than its maximum, or the arena is full.
    pub(crate) fn put<T: Send + Sync + 'static>(
        &self,
        value: T,
        first: &[u8],
        second: &[u8],
    ) -> Ref<T> {
        const {
            assert!(!mem::needs_drop::<T>(), "objects are never dropped");
            assert!(align_of::<T>() <= UNIT_BYTES);
            assert!(size_of::<T>().is_multiple_of(LENGTHS_BYTES));
            assert!(
                size_of::<T>() + LENGTHS_BYTES + FIRST_BYTES_MAX + SECOND_BYTES_MAX
                    <= PIECE_BYTES_MAX
            );
        }
        assert!(first.len() <= FIRST_BYTES_MAX && second.len() <= SECOND_BYTES_MAX);
        let lengths = (first.len() as u32) << SECOND_BITS | second.len() as u32;
        let unit = self
            .space
            .take(size_of::<T>() + LENGTHS_BYTES + first.len() + second.len());
        self.watch.write(u64::from(unit));
        let at = self.space.address(unit);
        // SAFETY: `take` returned these bytes to this call alone, enough of them and aligned to 8; nobody else knows of
        // them yet.
        unsafe { at.cast::<T>().write(value) };
        let lengths_at = lengths_of::<T>(at);
        // SAFETY: inside the piece, and aligned to 4, as the size of `T` is a multiple of 4.
        unsafe { lengths_at.write(lengths) };
        let first_at = lengths_at.wrapping_add(1).cast::<u8>();
        // SAFETY: inside the piece, which is fresh and so does not overlap the source.
        unsafe { ptr::copy_nonoverlapping(first.as_ptr(), first_at, first.len()) };
        let second_at = first_at.wrapping_add(first.len());
        // SAFETY: inside the piece, which is fresh and so does not overlap the source.
        unsafe { ptr::copy_nonoverlapping(second.as_ptr(), second_at, second.len()) };
        match NonZeroU32::new(unit) {
            Some(unit) => Ref::new(unit),
            None => unreachable!("unit 0 is never handed out"),
        }
    }

    /// The object.
    #[inline]
    pub(crate) fn get<T: Send + Sync + 'static>(&self, object: Ref<T>) -> &T {
        self.watch.read(u64::from(object.unit()));
        let at = self.space.address(object.unit()).cast::<T>();
        // SAFETY: by rules 1, 2 and 4 `put` wrote a `T` there and the write is visible here; by rule 3 there is no
        // exclusive reference to it; the memory lives as long as the arena.
        unsafe { &*at }
    }

    /// The first byte string behind the object.
    #[inline]
    pub(crate) fn first<T: Send + Sync + 'static>(&self, object: Ref<T>) -> &[u8] {
        let (at, lengths) = self.lengths(object);
        // SAFETY: `put` wrote that many bytes there, visible here as in `get`, and they are never written again.
        unsafe { slice::from_raw_parts(at, (lengths >> SECOND_BITS) as usize) }
    }

    /// The second byte string behind the object.
    #[inline]
    pub(crate) fn second<T: Send + Sync + 'static>(&self, object: Ref<T>) -> &[u8] {
        let (at, lengths) = self.lengths(object);
        let second_at = at.wrapping_add((lengths >> SECOND_BITS) as usize);
        let second_bytes = lengths as usize & SECOND_BYTES_MAX;
        // SAFETY: `put` wrote that many bytes there, visible here as in `get`, and they are never written again.
        unsafe { slice::from_raw_parts(second_at, second_bytes) }
    }

    /// Start of the byte strings, and the length word.
    #[inline]
    fn lengths<T>(&self, object: Ref<T>) -> (*const u8, u32) {
        self.watch.read(u64::from(object.unit()));
        let at = lengths_of::<T>(self.space.address(object.unit()));
        // SAFETY: `put` wrote the word there, visible here as in `get`; it is never written again.
        let lengths = unsafe { at.read() };
        (at.wrapping_add(1).cast(), lengths)
    }

    /// Prefetches the first `bytes` of the object. No effect where the processor has no such instruction.
    #[inline]
    pub(crate) fn prefetch<T>(&self, object: Ref<T>, bytes: usize) {
        let at = self.space.address(object.unit());
        for line in (0..bytes).step_by(CACHE_LINE_BYTES) {
            prefetch_line(at.wrapping_add(line));
        }
    }
}

/// Address of the length word of an object of type `T` at `at`.
fn lengths_of<T>(at: *mut u8) -> *mut u32 {
    at.wrapping_add(size_of::<T>()).cast()
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn prefetch_line(at: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint; the processor ignores it for an address that it cannot read.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
fn prefetch_line(_at: *const u8) {}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;
    use crate::arena::{AtomicRef, AtomicTagged, Tagged};

    const OBJECTS: u64 = if cfg!(miri) { 20 } else { 20_000 };

    fn bytes(seed: u64) -> Vec<u8> {
        vec![seed as u8; (seed * 37 % 200) as usize]
    }

    fn check(arena: &Arena, object: Ref<AtomicU64>, seed: u64) {
        assert_eq!(arena.get(object).load(Ordering::Relaxed), seed);
        assert_eq!(arena.first(object), bytes(seed));
        assert_eq!(arena.second(object), bytes(seed + 1));
    }

    #[test]
    fn objects_of_several_threads_stay_as_written() {
        let arena = Arena::new(Pool::new(0));
        let all: Vec<_> = thread::scope(|scope| {
            let threads = [0, 1, 2].map(|thread| {
                let arena = &arena;
                scope.spawn(move || {
                    let put = |seed| {
                        let object = AtomicU64::new(seed);
                        (arena.put(object, &bytes(seed), &bytes(seed + 1)), seed)
                    };
                    (0..OBJECTS)
                        .map(|i| put(i * 3 + thread))
                        .collect::<Vec<_>>()
                })
            });
            threads
                .into_iter()
                .flat_map(|t| t.join().unwrap())
                .collect()
        });
        for &(object, seed) in &all {
            check(&arena, object, seed);
        }
        assert!(arena.bytes() as u64 > all.len() as u64 * 200);
    }

    #[test]
    fn the_longest_objects_fit() {
        let arena = Arena::new(Pool::new(0));
        for i in 0..30_u8 {
            let first = vec![i; FIRST_BYTES_MAX];
            let second = vec![i + 100; SECOND_BYTES_MAX];
            let object = arena.put(i32::from(i), &first, &second);
            assert_eq!(*arena.get(object), i32::from(i));
            assert!(arena.first(object) == first && arena.second(object) == second);
        }
        assert!(arena.bytes() > 30 * (FIRST_BYTES_MAX + SECOND_BYTES_MAX));
    }

    #[test]
    fn a_reference_published_by_another_thread_is_good_to_follow() {
        let arena = Arena::new(Pool::new(0));
        let place = AtomicRef::new(None);
        let tagged = AtomicTagged::new(Tagged { tag: 0, to: None });
        thread::scope(|scope| {
            scope.spawn(|| {
                for seed in 1..=OBJECTS {
                    let object = AtomicU64::new(seed);
                    let to = Some(arena.put(object, &bytes(seed), &bytes(seed + 1)));
                    place.store(to);
                    tagged.store(Tagged {
                        tag: seed as u32,
                        to,
                    });
                }
            });
            let mut last = 0;
            while last < OBJECTS {
                if let Some(object) = place.load() {
                    let seed = arena.get(object).load(Ordering::Relaxed);
                    check(&arena, object, seed);
                }
                let Tagged { tag, to } = tagged.load();
                if let Some(object) = to {
                    check(&arena, object, u64::from(tag));
                    last = u64::from(tag);
                }
                thread::yield_now();
            }
        });
    }
}
