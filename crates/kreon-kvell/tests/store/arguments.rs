//! What is put in comes out, over openings, and what is out of range is refused.

use kreon_base::{ErrorKind, VALUE_BYTES_MAX};
use kreon_device::Device;
use kreon_sim::{Call, Effect, Fault};
use kvell::Durability::{Buffered, Sync};
use kvell::Options;

use crate::world::{new_store, open, options, simulated, value};

/// What the public code of KVell breaks at: an update of a present key, keys that share 8 bytes, a value that outgrows its
/// slot, and one of more than 4 KiB.
#[test]
fn updates_similar_keys_and_growing_values_are_kept_over_an_opening_of_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let store = options().open(&path).expect("a store");
    let users = store.region("users").expect("a region");
    users.put("a key", "first", Sync).expect("a put");
    users.put("a key", "second", Sync).expect("a put");
    assert_eq!(users.get("a key").expect("a get"), Some(b"second".to_vec()));
    users.put("12345678-one", "1", Sync).expect("a put");
    users.put("12345678-two", "2", Sync).expect("a put");
    for len_bytes in [10, 600, 5000, 70_000, 200_000, 30] {
        users.put("grows", vec![7; len_bytes], Sync).expect("a put");
        let found = users.get("grows").expect("a get");
        assert_eq!(found, Some(vec![7; len_bytes]));
    }
    users.delete("12345678-one", Sync).expect("a deletion");
    drop(users);
    store.close().expect("a close");

    let store = options().open(&path).expect("the store");
    let users = store.region("users").expect("the region");
    let found = users.multi_get(&["a key", "12345678-one", "12345678-two", "grows"]);
    let expected = [
        Some(b"second".to_vec()),
        None,
        Some(b"2".to_vec()),
        Some(vec![7; 30]),
    ];
    assert_eq!(found.expect("values"), expected);
    assert!(users.contains("grows").expect("a look"));
}

#[test]
fn a_store_opens_with_any_number_of_workers_and_any_length_of_keys_in_the_index() {
    let device = simulated(1 << 40);
    let openings = [(Some(1), 32), (Some(5), 8), (Some(200), 256), (None, 1)];
    for (opening, (workers, index_key_bytes)) in (0_u64..).zip(openings) {
        let options = Options {
            workers,
            index_key_bytes,
            ..options()
        };
        let store = open(&device, &options);
        let region = store.region("r").expect("a region");
        for key in 0..100_u64 {
            let name = format!("keys that begin alike and are long: {key}");
            let found = region.get(&name).expect("a get");
            let before = opening
                .checked_sub(1)
                .map(|it| value(it, 100 * key as usize));
            assert_eq!(found, before, "{key} in opening {opening}");
            let put = region.put(&name, value(opening, 100 * key as usize), Buffered);
            put.expect("a put");
        }
        store.close().expect("a close");
    }
}

#[test]
fn regions_have_keys_of_their_own() {
    let device = simulated(1 << 40);
    let store = open(&device, &options());
    let (one, two) = (store.region("one"), store.region("two"));
    let (one, two) = (one.expect("a region"), two.expect("a region"));
    one.put("key", "in one", Sync).expect("a put");
    two.put("key", "in two", Sync).expect("a put");
    two.delete("key", Sync).expect("a deletion");
    let again = store.region("one").expect("a region");
    assert_eq!(again.get("key").expect("a get"), Some(b"in one".to_vec()));
    assert_eq!(two.get("key").expect("a get"), None);
    let refused = store.region("").map(drop).map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::InvalidArgument));
}

#[test]
fn arguments_out_of_range_are_refused_and_change_nothing() {
    let (_, _store, region) = new_store();
    let kind = |outcome: kreon_base::Result<()>| outcome.map_err(|error| error.kind());
    let long_key = vec![1; 70_000];
    let refused = Err(ErrorKind::InvalidArgument);
    assert_eq!(kind(region.put(&long_key, "", Sync)), refused);
    assert_eq!(kind(region.get(&long_key).map(drop)), refused);
    let long_value = vec![0; VALUE_BYTES_MAX + 1];
    let error = region.put("key", &long_value, Sync).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("1073741824"), "{error}");
    assert_eq!(region.get("key").expect("a get"), None);
    let wrong = [
        Options {
            partitions: 0,
            ..options()
        },
        Options {
            depth: 0,
            ..options()
        },
        Options {
            workers: Some(0),
            ..options()
        },
    ];
    for options in wrong {
        let opened = options.open_on(simulated(1 << 40)).map(drop);
        assert_eq!(kind(opened), refused, "{options:?}");
    }
}

#[test]
fn an_atomic_unit_out_of_range_is_refused_and_the_device_stays_as_it_is() {
    for atomic_bytes in [0, 256, 700, 8192] {
        let device = simulated(1 << 40);
        let wrong = Options {
            atomic_bytes: Some(atomic_bytes),
            ..options()
        };
        let refused = wrong.open_on(device.clone()).map(drop);
        let kind = refused.map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::InvalidArgument), "{atomic_bytes}");
        assert!(device.image().is_blank(0, 1 << 20));
        open(&device, &options());
    }
}

#[test]
fn no_store_is_made_on_a_blank_device_if_none_is_to_be_made() {
    let device = simulated(1 << 40);
    let never = Options {
        create: false,
        format: true,
        ..options()
    };
    for len_bytes in [0, 8 << 20] {
        device.grow(len_bytes).expect("room");
        let refused = never.open_on(device.clone()).map(drop);
        let kind = refused.map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::NotFound), "{len_bytes}");
        assert_eq!(device.events(), usize::from(len_bytes > 0), "untouched");
    }
    open(&device, &options()).close().expect("a close");
    open(&device, &never);
}

#[test]
fn many_changes_go_in_one_call_and_each_stands_for_itself() {
    let (_, store, region) = new_store();
    let puts: Vec<_> = (0..3000_u32)
        .map(|number| (number.to_be_bytes(), Some(vec![number as u8; 700])))
        .collect();
    region.write_many(&puts, Sync).expect("puts");
    let deletions: Vec<_> = (0..3000_u32)
        .step_by(2)
        .map(|number| (number.to_be_bytes(), None::<Vec<u8>>))
        .collect();
    region.write_many(&deletions, Sync).expect("deletions");
    let keys: Vec<_> = (0..3000_u32).map(u32::to_be_bytes).collect();
    let values = region.multi_get(&keys).expect("values");
    for (number, value) in (0..3000_u32).zip(values) {
        let expected = (number % 2 == 1).then(|| vec![number as u8; 700]);
        assert_eq!(value, expected, "{number}");
    }
    // Those of the region, and two of the names of regions.
    assert_eq!(store.stats().keys, 1500 + 2);
    // A key that is too long leaves those in front of it done.
    let long = vec![b'k'; 70_000];
    let keys = [b"d".to_vec(), long, b"e".to_vec()];
    let mixed_keys = keys.map(|key| (key, Some(vec![4])));
    let refused = region.write_many(&mixed_keys, Sync);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let found = region.multi_get(&["d", "e"]).expect("values");
    assert_eq!(found, [Some(vec![4]), None]);
    // Nothing is no reason to wait.
    region.write_many(&mixed_keys[..0], Sync).expect("nothing");
    assert!(region.multi_get::<&str>(&[]).expect("nothing").is_empty());
}

#[test]
fn a_region_that_was_dropped_takes_no_puts_and_one_of_its_name_is_another() {
    let (_, store, old) = new_store();
    for key in 0..50_u8 {
        old.put([key], vec![key; 700], Buffered).expect("a put");
    }
    let other = store.region("other").expect("a region");
    other.put("key", "value", Sync).expect("a put");
    let handle = store.region("r").expect("a region");
    store.drop_region("r").expect("a drop");
    for region in [&old, &handle] {
        let refused = [
            region.put("key", "value", Sync),
            region.write_many(&[("key", Some("value"))], Buffered),
        ];
        for outcome in refused {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound);
        }
        region.delete("key", Sync).expect("nothing to delete");
        assert_eq!(region.get([1]).expect("a get"), None);
    }
    // The count of regions, the name, and what the other one has.
    assert_eq!(store.stats().keys, 3);
    let new = store.region("r").expect("a region");
    new.put("key", "new", Sync).expect("a put");
    assert_eq!(new.get("key").expect("a get"), Some(b"new".to_vec()));
    assert_eq!(old.get("key").expect("a get"), None);
}

#[test]
fn a_drop_that_failed_leaves_a_region_that_takes_puts() {
    let (device, store, region) = new_store();
    region.put("key", vec![7; 3000], Sync).expect("a put");
    store.drop_region("no such region").unwrap_err();
    region.put("key", "value", Sync).expect("a put");
    device.inject(Fault::nth(1, Call::Flush, Effect::Io));
    let kind = store.drop_region("r").map_err(|error| error.kind());
    assert_eq!(kind, Err(ErrorKind::Poisoned));
    let kind = region
        .put("key", "value", Sync)
        .map_err(|error| error.kind());
    assert_eq!(kind, Err(ErrorKind::Poisoned));
}
