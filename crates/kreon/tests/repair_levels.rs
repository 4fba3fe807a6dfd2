//! Repair of regions with several levels, deleted ranges and moved records: no value is wrong, and missing keys are
//! reported.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kreon::{Options, Repair, RepairReport, Store};

const PAGE: usize = 4096;
const KEYS: u64 = 1500;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Store::options()
        .memory_bytes(16 << 20)
        .l0_bytes(4 << 10)
        .growth_factor(2)
        .background_inline()
}

fn name(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % end
    }
}

/// A store, its content, and all values that each key ever had.
struct Case {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
    now: Pairs,
    ever: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

impl Case {
    /// A case with `writes`, some of which are only in the log.
    fn new(writes: u64, len_bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whole");
        let (mut now, mut ever) = (Pairs::new(), BTreeSet::new());
        let mut dice = Dice(0x9e37_79b9);
        let store = options().open(&path).unwrap();
        let region = store.region("region").unwrap();
        for write in 0..writes {
            let number = dice.below(KEYS);
            let key = name(number);
            match dice.below(24) {
                0 => {
                    let behind = number + 1 + dice.below(20);
                    region.delete_range(key.clone()..name(behind)).unwrap();
                    now.retain(|held, _| *held < key || *held >= name(behind));
                }
                1..=3 => {
                    region.delete(&key).unwrap();
                    now.remove(&key);
                }
                _ => {
                    let mut value = write.to_le_bytes().to_vec();
                    value.resize(8 + dice.below(len_bytes) as usize, number as u8);
                    region.put(&key, &value).unwrap();
                    ever.insert((key.clone(), value.clone()));
                    now.insert(key, value);
                }
            }
        }
        store.sync().unwrap();
        store.close().unwrap();
        drop((region, store));
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

    fn repair(&self, bytes: &[u8], repair: Repair) -> (RepairReport, Pairs) {
        let (source, target) = (self.path("damaged"), self.path("target"));
        write_sparse(&source, bytes);
        let _ = fs::remove_file(&target);
        let whole = Store::options().memory_bytes(16 << 20).background_inline();
        let report = repair.target(whole.clone()).run(&source, &target).unwrap();
        let store = whole.create(false).open(&target).unwrap();
        assert!(store.verify().unwrap().is_clean());
        let region = store.existing_region("region").unwrap();
        let pairs = region.iter().map(|pair| {
            let (key, value) = pair.unwrap();
            (key.to_vec(), value.to_vec())
        });
        (report, pairs.collect())
    }

    /// Checks that all values are current and missing keys are reported; returns the number of missing keys.
    #[track_caller]
    fn check(&self, bytes: &[u8], what: &str) -> usize {
        let (report, pairs) = self.repair(bytes, Repair::new());
        for (key, value) in &pairs {
            let pair = (key.clone(), value.clone());
            assert!(
                self.ever.contains(&pair),
                "{what}: {key:?} never had this value"
            );
            let is_current = self.now.get(key) == Some(value);
            assert!(
                is_current || report.may_be_stale,
                "{what}: {} is stale",
                String::from_utf8_lossy(key)
            );
        }
        let missing: Vec<_> = self
            .now
            .keys()
            .filter(|key| !pairs.contains_key(*key))
            .collect();
        let region = report.regions.iter().find(|region| region.name == "region");
        let region = region.unwrap();
        for key in &missing {
            let is_told = region.lost_keys.contains(key)
                || region.lost_ranges.iter().any(|range| {
                    range.start <= **key && range.end.as_ref().is_none_or(|end| *key < end)
                });
            assert!(
                is_told || report.may_be_stale,
                "{what}: {} vanished",
                String::from_utf8_lossy(key)
            );
        }
        assert!(missing.is_empty() || !report.is_complete(), "{what}");
        missing.len()
    }

    fn pages_marked(&self, magic: &[u8; 2]) -> Vec<usize> {
        let pages = self.bytes.chunks(PAGE).enumerate();
        let marked = pages.filter(|(_, page)| page[4..6] == *magic);
        marked.map(|(index, _)| index).collect()
    }

    /// Damages `pages` and the first part of the log, which would otherwise replace all losses.
    fn damaged(&self, pages: &[usize]) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let log = self.pages_marked(b"kG")[0] + 1;
        bytes[log * PAGE..(log + 100) * PAGE].fill(0);
        for page in pages {
            bytes[page * PAGE + 100] ^= 0x10;
        }
        bytes
    }
}

/// Writes `bytes` without pages of zeroes.
fn write_sparse(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = fs::File::create(path).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    for (index, page) in bytes.chunks(PAGE).enumerate() {
        if page.iter().any(|byte| *byte != 0) {
            file.write_all_at(page, (index * PAGE) as u64).unwrap();
        }
    }
}

const SMALL_BYTES: u64 = 50;

#[test]
fn each_lost_node_of_several_trees_is_told_and_brings_no_old_value_back() {
    let case = Case::new(7000, SMALL_BYTES);
    let store = options().open(case.path("whole")).unwrap();
    let stats = store.stats();
    let trees = stats.levels.iter().filter(|level| level.bytes > 0).count();
    assert!(trees > 1, "{trees} trees");
    drop(store);
    assert_eq!(case.check(&case.bytes, "whole"), 0);
    let nodes = case.pages_marked(b"kN");
    let mut cost = 0;
    for page in nodes.iter().step_by(nodes.len() / 14 + 1) {
        let missing = case.check(&case.damaged(&[*page]), &format!("node {page}"));
        cost += usize::from(missing > 0);
    }
    assert!(cost > 0, "{cost} nodes were missed");
}

#[test]
fn several_lost_nodes_bring_no_old_value_back_untold() {
    let case = Case::new(7000, SMALL_BYTES);
    let nodes = case.pages_marked(b"kN");
    for first in (0..nodes.len()).step_by(nodes.len() / 5 + 1) {
        let lost: Vec<_> = nodes.iter().skip(first).step_by(11).copied().collect();
        case.check(&case.damaged(&lost), &format!("nodes {lost:?}"));
    }
}
