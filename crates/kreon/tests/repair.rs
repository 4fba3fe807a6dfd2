//! Repair: intact data is in the target, damaged data is in the report, and no value is wrong.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kreon::{ErrorKind, Options, Repair, RepairReport, Store};

const PAGE: usize = 4096;
const SEGMENT: usize = 2 << 20;
const KEYS: u32 = 400;

type Pairs = BTreeMap<(String, Vec<u8>), Vec<u8>>;
type Ever = BTreeMap<(String, Vec<u8>), Vec<Vec<u8>>>;

fn options() -> Options {
    Store::options()
        .memory_bytes(16 << 20)
        .l0_bytes(256 << 10)
        .background_inline()
}

fn value(key: u32, round: u32) -> Vec<u8> {
    let bytes = [key.to_le_bytes(), round.to_le_bytes()].concat();
    bytes.repeat(if key.is_multiple_of(3) { 4 } else { 60 })
}

/// A store with inline and logged values, long keys, deletions, several checkpoints, a resumed log and a tail behind
/// the marker. With a change feed there was a third region. Returns all values that each key ever had, the current one last.
fn make(path: &Path, changes_kept_bytes: u64) -> (Pairs, Ever) {
    let mut ever: Ever = Ever::new();
    let mut now = Pairs::new();
    for round in 0..3u32 {
        let options = options().changes_kept_bytes(changes_kept_bytes);
        let store = options.open(path).unwrap();
        for name in ["cities", "towns"] {
            let region = store.region(name).unwrap();
            for number in (0..KEYS).filter(|number| number % (round + 1) == 0) {
                let key = match number % 100 {
                    50 => format!("{name}/{number:06}/{}", "x".repeat(1500)),
                    _ => format!("{name}/{number:06}"),
                };
                let place = (name.to_owned(), key.clone().into_bytes());
                if number % 7 == round {
                    region.delete(&key).unwrap();
                    now.remove(&place);
                } else {
                    let value = value(number, round);
                    region.put(&key, &value).unwrap();
                    ever.entry(place.clone()).or_default().push(value.clone());
                    now.insert(place, value);
                }
            }
            if round < 2 {
                store.checkpoint().unwrap();
            }
        }
        if changes_kept_bytes > 0 && round == 1 {
            store.region("gone").unwrap().put("key", "value").unwrap();
            store.drop_region("gone").unwrap();
        }
        store.sync().unwrap();
        store.close().unwrap();
    }
    (now, ever)
}

struct Case {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
    now: Pairs,
    ever: Ever,
}

impl Case {
    fn new() -> Self {
        Self::keeping_log(0)
    }

    fn keeping_log(changes_kept_bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whole");
        let (now, ever) = make(&path, changes_kept_bytes);
        let bytes = fs::read(&path).unwrap();
        Self {
            folder,
            bytes,
            now,
            ever,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes `bytes` as a sparse file.
    fn write(&self, bytes: &[u8]) -> PathBuf {
        use std::os::unix::fs::FileExt;
        let path = self.path("damaged");
        let file = fs::File::create(&path).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        for (index, page) in bytes.chunks(PAGE).enumerate() {
            if page.iter().any(|byte| *byte != 0) {
                file.write_all_at(page, (index * PAGE) as u64).unwrap();
            }
        }
        path
    }

    fn repair(&self, bytes: &[u8]) -> kreon::Result<(RepairReport, Pairs)> {
        self.repair_with(bytes, Repair::new())
    }

    fn repair_with(&self, bytes: &[u8], repair: Repair) -> kreon::Result<(RepairReport, Pairs)> {
        let (source, target) = (self.write(bytes), self.path("target"));
        let _ = fs::remove_file(&target);
        let report = repair.target(options()).run(&source, &target)?;
        assert!(
            fs::read(&source).unwrap() == bytes,
            "the source was written"
        );
        let store = options().create(false).open(&target).unwrap();
        assert!(store.verify().unwrap().is_clean());
        let mut pairs = Pairs::new();
        for name in store.region_names() {
            for pair in store.existing_region(&name).unwrap().iter() {
                let (key, value) = pair.unwrap();
                pairs.insert((name.clone(), key.to_vec()), value.to_vec());
            }
        }
        Ok((report, pairs))
    }

    /// Checks a repair of `bytes` with a readable catalogue: no value is wrong, and missing keys are reported. Returns
    /// their number.
    #[track_caller]
    fn check(&self, bytes: &[u8], what: &str) -> usize {
        let (report, pairs) = self.repair(bytes).unwrap();
        self.judge(&report, &pairs, what)
    }

    #[track_caller]
    fn judge(&self, report: &RepairReport, pairs: &Pairs, what: &str) -> usize {
        let untold = !report.log_holes.is_empty()
            || report.cut_records > 0
            || report.unproven_tail_bytes > 0
            || report.may_be_stale;
        for (place, value) in pairs {
            let is_current = self.now.get(place) == Some(value);
            let was_ever = self
                .ever
                .get(place)
                .is_some_and(|values| values.contains(value));
            assert!(was_ever, "{what}: {} never had this value", shown(&place.1));
            assert!(
                is_current || untold,
                "{what}: {} is stale: {report:?}",
                shown(&place.1)
            );
        }
        let missing: Vec<_> = self
            .now
            .keys()
            .filter(|place| !pairs.contains_key(*place))
            .collect();
        for (name, key) in &missing {
            let Some(region) = report.regions.iter().find(|region| region.name == *name) else {
                assert!(untold, "{what}: {name} is gone");
                continue;
            };
            let is_told = region.lost_keys.iter().any(|lost| key.starts_with(lost))
                || region.lost_ranges.iter().any(|range| {
                    range.start <= *key && range.end.as_ref().is_none_or(|end| key < end)
                });
            assert!(is_told || untold, "{what}: {} vanished", shown(key));
        }
        assert!(missing.is_empty() || !report.is_complete());
        missing.len()
    }

    /// Pages that are not zero.
    fn pages_in_use(&self) -> Vec<usize> {
        let pages = self.bytes.chunks(PAGE).enumerate();
        pages
            .filter(|(_, page)| page.iter().any(|byte| *byte != 0))
            .map(|(index, _)| index)
            .collect()
    }

    fn pages_marked(&self, magic: &[u8; 2]) -> Vec<usize> {
        let pages = self.pages_in_use().into_iter();
        pages
            .filter(|page| &self.bytes[page * PAGE + 4..page * PAGE + 6] == magic)
            .collect()
    }
}

fn shown(key: &[u8]) -> String {
    String::from_utf8_lossy(&key[..key.len().min(20)]).into_owned()
}

fn damage(bytes: &mut [u8], page: usize) {
    bytes[page * PAGE + 100] ^= 0x10;
}

fn zero(bytes: &mut [u8], page: usize) {
    bytes[page * PAGE..(page + 1) * PAGE].fill(0);
}

#[test]
fn a_healthy_store_repairs_to_an_equal_one() {
    let case = Case::new();
    let (report, pairs) = case.repair(&case.bytes).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert!(
        report.damaged_pages.is_empty() && report.notes.is_empty(),
        "{report:?}"
    );
    assert!(pairs == case.now);
    let counted: u64 = report.regions.iter().map(|region| region.pairs).sum();
    assert_eq!(counted, case.now.len() as u64);
}

#[test]
fn a_store_without_superblocks_is_salvaged_whole() {
    let case = Case::new();
    for wipe in [damage, zero] {
        let mut bytes = case.bytes.clone();
        for slot in [0, 8, 16, 24] {
            wipe(&mut bytes, slot);
        }
        let (report, pairs) = case.repair(&bytes).unwrap();
        assert!(pairs == case.now, "{report:?}");
        assert!(
            report.is_complete() && report.damaged_pages.len() == 4,
            "{report:?}"
        );
    }
}

#[test]
fn a_store_without_catalogue_is_salvaged_from_leaves_and_log() {
    let case = Case::new();
    let mut bytes = case.bytes.clone();
    for page in case.pages_marked(b"kC") {
        zero(&mut bytes, page);
    }
    let (report, pairs) = case.repair(&bytes).unwrap();
    // The log of this store is complete from its first write on.
    let values = |pairs: &Pairs| -> BTreeMap<Vec<u8>, Vec<u8>> {
        pairs
            .iter()
            .map(|((_, key), value)| (key.clone(), value.clone()))
            .collect()
    };
    assert!(values(&pairs) == values(&case.now), "{:?}", report.notes);
    let names: Vec<_> = report
        .regions
        .iter()
        .map(|region| region.name.as_str())
        .collect();
    // The records that create the regions have their names.
    assert_eq!(names, ["cities", "towns"]);
}

#[test]
fn what_a_lost_tree_held_comes_from_its_leaves_and_the_log() {
    lose_trees(&Case::new());
}

#[test]
fn what_a_lost_tree_held_comes_from_log_that_is_kept_for_a_change_feed() {
    lose_trees(&Case::keeping_log(64 << 20));
}

fn lose_trees(case: &Case) {
    let mut bytes = case.bytes.clone();
    let level = |page: &usize| case.bytes[page * PAGE + 7];
    let nodes = case.pages_marked(b"kN");
    for page in nodes.iter().filter(|page| level(page) > 0) {
        damage(&mut bytes, *page);
    }
    assert_eq!(case.check(&bytes, "all index nodes"), 0);
    for page in &nodes {
        damage(&mut bytes, *page);
    }
    assert_eq!(case.check(&bytes, "all nodes"), 0);
    // Without the first log segment the older part of the log proves nothing.
    let first_log = case.pages_marked(b"kG")[0];
    for page in first_log..first_log + SEGMENT / PAGE {
        zero(&mut bytes, page);
    }
    assert!(case.check(&bytes, "all nodes and a log segment") > 0);
}

#[test]
fn no_single_damaged_page_makes_a_wrong_answer() {
    let case = Case::new();
    let (mut lossy, mut tried) = (0, 0);
    let step = if std::env::var_os("KREON_REPAIR_ALL").is_some() {
        1
    } else {
        45
    };
    let log = case.pages_marked(b"kG")[0];
    for page in case.pages_in_use() {
        // All pages of the index and of volume metadata; a sample of the pages of the log.
        let is_log = (log + 1..log + SEGMENT / PAGE).contains(&page);
        if is_log && page % step != 0 {
            continue;
        }
        let mut bytes = case.bytes.clone();
        match page % 2 {
            0 => damage(&mut bytes, page),
            _ => zero(&mut bytes, page),
        }
        tried += 1;
        lossy += usize::from(case.check(&bytes, &format!("page {page}")) > 0);
    }
    assert!(lossy > 0 && lossy < tried, "{lossy} of {tried}");
}

#[test]
fn random_damage_in_many_places_makes_no_wrong_answer() {
    let case = Case::new();
    let pages = case.pages_in_use();
    // Damage to the last page of the log looks like a torn tail.
    let log = case.pages_marked(b"kG")[0];
    let is_log = |page: &&usize| (log..log + SEGMENT / PAGE).contains(*page);
    let tail = pages.iter().filter(is_log).max().copied();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..12 {
        let mut bytes = case.bytes.clone();
        for _ in 0..1 + next(40) {
            let page = pages[next(pages.len())];
            match next(3) {
                _ if Some(page) == tail => {}
                0 => zero(&mut bytes, page),
                1 => bytes[page * PAGE..][..PAGE].fill(0xa5),
                _ => bytes[page * PAGE + next(PAGE)] ^= 1 << next(8),
            }
        }
        if next(4) == 0 {
            let len = bytes.len();
            bytes.truncate(len / 2 + next(len / 2));
        }
        case.check(&bytes, &format!("round {round}"));
    }
}

#[test]
fn an_older_value_is_taken_only_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    let store = options().open(&source).unwrap();
    let region = store.region("r").unwrap();
    for (value, filler) in [("old", "a"), ("new", "b")] {
        region.put("key", value.repeat(200)).unwrap();
        region.put(filler, filler.repeat(500)).unwrap();
        store.checkpoint().unwrap();
    }
    store.close().unwrap();
    let mut bytes = fs::read(&source).unwrap();
    let new = "new".repeat(200);
    let at = bytes
        .windows(new.len())
        .position(|found| found == new.as_bytes())
        .unwrap();
    bytes[at + 77] ^= 1;
    fs::write(&source, &bytes).unwrap();
    for (stale, found) in [(false, None), (true, Some("old".repeat(200)))] {
        let repair = Repair::new().target(options()).stale_values(stale);
        let report = repair.run(&source, &target).unwrap();
        assert_eq!(report.regions[0].lost_keys, [b"key"]);
        assert_eq!(report.regions[0].stale_values, 1);
        assert!(!report.is_complete() && report.took_stale_values == stale);
        let store = options().open(&target).unwrap();
        let region = store.existing_region("r").unwrap();
        assert_eq!(
            region.get("key").unwrap().as_deref(),
            found.as_deref().map(str::as_bytes)
        );
        assert_eq!(
            region.get("b").unwrap().as_deref(),
            Some("b".repeat(500).as_bytes())
        );
        store.close().unwrap();
        fs::remove_file(&target).unwrap();
    }
}

#[test]
fn a_damaged_record_behind_the_marker_is_a_hole_and_what_follows_is_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    let store = options().open(&source).unwrap();
    let region = store.region("r").unwrap();
    for name in ["first", "second", "third"] {
        region.put(name, name.repeat(100)).unwrap();
        store.sync().unwrap();
    }
    store.close().unwrap();
    let mut bytes = fs::read(&source).unwrap();
    let second = "second".repeat(100);
    let at = bytes
        .windows(600)
        .position(|found| found == second.as_bytes())
        .unwrap();
    bytes[at + 300] ^= 1;
    fs::write(&source, &bytes).unwrap();
    let refused = options().open(&source).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corruption);
    assert!(refused.to_string().contains("repair"), "{refused}");
    let report = Repair::new()
        .target(options())
        .run(&source, &target)
        .unwrap();
    assert_eq!(report.log_holes.len(), 1, "{report:?}");
    assert!(!report.is_complete());
    let store = options().open(&target).unwrap();
    let keys: Vec<_> = store
        .existing_region("r")
        .unwrap()
        .iter()
        .keys()
        .map(|key| key.unwrap().to_vec())
        .collect();
    assert_eq!(keys, [b"first".to_vec(), b"third".to_vec()]);
}
