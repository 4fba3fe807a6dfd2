//! A full volume, and full memory.

use kreon_base::ErrorKind;
use kvell::Durability::{Buffered, Sync};
use kvell::Options;

use crate::world::{open, options, simulated};

#[test]
fn a_full_volume_refuses_puts_and_goes_on_after_deletions() {
    for durability in [Sync, Buffered] {
        let device = simulated(12 << 20);
        let store = open(&device, &options());
        let region = store.region("r").expect("a region");
        let mut count = 0_u32;
        let refused = loop {
            match region.put(count.to_be_bytes(), vec![1; 3000], durability) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), ErrorKind::OutOfSpace);
        let report = store.verify().expect("a verification");
        assert!(report.is_clean(), "{:?}", report.damage);
        assert!(count > 300, "{count} items in 11 MiB");
        for number in 0..count {
            assert!(region.get(number.to_be_bytes()).expect("a get").is_some());
            let deletion = region.delete(number.to_be_bytes(), durability);
            deletion.expect("a deletion");
        }
        // Of another class of sizes: whole extents have to change hands.
        for number in 0..10_u32 {
            let put = region.put(number.to_be_bytes(), vec![2; 100_000], durability);
            put.expect("a put");
        }
        for number in 0..10_u32 {
            let value = region.get(number.to_be_bytes()).expect("a get");
            assert_eq!(value, Some(vec![2; 100_000]));
        }
    }
}

#[test]
fn an_index_that_fills_the_memory_refuses_new_keys_and_goes_on_after_deletions() {
    let device = simulated(1 << 40);
    let options = Options {
        memory_bytes: 2 << 20,
        index_key_bytes: 200,
        ..options()
    };
    let store = open(&device, &options);
    let region = store.region("r").expect("a region");
    let key = |number: u32| format!("{number:07}, and {}", "what makes it long ".repeat(9));
    let mut count = 0;
    let refused = loop {
        match region.put(key(count), b"first", Buffered) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::OutOfSpace, "{refused}");
    assert!(count > 5000, "{count} keys in 2 MiB");
    let in_memory = store.stats().memory_bytes;
    assert!(in_memory <= 5 << 19, "{in_memory} bytes");
    assert_eq!(region.get(key(count)).expect("a get"), None);
    // What is there can be read, changed and deleted.
    for number in 0..count {
        let value = region.get(key(number)).expect("a get");
        assert_eq!(value.as_deref(), Some(&b"first"[..]));
    }
    for number in count - 1000..count {
        let put = region.put(key(number), b"second", Buffered);
        put.expect("a put of a key that is there");
    }
    for number in 0..count / 2 {
        let deletion = region.delete(key(number), Buffered);
        deletion.expect("a deletion");
    }
    store.sync().expect("a sync");
    // And there is room for others.
    for number in count..count + count / 4 {
        region.put(key(number), b"third", Buffered).expect("a put");
    }
    let report = store.verify().expect("a verification");
    assert!(report.is_clean(), "{:?}", report.damage);
    store.close().expect("a close");
    let store = open(&device, &options);
    let region = store.region("r").expect("the region");
    for number in 0..count + count / 4 {
        let wanted: Option<&[u8]> = match number {
            _ if number >= count => Some(b"third"),
            _ if number < count / 2 => None,
            _ if number >= count - 1000 => Some(b"second"),
            _ => Some(b"first"),
        };
        let found = region.get(key(number)).expect("a get");
        assert_eq!(found.as_deref(), wanted, "key {number} of {count}");
    }
}
