//! Stores that are opened again.

use kreon_device::{AlignedBuf, Device};
use kreon_format::{PagePointer, SUPERBLOCK_PAGES, StoreId};
use tucana::{Direction, ErrorKind};

use crate::world::{Model, Random, change, device, device_of, open, pairs};

#[test]
fn what_was_committed_is_there_again_and_nothing_else() {
    let device = device();
    let (mut model, mut random) = (Model::new(), Random(5));
    for round in 0..6 {
        let store = open(&device).unwrap();
        assert!(pairs(&store).unwrap() == model, "round {round}");
        change(&store, &mut model, &mut random, 700).unwrap();
        assert!(pairs(&store).unwrap() == model, "round {round}");
        let verified = store.verify().unwrap();
        assert_eq!(verified.keys, model.len() as u64);
        let mut lost = model.clone();
        change(&store, &mut lost, &mut random, 100).unwrap();
    }
    assert!(model.len() > 500);
    let store = open(&device).unwrap();
    for (key, value) in &model {
        assert_eq!(store.get(key).unwrap().as_ref(), Some(value));
    }
}

#[test]
fn closing_commits_and_a_store_without_keys_is_one() {
    let device = device();
    open(&device).unwrap().close().unwrap();
    let store = open(&device).unwrap();
    assert!(pairs(&store).unwrap().is_empty());
    store.put(b"key", b"value").unwrap();
    store.close().unwrap();
    let store = open(&device).unwrap();
    assert_eq!(store.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

#[test]
fn zeroes_behind_small_flushes_are_counted() {
    let device = device();
    let store = open(&device).unwrap();
    assert_eq!(store.zeroed_bytes(), 0);
    let flush = |number: u32| {
        store.put(&number.to_be_bytes(), b"value").unwrap();
        store.sync().unwrap();
        store.zeroed_bytes()
    };
    let before = device.stats().writes.bytes;
    let zeroes = flush(0);
    let written = device.stats().writes.bytes - before;
    assert!(
        (128 << 10..written).contains(&zeroes),
        "{zeroes} of {written}"
    );
    // The next ones write over them.
    assert_eq!((1..8).map(flush).max(), Some(zeroes));
    store.close().unwrap();
}

#[test]
fn more_changes_than_frames_are_committed_on_the_way() {
    let device = device();
    let store = open(&device).unwrap();
    for number in 0..60_000_u32 {
        store.put(&number.to_be_bytes(), b"value").unwrap();
    }
    assert_eq!(pairs(&store).unwrap().len(), 60_000);
    store.close().unwrap();
    let store = open(&device).unwrap();
    let half = store
        .own()
        .unwrap()
        .scan(30_000_u32.to_be_bytes().., Direction::Forward);
    assert_eq!(half.count(), 30_000);
}

#[test]
fn pages_of_old_states_are_used_again() {
    let device = device();
    let store = open(&device).unwrap();
    let put_all = || {
        for number in 0..3000_u32 {
            let key = (number * 7 % 3000).to_be_bytes();
            store.put(&key, b"").unwrap();
        }
        store.commit().unwrap();
    };
    (0..3).for_each(|_| put_all());
    let before = store.used_bytes();
    (0..60).for_each(|_| put_all());
    // 24 bytes of log for each put are 5 MB; the nodes would be 60 times 80 kB, and none of their pages is new.
    let grown = store.used_bytes() - before;
    assert!(grown <= 8 << 20, "{grown} bytes");
    assert_eq!(store.verify().unwrap().keys, 3000);
    assert_eq!(pairs(&store).unwrap().len(), 3000);
}

#[test]
fn a_snapshot_is_not_disturbed_by_commits() {
    let device = device();
    let store = open(&device).unwrap();
    let (mut model, mut random) = (Model::new(), Random(9));
    change(&store, &mut model, &mut random, 2000).unwrap();
    let (snapshot, then) = (store.snapshot(), model.clone());
    for _ in 0..5 {
        change(&store, &mut model, &mut random, 500).unwrap();
        store.commit().unwrap();
    }
    let found = store.all_in(&snapshot, Direction::Forward);
    assert!(found.map(|pair| pair.unwrap()).eq(then.clone()));
    for (key, value) in then.iter().take(50) {
        assert_eq!(
            snapshot.get(store.own().unwrap(), key).unwrap().as_ref(),
            Some(value)
        );
    }
    assert!(pairs(&store).unwrap() == model);
}

#[test]
fn any_whole_superblock_opens_the_store() {
    let device = device();
    let store = open(&device).unwrap();
    store.put(b"key", b"value").unwrap();
    store.close().unwrap();
    let image = device.image();
    for kept in 0..4 {
        let mut damaged = image.clone();
        for (slot, page) in SUPERBLOCK_PAGES.into_iter().enumerate() {
            if slot != kept {
                damaged.flip_bit(page.offset_bytes() + 40, 3);
            }
        }
        let store = open(&device_of(damaged)).unwrap();
        assert_eq!(store.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    }
    let mut damaged = image;
    for page in SUPERBLOCK_PAGES {
        damaged.flip_bit(page.offset_bytes() + 40, 3);
    }
    let error = open(&device_of(damaged)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}

#[test]
fn a_volume_of_another_engine_is_refused_by_name_and_left_alone() {
    let device = device();
    device.grow(4 << 20).unwrap();
    let superblock = kreon_format::Superblock {
        store: StoreId(3),
        epoch: kreon_base::Epoch(4),
        incarnation: kreon_base::Incarnation(1),
        segments: 2,
        catalogue: PagePointer {
            page: kreon_base::PageNo(40),
            epoch: kreon_base::Epoch(4),
            checksum: 1,
        },
        catalogue_bytes: 10,
    };
    for (slot, page) in SUPERBLOCK_PAGES.into_iter().enumerate() {
        let mut bytes = AlignedBuf::new(4096);
        bytes.copy_from_slice(&*superblock.encode(slot));
        device.write_at(page.offset_bytes(), &bytes).unwrap();
    }
    let before = device.image().digest();
    let error = open(&device).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("kreon"), "{error}");
    assert_eq!(device.image().digest(), before);
}

#[test]
fn a_device_with_something_else_is_refused_and_left_alone() {
    let device = device();
    device.grow(4 << 20).unwrap();
    let mut bytes = AlignedBuf::new(4096);
    bytes.fill(7);
    device.write_at(0, &bytes).unwrap();
    let before = device.image().digest();
    assert_eq!(
        open(&device).err().unwrap().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(device.image().digest(), before);
}
