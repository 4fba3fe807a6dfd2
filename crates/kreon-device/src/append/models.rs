//! Models of the append buffer: every interleaving of a few threads. `cargo xtask interleavings loom`.

use std::sync::Arc;

use kreon_base::sync::{AtomicU32, Ordering::Relaxed, explore};
use loom::thread;

use super::{AppendBuffer, Reserve};
use crate::aligned_buf::Backing;

fn buffer() -> Arc<AppendBuffer> {
    Arc::new(AppendBuffer::new(4096, Backing::Ahead))
}

/// Appends `units` units filled with a byte that depends on their position; returns the position.
fn append(buffer: &AppendBuffer, units: u32) -> u32 {
    let Reserve::Reserved(mut part) = buffer.reserve(units * 8) else {
        panic!("there is room");
    };
    let at = part.at();
    part.fill(at as u8 + 1);
    part.commit();
    at
}

/// Checks all committed bytes, as the write-out does; returns their number.
fn read(buffer: &AppendBuffer, part_bytes: u32) -> u32 {
    let end = buffer.committed_prefix(0);
    let bytes = buffer
        .committed_range(0..end)
        .expect("what the prefix says");
    for (at, byte) in (0..).zip(bytes) {
        assert_eq!(*byte, (at / part_bytes * part_bytes) as u8 + 1);
    }
    end
}

/// Runs `work` in a thread. The main thread of a model only starts and joins threads.
fn beside<R: 'static>(
    buffer: &Arc<AppendBuffer>,
    work: impl FnOnce(&AppendBuffer) -> R + 'static,
) -> thread::JoinHandle<R> {
    let buffer = Arc::clone(buffer);
    thread::spawn(move || work(&buffer))
}

#[test]
fn model_what_is_committed_is_filled() {
    explore("append: two writers, one writer-out", Some(3), || {
        let shared = buffer();
        let writers = [0, 1].map(|_| beside(&shared, |buffer| append(buffer, 1)));
        let reader = beside(&shared, |buffer| read(buffer, 8));
        let seen = reader.join().unwrap();
        assert!(seen.is_multiple_of(8) && seen <= 16);
        let mut places = writers.map(|writer| writer.join().unwrap());
        places.sort_unstable();
        assert_eq!(places, [0, 8]);
        assert_eq!(read(&shared, 8), 16);
    });
}

#[test]
fn model_a_prefix_that_another_reader_raised_is_good_to_read() {
    explore("append: one writer, two writers-out", Some(4), || {
        let shared = buffer();
        let writer = beside(&shared, |buffer| append(buffer, 1));
        let raiser = beside(&shared, |buffer| read(buffer, 8));
        let reader = beside(&shared, |buffer| {
            let bytes = buffer.committed_range(0..8);
            assert!(bytes.is_none_or(|bytes| bytes == [1; 8]));
        });
        writer.join().unwrap();
        raiser.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn model_a_record_is_found_whole_or_not_at_all() {
    explore(
        "append: parts of one reservation, a reader of each",
        Some(4),
        || {
            let shared = buffer();
            let writer = beside(&shared, |buffer| {
                let Reserve::Reserved(room) = buffer.reserve(24) else {
                    panic!("there is room");
                };
                let (mut first, mut second) = room.split_at(16);
                second.fill(2);
                second.commit();
                first.fill(1);
                first.commit();
            });
            let reader = beside(&shared, |buffer| {
                assert!(buffer.committed(0).is_none_or(|bytes| bytes == [1; 16]));
                assert!(buffer.committed(16).is_none_or(|bytes| bytes == [2; 8]));
                let end = buffer.committed_prefix(0);
                assert!(end == 0 || end == 24, "the second part was committed first");
            });
            writer.join().unwrap();
            reader.join().unwrap();
            assert_eq!(shared.committed_prefix(0), 24);
        },
    );
}

#[test]
fn model_nothing_is_reserved_behind_the_seal() {
    explore("append: two writers and a seal", Some(3), || {
        let shared = buffer();
        let writers = [0, 1].map(|_| {
            beside(&shared, |buffer| match buffer.reserve(8) {
                Reserve::Reserved(part) => {
                    let end = part.end();
                    part.commit();
                    end
                }
                Reserve::Sealed => 0,
                Reserve::Full { .. } => panic!("there is room"),
            })
        });
        let sealer = beside(&shared, |buffer| buffer.seal());
        let sealed = sealer.join().unwrap();
        let ends = writers.map(|writer| writer.join().unwrap());
        assert_eq!(ends.into_iter().max(), Some(sealed));
        assert_eq!(shared.committed_prefix(0), sealed);
    });
}

#[test]
fn model_a_hole_is_never_passed() {
    explore(
        "append: a writer that dies, one that does not",
        Some(4),
        || {
            let shared = buffer();
            let dies = beside(&shared, |buffer| match buffer.reserve(8) {
                Reserve::Reserved(part) => part.at(),
                _ => panic!("there is room"),
            });
            let lives = beside(&shared, |buffer| {
                append(buffer, 1);
                buffer.committed_prefix(0)
            });
            let seen = lives.join().unwrap();
            let hole = dies.join().unwrap();
            assert!(seen <= hole);
            assert!(shared.is_abandoned());
            assert_eq!(shared.committed_prefix(0), hole);
        },
    );
}

#[test]
fn model_a_reservation_sees_what_was_done_before_those_ahead_of_it() {
    explore("append: notes left before reserving", Some(4), || {
        let shared = Arc::new((buffer(), [0, 1].map(|_| AtomicU32::new(0))));
        let actors = [0, 1].map(|own| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (buffer, notes) = &*shared;
                notes[own].store(1, Relaxed);
                if append(buffer, 1) > 0 {
                    assert_eq!(notes[1 - own].load(Relaxed), 1);
                }
            })
        });
        for actor in actors {
            actor.join().unwrap();
        }
    });
}
