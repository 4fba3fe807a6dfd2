//! Freezes, publication, snapshots, pages.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use kreon_base::{Epoch, ErrorKind};

use super::keys::Shape;
use super::{Direction, ScanRange, World, check, home, mapping, pairs};
use crate::tree::Tree;

const KEYS: u32 = 5000;

fn put_all(world: &World, value: &[u8]) {
    for number in 0..KEYS {
        let key = Shape::Short.key(number * 977 % KEYS);
        world.tree.put(&key, value).unwrap();
    }
}

#[test]
fn a_snapshot_shows_its_moment_whatever_comes_later() {
    let world = World::new(8 << 10);
    put_all(&world, b"first");
    let snapshot = world.tree.freeze();
    put_all(&world, b"second");
    world.tree.put(b"behind all", b"new").unwrap();
    for round in 0..3 {
        let all = snapshot.scan(ScanRange::default(), Direction::Reverse);
        let values: Vec<_> = all.map(|pair| pair.unwrap().1).collect();
        assert_eq!(values.len(), KEYS as usize);
        assert!(
            values.iter().all(|value| value == b"first"),
            "round {round}"
        );
        assert_eq!(snapshot.get(b"behind all").unwrap(), None);
        world.publish();
        put_all(&world, b"third");
    }
    assert_eq!(world.pairs().len(), KEYS as usize + 1);
}

#[test]
fn published_nodes_have_no_frame_of_their_own_and_change_no_more() {
    let world = World::new(8 << 10);
    put_all(&world, b"first");
    assert!(world.mapping.stats().frames_open > 30);
    world.publish();
    assert_eq!(world.mapping.stats().frames_open, 0);
    let copies = world.tree.stats().copies;
    world.tree.put(&Shape::Short.key(7), b"second").unwrap();
    world.tree.put(&Shape::Short.key(7), b"third").unwrap();
    // The root and one leaf, once each.
    assert_eq!(world.tree.stats().copies - copies, 2);
    assert_eq!(world.mapping.stats().frames_open, 2);
    check::check(&world.tree);
}

#[test]
fn a_deletion_of_nothing_copies_nothing_and_leaves_no_record() {
    let world = World::new(4 << 10);
    put_all(&world, b"first");
    world.publish();
    let before = (world.log.bytes(), world.tree.stats().copies);
    assert!(!world.tree.delete(b"not there").unwrap());
    assert_eq!((world.log.bytes(), world.tree.stats().copies), before);
}

#[test]
fn a_published_tree_is_opened_again_from_its_pages_alone() {
    let world = World::new(8 << 10);
    put_all(&world, b"first");
    let root = world.publish();
    put_all(&world, b"lost with the epoch that was never published");
    let again = mapping(&world.device, 8 << 10);
    let home = || home(&again, &world.log, &world.pages);
    let refused = Tree::open(home(), root, root.pointer.epoch).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    let tree = Tree::open(home(), root, Epoch(9)).unwrap();
    let found = pairs(&tree, Direction::Forward);
    assert!(found.len() == KEYS as usize && found.iter().all(|(_, value)| value == b"first"));
    tree.put(&Shape::Short.key(3), b"new").unwrap();
    check::check(&tree);
    assert_eq!(
        tree.get(&Shape::Short.key(3)).unwrap().as_deref(),
        Some(&b"new"[..])
    );
}

#[test]
fn pages_come_back_when_nobody_reaches_them() {
    let world = World::new(8 << 10);
    put_all(&world, b"first");
    world.publish();
    let nodes = super::PAGES - 1 - world.pages.free();
    let snapshot = world.tree.freeze();
    for _ in 0..5 {
        put_all(&world, b"again");
        world.publish();
    }
    let with_snapshot = super::PAGES - 1 - world.pages.free();
    assert!(
        with_snapshot >= 5 * nodes,
        "{with_snapshot} for {nodes} nodes"
    );
    drop(snapshot);
    world.publish();
    let without = super::PAGES - 1 - world.pages.free();
    // Those of one state.
    assert!(without <= nodes + 2, "{without} for {nodes} nodes");
    check::check(&world.tree);
}

#[test]
fn damage_on_the_device_is_an_error_that_names_the_page() {
    let world = World::new(8 << 10);
    put_all(&world, b"first");
    let root = world.publish();
    let page = root.pointer.page.0;
    world.device.damage(page, |bytes| bytes[100] ^= 1);
    let again = mapping(&world.device, 8 << 10);
    let tree = Tree::open(home(&again, &world.log, &world.pages), root, Epoch(9)).unwrap();
    let error = tree.get(b"any").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(
        error.to_string().contains(&format!("page {page}")),
        "{error}"
    );
    assert!(tree.put(b"any", b"").is_err());
}

#[test]
fn an_old_page_in_the_place_of_a_new_one_is_an_error() {
    let world = World::new(8 << 10);
    put_all(&world, b"first");
    let root = world.publish();
    let mut stale = Box::new([0; 4096]);
    world
        .device
        .damage(root.pointer.page.0, |bytes| stale.copy_from_slice(bytes));
    let again = mapping(&world.device, 8 << 10);
    // The pointer of another epoch.
    let mut lost = root;
    lost.pointer.epoch = Epoch(2);
    let tree = Tree::open(home(&again, &world.log, &world.pages), lost, Epoch(9)).unwrap();
    assert_eq!(tree.get(b"any").unwrap_err().kind(), ErrorKind::Corruption);
    // The page of another address.
    lost.pointer.epoch = root.pointer.epoch;
    lost.pointer.page.0 += 1;
    world
        .device
        .damage(lost.pointer.page.0, |bytes| *bytes = *stale);
    let again = mapping(&world.device, 8 << 10);
    let tree = Tree::open(home(&again, &world.log, &world.pages), lost, Epoch(9)).unwrap();
    assert_eq!(tree.get(b"any").unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn after_a_failed_publication_no_write_is_taken() {
    let world = World::new(8 << 10);
    put_all(&world, b"first");
    world.tree.freeze();
    world.device.fails.store(true, SeqCst);
    assert_eq!(
        world.tree.publish_frozen().unwrap_err().kind(),
        ErrorKind::Io
    );
    world.device.fails.store(false, SeqCst);
    assert_eq!(
        world.tree.put(b"a", b"").unwrap_err().kind(),
        ErrorKind::Poisoned
    );
    let key = Shape::Short.key(1);
    assert_eq!(
        world.tree.delete(&key).unwrap_err().kind(),
        ErrorKind::Poisoned
    );
    assert_eq!(
        world.tree.get(&key).unwrap().as_deref(),
        Some(&b"first"[..])
    );
}

#[test]
fn a_generation_that_nobody_reads_is_gone() {
    let world = World::new(8 << 10);
    put_all(&world, b"first");
    let first = Arc::downgrade(&world.tree.inside().1);
    world.publish();
    assert!(first.upgrade().is_none());
}

#[test]
fn pages_of_the_durable_state_are_not_given_back_before_the_next_is_durable() {
    let world = World::new(8 << 10);
    put_all(&world, b"first");
    world.publish();
    put_all(&world, b"second");
    world.tree.freeze();
    let free = world.pages.free();
    let publication = world.tree.publish_frozen().unwrap().unwrap();
    assert_eq!(world.pages.free(), free);
    // Every node was replaced by a new one.
    assert_eq!(publication.dropped.len(), publication.kept.len());
    world.tree.committed(&publication);
    assert_eq!(world.pages.free(), free + publication.dropped.len() as u64);
}

/// A snapshot ends an epoch, too: perhaps while a commit of what was before is under way, which has written the log already.
#[test]
fn what_is_frozen_behind_a_commit_is_not_published_with_it() {
    let world = World::new(2 << 10);
    world.tree.put(b"first", b"1").unwrap();
    let committed = world.tree.freeze().epoch();
    world.tree.put(b"second", b"2").unwrap();
    let snapshot = world.tree.freeze();
    let publication = world.tree.publish_up_to(committed).unwrap().unwrap();
    assert_eq!(publication.epoch, committed);
    let home = home(&world.mapping, &world.log, &world.pages);
    let again = Tree::open(home, publication.root, Epoch(100)).unwrap();
    assert_eq!(pairs(&again, Direction::Forward).len(), 1);
    world.tree.committed(&publication);
    assert_eq!(world.pairs().len(), 2);
    assert_eq!(snapshot.get(b"second").unwrap(), Some(b"2".to_vec()));
    let rest = world.tree.publish_frozen().unwrap().unwrap();
    assert_eq!(rest.epoch, snapshot.epoch());
    assert!(world.tree.publish_frozen().unwrap().is_none());
}
