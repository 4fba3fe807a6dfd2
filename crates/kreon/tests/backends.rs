//! A store with its own frames and one with the kernel's mapping: the same format and the same answers.
#![cfg(feature = "comparison")]

use std::path::Path;

use kreon::{Backend, ErrorKind, MapAdvice, MappingModes, Store};

const KEYS: u64 = 3000;

fn open(path: &Path, backend: Backend) -> Store {
    let modes = MappingModes {
        backend,
        ..MappingModes::default()
    };
    // Less than the data: spills and evictions all the time.
    let options = Store::options().memory_bytes(8 << 20).l0_bytes(200 << 10);
    options.mapping_modes(modes).open(path).unwrap()
}

fn key(n: u64) -> Vec<u8> {
    format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
}

fn value(n: u64, round: u64) -> Vec<u8> {
    // Short values are in the leaves, long ones in the log, the longest on several pages.
    let len = [20, 300, 3000, 9000][(n % 4) as usize];
    (0..len).map(|at| (n + round * 7 + at) as u8).collect()
}

#[test]
fn each_backend_goes_on_with_what_the_other_wrote() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("store");
    let backends = [
        Backend::Pool,
        Backend::Mmap(MapAdvice::Random),
        Backend::Mmap(MapAdvice::WillNeed),
        Backend::Pool,
    ];
    for (round, backend) in (1..).zip(backends) {
        let store = open(&path, backend);
        let region = store.region("r").unwrap();
        let written = |n: u64, round: u64| match n.is_multiple_of(2) || round == 1 {
            true => value(n, round),
            false => value(n, 1),
        };
        for n in (0..KEYS).filter(|n| round == 1 || n.is_multiple_of(2)) {
            region.put(key(n), value(n, round)).unwrap();
            if n % 97 == 0 {
                let older = n / 2;
                let found = region.get(key(older)).unwrap();
                assert_eq!(found.as_deref(), Some(&written(older, round)[..]));
            }
        }
        store.checkpoint().unwrap();
        let keys: Vec<_> = (0..KEYS).step_by(11).map(key).collect();
        let found = region.multi_get(&keys).unwrap();
        for (n, found) in (0..KEYS).step_by(11).zip(found) {
            assert_eq!(found.as_deref(), Some(&written(n, round)[..]), "{n}");
        }
        let task = store.drive(region.get_async(&key(5)));
        assert_eq!(task.unwrap().as_deref(), Some(&written(5, round)[..]));
        let pairs = region.range(..).map(|pair| pair.unwrap());
        assert_eq!(pairs.count() as u64, KEYS);
        let stats = store.stats();
        assert_eq!(stats.mapping.pages_mapped > 0, backend != Backend::Pool);
        assert_eq!(stats.mapping.pages_read > 0, backend == Backend::Pool);
        drop(region);
        store.verify().unwrap();
        store.close().unwrap();
    }
}

#[test]
fn a_store_that_was_cut_off_is_an_error_and_no_signal() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("store");
    let store = open(&path, Backend::Pool);
    let region = store.region("r").unwrap();
    (0..KEYS).for_each(|n| region.put(key(n), value(n, 1)).unwrap());
    drop(region);
    store.close().unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let len = file.metadata().unwrap().len();
    file.set_len(len / 2 + 1234).unwrap();
    let modes = MappingModes {
        backend: Backend::Mmap(MapAdvice::Random),
        ..MappingModes::default()
    };
    let options = Store::options().memory_bytes(8 << 20).mapping_modes(modes);
    let outcome = options.open(&path).and_then(|store| {
        let region = store.region("r")?;
        (0..KEYS).try_for_each(|n| region.get(key(n)).map(drop))
    });
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corruption);
}
