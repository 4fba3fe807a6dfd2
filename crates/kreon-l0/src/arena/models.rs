//! Models of the arena: every interleaving of a few threads. `cargo xtask interleavings loom`.

use std::sync::Arc;

use kreon_base::sync::explore;
use loom::thread;

use super::space::{PIECE_BYTES_MAX, Space};
use super::{Arena, AtomicRef, Pool};

#[test]
fn model_what_a_reference_names_is_written() {
    explore("arena: objects published by reference", Some(4), || {
        let shared = Arc::new((Arena::new(Pool::new(0)), AtomicRef::<u64>::new(None)));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for value in [7_u64, 8] {
                    let made = shared.0.put(value, &value.to_le_bytes(), &[]);
                    shared.1.store(Some(made));
                }
            })
        };
        if let Some(found) = shared.1.load() {
            let value = *shared.0.get(found);
            assert_eq!(shared.0.first(found), value.to_le_bytes());
        }
        writer.join().unwrap();
    });
}

#[test]
fn model_a_full_chunk_is_followed_by_one_new_one() {
    explore("arena: two takes that find the chunk full", Some(3), || {
        let space = Arc::new(Space::new(Pool::new(0)));
        // Room for three such pieces, as the first unit of a chunk is not allocated.
        for _ in 0..3 {
            space.take(PIECE_BYTES_MAX);
        }
        let other = {
            let space = Arc::clone(&space);
            thread::spawn(move || {
                let unit = space.take(PIECE_BYTES_MAX);
                (unit, space.address(unit).addr())
            })
        };
        let unit = space.take(PIECE_BYTES_MAX);
        let address = space.address(unit).addr();
        let (other_unit, other_address) = other.join().unwrap();
        assert_ne!(unit, other_unit);
        assert!(address.abs_diff(other_address) >= PIECE_BYTES_MAX);
        assert!(
            address > PIECE_BYTES_MAX && other_address > PIECE_BYTES_MAX,
            "not null"
        );
        assert_eq!(space.bytes(), (2 << 20) + 2 * PIECE_BYTES_MAX);
    });
}
