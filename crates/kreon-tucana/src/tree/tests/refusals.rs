//! What a tree refuses, and what is left then.

use kreon_base::ErrorKind;

use super::keys::Shape;
use super::{World, check};
use crate::tree::TREE_KEY_BYTES_MAX;

#[test]
fn a_key_that_is_too_long_is_refused_and_the_longest_is_not() {
    let world = World::new(1 << 10);
    let longest = vec![7; TREE_KEY_BYTES_MAX];
    assert!(!world.tree.put(&longest, b"value").unwrap());
    assert_eq!(
        world.tree.get(&longest).unwrap().as_deref(),
        Some(&b"value"[..])
    );
    let key = vec![7; TREE_KEY_BYTES_MAX + 1];
    for error in [
        world.tree.put(&key, b"").unwrap_err(),
        world.tree.get(&key).unwrap_err(),
        world.tree.delete(&key).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(world.pairs().len(), 1);
}

#[test]
fn the_empty_key_and_the_empty_value_are_a_pair_like_others() {
    let world = World::new(1 << 10);
    assert!(!world.tree.put(b"", b"").unwrap());
    assert!(world.tree.put(b"", b"").unwrap());
    assert_eq!(world.pairs(), [(vec![], vec![])]);
    assert!(world.tree.delete(b"").unwrap());
    assert_eq!(world.pairs(), []);
}

#[test]
fn a_record_that_is_too_long_is_refused() {
    let world = World::new(1 << 10);
    let error = world.tree.put(b"key", &vec![0; 4 << 20]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(world.pairs(), []);
}

#[test]
fn without_frames_writes_are_refused_until_some_are_published_and_nothing_is_lost() {
    let world = World::new(512);
    let mut kept = 0;
    let error = loop {
        match world.tree.put(&Shape::Short.key(kept), b"value") {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::OutOfSpace);
    assert!(world.tree.wants_freeze());
    assert_eq!(world.pairs().len(), kept as usize);
    assert!(
        world
            .tree
            .put(&Shape::Short.key(0), b"an update needs no frame")
            .unwrap()
    );
    world.publish();
    assert!(!world.tree.wants_freeze());
    for number in kept..2 * kept {
        if world.tree.wants_freeze() {
            world.publish();
        }
        world.tree.put(&Shape::Short.key(number), b"value").unwrap();
    }
    assert_eq!(world.pairs().len(), 2 * kept as usize);
    check::check(&world.tree);
}
