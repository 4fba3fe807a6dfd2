//! Repair: data that may be incomplete or stale is never reported as complete and current.

use std::fs;
use std::path::PathBuf;

use kreon::{Options, Repair, RepairReport, Store};

const PAGE: usize = 4096;
const SEGMENT: usize = 2 << 20;

fn options() -> Options {
    Store::options()
        .memory_bytes(16 << 20)
        .l0_bytes(256 << 10)
        .background_inline()
}

/// A store to be damaged.
struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    /// One opening of the store.
    fn run(&self, work: impl FnOnce(&Store)) {
        let store = options().open(self.source()).unwrap();
        work(&store);
        store.close().unwrap();
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.source()).unwrap()
    }

    /// Repairs `bytes`; returns the report and the repaired store.
    fn repair(&self, bytes: &[u8]) -> (RepairReport, Store) {
        self.repair_with(bytes, Repair::new())
    }

    fn repair_with(&self, bytes: &[u8], repair: Repair) -> (RepairReport, Store) {
        fs::write(self.source(), bytes).unwrap();
        let target = self.folder.path().join("target");
        let report = repair
            .target(options())
            .run(self.source(), &target)
            .unwrap();
        (report, options().create(false).open(&target).unwrap())
    }
}

fn pages_marked(bytes: &[u8], magic: &[u8; 2]) -> Vec<usize> {
    let pages = bytes.chunks(PAGE).enumerate();
    pages
        .filter(|(_, page)| page.get(4..6) == Some(magic))
        .map(|(index, _)| index)
        .collect()
}

fn damage(bytes: &mut [u8], pages: &[usize]) {
    for page in pages {
        bytes[page * PAGE + 100] ^= 0x10;
    }
}

fn place_of(bytes: &[u8], value: &str) -> usize {
    let mut places = bytes.windows(value.len());
    places.position(|found| found == value.as_bytes()).unwrap()
}

fn get(store: &Store, region: &str, key: &str) -> Option<String> {
    let region = store.existing_region(region).ok()?;
    let value = region.get(key).unwrap()?;
    Some(String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn a_damaged_last_record_before_the_marker_is_no_end_of_the_log() {
    let case = Case::new();
    let (old, new) = ("old".repeat(200), "new".repeat(200));
    case.run(|store| {
        let region = store.region("r").unwrap();
        region.put("key", &old).unwrap();
        region.put("key", &new).unwrap();
        store.checkpoint().unwrap();
    });
    let mut bytes = case.bytes();
    let leaves = pages_marked(&bytes, b"kN");
    damage(&mut bytes, &leaves);
    let (report, store) = case.repair(&bytes);
    assert_eq!(get(&store, "r", "key"), Some(new.clone()), "{report:?}");
    drop(store);
    fs::remove_file(case.folder.path().join("target")).unwrap();
    let at = place_of(&bytes, &new);
    bytes[at + 77] ^= 1;
    let (report, store) = case.repair(&bytes);
    assert!(!report.is_complete(), "{report:?}");
    assert_eq!(get(&store, "r", "key"), None);
}

#[test]
fn records_of_many_runs_in_one_segment_make_up_for_lost_leaves() {
    const RUNS: u32 = 80;
    let case = Case::new();
    for run in 0..RUNS {
        case.run(|store| {
            let region = store.region("r").unwrap();
            region.put(format!("{run:03}"), "v".repeat(300)).unwrap();
            store.sync().unwrap();
        });
    }
    case.run(|store| store.checkpoint().unwrap());
    let mut bytes = case.bytes();
    let leaves = pages_marked(&bytes, b"kN");
    assert!(!leaves.is_empty());
    damage(&mut bytes, &leaves);
    let (report, store) = case.repair(&bytes);
    let region = store.existing_region("r").unwrap();
    assert_eq!(region.iter().count() as u32, RUNS, "{report:?}");
}

#[test]
fn without_a_catalogue_nothing_is_told_to_be_complete() {
    let case = Case::new();
    case.run(|store| {
        let region = store.region("r").unwrap();
        region.put("key", "value").unwrap();
        store.checkpoint().unwrap();
    });
    let mut bytes = case.bytes();
    for page in pages_marked(&bytes, b"kC") {
        bytes[page * PAGE..][..PAGE].fill(0);
    }
    let (report, store) = case.repair(&bytes);
    // The record that creates the region has its name.
    assert_eq!(get(&store, "r", "key").as_deref(), Some("value"));
    assert!(report.may_be_stale && !report.is_complete(), "{report:?}");
}

#[test]
fn equal_keys_of_two_regions_are_both_taken_from_leaves_without_index() {
    let case = Case::new();
    case.run(|store| {
        for name in ["one", "two"] {
            store.region(name).unwrap().put("config", name).unwrap();
        }
        store.checkpoint().unwrap();
    });
    let mut bytes = case.bytes();
    for page in pages_marked(&bytes, b"kC") {
        bytes[page * PAGE..][..PAGE].fill(0);
    }
    for page in pages_marked(&bytes, b"kG") {
        bytes[page * PAGE..][..SEGMENT].fill(0);
    }
    let (report, store) = case.repair(&bytes);
    let values = ["region-1", "region-2"].map(|name| get(&store, name, "config"));
    let expected = ["one", "two"].map(|value| Some(value.to_owned()));
    assert_eq!(values, expected, "{report:?}");
}

#[test]
fn a_log_that_ends_where_the_volume_is_cut_off_is_told() {
    let case = Case::new();
    case.run(|store| {
        let region = store.region("r").unwrap();
        region.put("key", "v".repeat(300)).unwrap();
        store.sync().unwrap();
    });
    let bytes = case.bytes();
    let log = pages_marked(&bytes, b"kG")[0];
    for pages in [0, 1] {
        let (report, store) = case.repair(&bytes[..(log + pages) * PAGE]);
        assert_eq!(get(&store, "r", "key"), None);
        assert!(report.unread_log_end && !report.is_complete(), "{report:?}");
        drop(store);
        fs::remove_file(case.folder.path().join("target")).unwrap();
    }
}

#[test]
fn a_superblock_that_was_put_back_is_told() {
    let case = Case::new();
    case.run(|store| {
        let region = store.region("r").unwrap();
        region.put("key", "v".repeat(300)).unwrap();
        store.checkpoint().unwrap();
    });
    let before = case.bytes();
    case.run(|store| {
        let region = store.existing_region("r").unwrap();
        region.put("later", "v".repeat(300)).unwrap();
        store.sync().unwrap();
    });
    let mut bytes = case.bytes();
    for page in [0, 8, 16, 24] {
        bytes[page * PAGE..][..PAGE].copy_from_slice(&before[page * PAGE..][..PAGE]);
    }
    let (report, store) = case.repair(&bytes);
    assert_eq!(get(&store, "r", "key"), Some("v".repeat(300)));
    assert!(report.may_be_stale && !report.is_complete(), "{report:?}");
}

#[test]
fn an_older_value_never_takes_the_place_of_a_current_one() {
    const KEYS: u32 = 400;
    let case = Case::new();
    let value = |key: u32, round: &str| format!("{key:04}{round}");
    for round in ["old", "new"] {
        case.run(|store| {
            let region = store.region("r").unwrap();
            for key in 0..KEYS {
                region.put(format!("{key:04}"), value(key, round)).unwrap();
            }
            store.checkpoint().unwrap();
        });
    }
    let mut bytes = case.bytes();
    let (index, leaves): (Vec<_>, Vec<_>) = pages_marked(&bytes, b"kN")
        .into_iter()
        .partition(|page| bytes[page * PAGE + 7] > 0);
    assert!(!index.is_empty() && leaves.len() > 2);
    damage(&mut bytes, &index);
    // One leaf is lost, and so are the newest values in the log: the readable value is older than the other leaves.
    damage(&mut bytes, &leaves[leaves.len() - 1..]);
    let log = pages_marked(&bytes, b"kG")[0];
    for page in bytes[log * PAGE..][..SEGMENT].chunks_mut(PAGE) {
        if page.windows(3).any(|found| found == b"new") {
            page.fill(0xa5);
        }
    }
    let mut current = [0; 2];
    for stale in [false, true] {
        let (report, store) = case.repair_with(&bytes, Repair::new().stale_values(stale));
        assert!(!report.is_complete() && report.took_stale_values == stale);
        current[usize::from(stale)] = (0..KEYS)
            .filter(|key| get(&store, "r", &format!("{key:04}")) == Some(value(*key, "new")))
            .count();
        drop(store);
        fs::remove_file(case.folder.path().join("target")).unwrap();
    }
    assert!(current[0] > 0 && current[0] < KEYS as usize, "{current:?}");
    assert!(current[1] >= current[0], "{current:?}");
}

#[test]
fn a_value_from_before_a_load_never_takes_the_place_of_a_loaded_one() {
    let case = Case::new();
    let keys = || (0..300).map(|n| format!("key-{n:04}"));
    case.run(|store| {
        let region = store.region("r").unwrap();
        for key in keys() {
            region.put(key, "old").unwrap();
        }
        region.ingest(keys().map(|key| (key, "loaded"))).unwrap();
        region.put("key-0007", "newest").unwrap();
        region.put("key-9999", "new").unwrap();
        store.checkpoint().unwrap();
    });
    let mut bytes = case.bytes();
    let (report, store) = case.repair(&bytes);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(get(&store, "r", "key-0100").as_deref(), Some("loaded"));
    drop(store);
    fs::remove_file(case.folder.path().join("target")).unwrap();
    let leaves = pages_marked(&bytes, b"kN");
    damage(&mut bytes, &leaves);
    let (report, store) = case.repair(&bytes);
    assert!(!report.is_complete(), "{report:?}");
    // The write after the load is in the log.
    assert_eq!(get(&store, "r", "key-0007").as_deref(), Some("newest"));
    assert_eq!(get(&store, "r", "key-9999").as_deref(), Some("new"));
    let region = store.existing_region("r").unwrap();
    assert_eq!(region.iter().count(), 2, "{report:?}");
}
