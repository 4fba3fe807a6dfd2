//! No I/O happens under a latch.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use kreon_base::{PageNo, Priority};

use super::keys::Shape;
use super::{PAGES, World};

const KEYS: u32 = 4000;

/// Has the mapping so full of dirty pages that it writes some with the next one.
fn fill_with_dirty_pages(world: &World) {
    let (mapping, mut page) = (&world.mapping, PAGES);
    let mut fresh = || {
        page -= 1;
        mapping.fresh(PageNo(page), Priority(3), &[9; _]).unwrap();
    };
    let most = loop {
        let before = mapping.stats();
        fresh();
        if mapping.stats().pages_written > before.pages_written {
            break before.pages_dirty;
        }
    };
    while mapping.stats().pages_dirty < most {
        fresh();
    }
}

#[test]
fn readers_never_wait_for_writes_of_a_publication() {
    let world = World::new(4 << 10);
    for number in 0..KEYS {
        world.tree.put(&Shape::Short.key(number), b"value").unwrap();
    }
    let snapshot = world.tree.freeze();
    fill_with_dirty_pages(&world);
    let (writing, told) = mpsc::channel();
    let (done, read) = mpsc::channel();
    let stuck = Arc::new(AtomicU64::new(0));
    let in_write = Arc::clone(&stuck);
    *world.device.before_write.lock() = Some(Box::new(move || {
        let _ = writing.send(());
        if read.recv_timeout(Duration::from_secs(5)).is_err() {
            in_write.fetch_add(1, SeqCst);
        }
    }));
    let written = world.mapping.stats().writes;
    let publication = thread::scope(|scope| {
        let snapshot = &snapshot;
        scope.spawn(move || {
            for () in told {
                for number in 0..KEYS {
                    let found = snapshot.get(&Shape::Short.key(number)).unwrap();
                    assert_eq!(found.as_deref(), Some(&b"value"[..]));
                }
                let _ = done.send(());
            }
        });
        let published = world.tree.publish_frozen().unwrap().unwrap();
        *world.device.before_write.lock() = None;
        published
    });
    // One write for each batch of nodes, and those that the mapping makes room with.
    let batches = publication
        .kept
        .len()
        .div_ceil(world.mapping.open_frames_max() / 4);
    let writes = world.mapping.stats().writes - written;
    assert!(writes as usize > batches, "{writes} writes");
    assert_eq!(stuck.load(SeqCst), 0, "writes that a reader waited for");
}
