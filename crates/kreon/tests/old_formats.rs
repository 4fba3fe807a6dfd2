//! A store written in an older format opens; a store of a newer format is left alone.
//!
//! A fixture is a volume without its zeroes: length of the volume (8 bytes), then offset (8), length (4) and bytes of
//! each run that is not zero. `cargo test -p kreon --test old_formats -- --ignored` rewrites the fixture of the current
//! format.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kreon::{ErrorKind, Options, Store};

type Content = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

fn options() -> Options {
    Store::options().memory_bytes(16 << 20).background_inline()
}

fn fixture(version: u8) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/format_{version}.runs"))
}

/// Content of the store of format 1.
fn content_of_format_1() -> Content {
    let mut cities = BTreeMap::new();
    for number in 0..60u32 {
        // 7, 17, 27 and so on were deleted, 3 was deleted behind the last checkpoint, 4 rewritten there.
        if number % 10 != 7 && number != 3 {
            let value = format!("inhabitants of {number}");
            cities.insert(format!("city/{number:04}").into_bytes(), value.into_bytes());
        }
    }
    cities.insert(b"city/0004".to_vec(), b"behind the marker".to_vec());
    cities.insert(b"".to_vec(), b"the empty key".to_vec());
    cities.insert(b"after the resume".to_vec(), b"second run".to_vec());
    let mut texts = BTreeMap::new();
    for number in 0..12u8 {
        texts.insert(vec![number, 0xff, 0], vec![number; 500]);
    }
    texts.insert(
        [vec![b'k'; 3000], b"1".to_vec()].concat(),
        b"a long key".to_vec(),
    );
    texts.insert([vec![b'k'; 3000], b"2".to_vec()].concat(), vec![9; 700]);
    Content::from([
        ("cities".to_owned(), cities),
        ("empty".to_owned(), BTreeMap::new()),
        ("texts".to_owned(), texts),
    ])
}

/// Content of the store of a format: since format 5 with keys that expire.
fn content_of(version: u8) -> Content {
    let mut content = content_of_format_1();
    if version >= 5 {
        let pairs = [("inline", vec![1; 20]), ("logged", vec![2; 500])];
        let pairs = pairs.map(|(key, value)| (key.as_bytes().to_vec(), value));
        content.insert("expiring".to_owned(), pairs.into());
    }
    content
}

/// Writes the store of [`content_of`] the present format.
fn write_store(path: &Path) {
    let store = options().open(path).unwrap();
    let (cities, texts) = (
        store.region("cities").unwrap(),
        store.region("texts").unwrap(),
    );
    store.region("empty").unwrap();
    let expiring = store.region("expiring").unwrap();
    for (key, value) in &content_of(5)["expiring"] {
        expiring.put_with_ttl(key, value, Duration::MAX).unwrap();
    }
    expiring
        .put_with_ttl("gone", "v", Duration::from_nanos(1))
        .unwrap();
    store
        .region("dropped")
        .unwrap()
        .put("gone", "gone")
        .unwrap();
    for number in 0..60u32 {
        let key = format!("city/{number:04}");
        cities
            .put(&key, format!("inhabitants of {number}"))
            .unwrap();
    }
    for (key, value) in &content_of_format_1()["texts"] {
        texts.put(key, value).unwrap();
    }
    // Deletions in the log and, because a snapshot sees the deleted versions, in the tree.
    let snapshot = store.snapshot();
    for number in (7..60u32).step_by(10) {
        cities.delete(format!("city/{number:04}")).unwrap();
    }
    store.checkpoint().unwrap();
    drop(snapshot);
    store.drop_region("dropped").unwrap();
    cities.put("", "the empty key").unwrap();
    store.close().unwrap();
    let store = options().open(path).unwrap();
    let cities = store.region("cities").unwrap();
    let mut batch = kreon::WriteBatch::new();
    batch.put(&cities, "city/0004", "behind the marker");
    batch.delete(&cities, "city/0003");
    store.write(batch, kreon::Durability::Sync).unwrap();
    store.checkpoint_l0().unwrap();
    cities.put("after the resume", "second run").unwrap();
    store.close().unwrap();
}

fn pack(volume: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 64;
    let mut packed = (volume.len() as u64).to_le_bytes().to_vec();
    let is_zero = |block: &&[u8]| block.iter().all(|byte| *byte == 0);
    let blocks: Vec<&[u8]> = volume.chunks(BLOCK).collect();
    let mut at = 0;
    while at < blocks.len() {
        let zeroes = blocks[at..]
            .iter()
            .take_while(|block| is_zero(block))
            .count();
        at += zeroes;
        let run = blocks[at..]
            .iter()
            .take_while(|block| !is_zero(block))
            .count();
        if run > 0 {
            let bytes = blocks[at..at + run].concat();
            packed.extend(((at * BLOCK) as u64).to_le_bytes());
            packed.extend((bytes.len() as u32).to_le_bytes());
            packed.extend(bytes);
        }
        at += run;
    }
    packed
}

fn unpack(packed: &[u8], path: &Path) {
    let file = fs::File::create(path).unwrap();
    let (len, mut rest) = packed.split_first_chunk::<8>().unwrap();
    file.set_len(u64::from_le_bytes(*len)).unwrap();
    while let Some((offset, behind)) = rest.split_first_chunk::<8>() {
        let (len, behind) = behind.split_first_chunk::<4>().unwrap();
        let (bytes, behind) = behind.split_at(u32::from_le_bytes(*len) as usize);
        file.write_all_at(bytes, u64::from_le_bytes(*offset))
            .unwrap();
        rest = behind;
    }
}

fn read_all(store: &Store) -> Content {
    let regions = store.region_names().into_iter().map(|name| {
        let region = store.existing_region(&name).unwrap();
        let pairs = region.iter().map(Result::unwrap);
        (
            name,
            pairs
                .map(|(key, value)| (key.to_vec(), value.to_vec()))
                .collect(),
        )
    });
    regions.collect()
}

#[test]
#[ignore = "writes the fixture of the present format"]
fn write_the_fixture_of_the_present_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    write_store(&path);
    let volume = fs::read(&path).unwrap();
    // The version is in the first superblock slot.
    fs::write(fixture(volume[6]), pack(&volume)).unwrap();
}

#[test]
fn a_store_of_format_1_opens() {
    opens(1);
}

/// The same content as format 1, and an image of L0.
#[test]
fn a_store_of_format_2_opens() {
    opens(2);
}

/// The same content again; the store does not use all that the format offers.
#[test]
fn a_store_of_format_3_opens() {
    opens(3);
}

/// The same.
#[test]
fn a_store_of_format_4_opens() {
    opens(4);
}

/// The same and keys that expire, one of which had.
#[test]
fn a_store_of_format_5_opens() {
    opens(5);
}

fn opens(version: u8) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    unpack(&fs::read(fixture(version)).unwrap(), &path);
    let mut expected = content_of(version);
    let store = options().create(false).open(&path).unwrap();
    assert!(read_all(&store) == expected);
    assert_eq!(store.stats().image_bytes > 0, version > 1);
    assert_eq!(store.verify().unwrap().problems, Vec::<String>::new());
    let texts = store.existing_region("texts").unwrap();
    let long = [vec![b'k'; 3000], b"1".to_vec()].concat();
    assert_eq!(
        texts.get(&long).unwrap().as_deref(),
        Some(&b"a long key"[..])
    );
    // The store can be used further by this build.
    let cities = store.existing_region("cities").unwrap();
    cities.put("new", "value").unwrap();
    cities.delete("city/0000").unwrap();
    store.checkpoint().unwrap();
    store.close().unwrap();
    let changed = expected.get_mut("cities").unwrap();
    changed.insert(b"new".to_vec(), b"value".to_vec());
    changed.remove(b"city/0000".as_slice());
    let store = options().create(false).open(&path).unwrap();
    assert!(read_all(&store) == expected);
    assert_eq!(store.verify().unwrap().problems, Vec::<String>::new());
}

#[test]
fn a_store_of_any_format_is_repaired_to_an_equal_one() {
    for version in 1..=5 {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("store"), folder.path().join("target"));
        unpack(&fs::read(fixture(version)).unwrap(), &path);
        let report = kreon::Repair::new()
            .target(options())
            .run(&path, &target)
            .unwrap();
        assert!(report.is_complete(), "{report:?}");
        assert!(read_all(&options().open(&target).unwrap()) == content_of(version));
    }
}

#[test]
fn a_store_of_a_newer_format_is_refused_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (path, target) = (folder.path().join("store"), folder.path().join("target"));
    unpack(&fs::read(fixture(1)).unwrap(), &path);
    let mut bytes = fs::read(&path).unwrap();
    for slot in [0usize, 8, 16, 24] {
        let page = &mut bytes[slot * 4096..][..4096];
        page[6] = 200;
        // The checksum of a superblock covers the store id and the page number before its bytes.
        let front = [&page[16..24], &(slot as u64).to_le_bytes(), &[0; 4]].concat();
        let checksum = crc32c(&[&front, &page[4..]].concat());
        page[..4].copy_from_slice(&checksum.to_le_bytes());
    }
    fs::write(&path, &bytes).unwrap();
    let opened = options().open(&path).unwrap_err();
    let repaired = kreon::Repair::new().run(&path, &target).unwrap_err();
    for error in [opened, repaired] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("newer format, 200"), "{error}");
    }
    assert!(fs::read(&path).unwrap() == bytes && !target.exists());
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    })
}
