//! Commits where the store cannot do what it should: no space, a failed flush, the end.

use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{ErrorKind, Result};
use kreon_device::Device;
use kreon_engine::{
    Durability, Engine, Isolation, Operation, Own, RegionState, TRANSACTION_BYTES_MAX, Terms,
    Transaction,
};
use kreon_sim::{Call, Effect, Fault, SimDevice, SimOptions};
use kreon_torture::settings::options;

const SPACE_BYTES: u64 = 24 << 20;

fn device(space_bytes_max: u64) -> Arc<SimDevice> {
    Arc::new(SimDevice::new(SimOptions {
        record: false,
        space_bytes_max,
        ..SimOptions::default()
    }))
}

fn open(device: &Arc<SimDevice>) -> (Engine, Arc<RegionState>) {
    let engine = Engine::open(Arc::clone(device) as Arc<dyn Device>, options()).unwrap();
    let region = engine.region("r").unwrap();
    (engine, region)
}

fn begin(engine: &Engine) -> Transaction {
    engine.transaction(Isolation::Serializable, TRANSACTION_BYTES_MAX)
}

fn put(engine: &Engine, region: &RegionState, key: &[u8], value: &[u8]) -> Result<()> {
    let operation = Operation {
        region,
        key,
        value: Some(value),
        is_range: false,
        terms: Terms::default(),
    };
    engine.write(&[operation], Durability::Buffered)
}

/// Keys and lengths of values.
fn pairs(engine: &Engine, region: &Arc<RegionState>) -> Vec<(Vec<u8>, usize)> {
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let mut scan = engine.scan(region, engine.snapshot(), bounds);
    let mut pairs = Vec::new();
    while let Some(pair) = scan.next_with(|k, v| (k.to_vec(), v.len())).unwrap() {
        pairs.push(pair);
    }
    pairs
}

/// Commits values of so many bytes under so many keys, and a deletion of `kept`.
fn commit_much(
    engine: &Engine,
    region: &Arc<RegionState>,
    keys: u8,
    len_bytes: usize,
) -> ErrorKind {
    let mut transaction = begin(engine);
    assert!(transaction.get(region, b"kept", Own).unwrap().is_some());
    transaction.delete(region, b"kept").unwrap();
    for key in 0..keys {
        let value = vec![key; len_bytes];
        transaction.put(region, &[b'n', key], &value).unwrap();
    }
    let error = engine.commit(transaction, Durability::Sync).unwrap_err();
    error.kind()
}

#[test]
fn a_commit_that_found_no_space_leaves_nothing_to_see() {
    let device = device(SPACE_BYTES);
    let (engine, region) = open(&device);
    put(&engine, &region, b"kept", &[1; 300]).unwrap();
    let before = pairs(&engine, &region);
    // More than the device has, at once.
    assert_eq!(
        commit_much(&engine, &region, 20, 2 << 20),
        ErrorKind::OutOfSpace
    );
    assert_eq!(pairs(&engine, &region), before);
    // More than is left of it.
    let mut filled = 0_u32;
    let full = loop {
        let key = [b"f".as_slice(), &filled.to_be_bytes()].concat();
        match put(&engine, &region, &key, &[2; 60_000]) {
            Ok(()) => filled += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), ErrorKind::OutOfSpace, "{full}");
    let before = pairs(&engine, &region);
    assert_eq!(
        commit_much(&engine, &region, 60, 60_000),
        ErrorKind::OutOfSpace
    );
    assert_eq!(pairs(&engine, &region), before);

    // One that only deletes goes through, and makes room.
    let mut transaction = begin(&engine);
    let bounds = (
        Bound::Included(b"f".to_vec()),
        Bound::Excluded(b"g".to_vec()),
    );
    transaction.delete_range(&region, bounds).unwrap();
    transaction.delete(&region, b"nothing").unwrap();
    engine.commit(transaction, Durability::Sync).unwrap();
    engine.checkpoint().unwrap();
    let kept = [(b"kept".to_vec(), 300)];
    assert_eq!(pairs(&engine, &region), kept);
    engine.close().unwrap();
    drop((engine, region));
    let (engine, region) = open(&device);
    assert_eq!(pairs(&engine, &region), kept);
    assert!(engine.verify().unwrap().is_clean());
}

#[test]
fn a_poisoned_store_refuses_commits_and_shows_open_transactions_what_they_saw() {
    let device = device(u64::MAX);
    let (engine, region) = open(&device);
    put(&engine, &region, b"a", b"old").unwrap();
    engine.sync().unwrap();
    let (mut open_one, mut failing) = (begin(&engine), begin(&engine));
    open_one.put(&region, b"b", b"own").unwrap();
    failing.put(&region, b"a", b"newer").unwrap();
    device.inject(Fault::nth(1, Call::Flush, Effect::Io));
    let error = engine.commit(failing, Durability::Sync).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    // For readers it was applied; whether it is durable nobody knows.
    let now = engine.get(&region, b"a", None, <[u8]>::to_vec);
    assert_eq!(now.unwrap().unwrap(), b"newer");

    assert_eq!(open_one.get(&region, b"a", Own).unwrap().unwrap(), b"old");
    assert_eq!(open_one.get(&region, b"b", Own).unwrap().unwrap(), b"own");
    for durability in [Durability::Buffered, Durability::Sync] {
        let mut late = begin(&engine);
        late.put(&region, b"c", b"late").unwrap();
        let error = engine.commit(late, durability).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    }
    let error = engine.commit(open_one, Durability::Sync).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    let keys: Vec<_> = pairs(&engine, &region)
        .into_iter()
        .map(|pair| pair.0)
        .collect();
    assert_eq!(keys, [b"a"]);
}

#[test]
fn a_store_that_is_closed_beside_open_transactions_has_nothing_of_them() {
    let device = device(u64::MAX);
    let (engine, region) = open(&device);
    put(&engine, &region, b"a", b"old").unwrap();
    let mut transaction = begin(&engine);
    transaction.get(&region, b"a", Own).unwrap();
    transaction.put(&region, b"a", b"new").unwrap();
    transaction
        .delete_range(&region, (Bound::Unbounded, Bound::Unbounded))
        .unwrap();
    transaction.put(&region, b"b", b"new").unwrap();
    let mut reader = begin(&engine);
    engine.close().unwrap();

    assert_eq!(
        reader.get(&region, b"a", Own).unwrap_err().kind(),
        ErrorKind::Closed
    );
    let error = engine.commit(transaction, Durability::Sync).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    drop((reader, engine, region));
    let (engine, region) = open(&device);
    assert_eq!(pairs(&engine, &region), [(b"a".to_vec(), 3)]);
}
