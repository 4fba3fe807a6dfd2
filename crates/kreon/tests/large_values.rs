//! Values much longer than the store's memory: beside the budget a process takes only the values that its caller holds.
//!
//! Each case runs in a child process, which is this test again: in a control group that allows the budget, the caller's
//! values and some slack, where one can be created, and always with its peak memory measured.

use std::io::{BufRead, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;

use kreon::{Region, Store};

const MIB: usize = 1 << 20;

/// Slack for code, stacks and buffers outside the budget.
const SLACK_BYTES: usize = 32 * MIB;

/// Slack for collection while it moves a long record: its buffers hold a fragment each, and the allocator keeps them
/// for each collecting thread, which are the collector and the compacting thread.
const MOVING_BYTES: usize = 64 * MIB;

/// Pages of code and libraries count for the process, but not for its group if another group has read them first.
const SHARED_BYTES: usize = 4 * MIB;

/// Set in the child: the case, its folder, and the length of its values.
const CASE: &str = "KREON_TEST_LARGE_CASE";
const STORE: &str = "KREON_TEST_LARGE_STORE";
const VALUE_BYTES: &str = "KREON_TEST_LARGE_VALUE_BYTES";
/// Memory budget of the child's store.
const BUDGET_BYTES: &str = "KREON_TEST_LARGE_BUDGET_BYTES";
/// The file for joining the control group, if there is one.
const DOOR: &str = "KREON_TEST_LARGE_DOOR";

/// A case: its name, how many values its caller holds at once, and its work.
type Case = (&'static str, usize, fn(&Place));

const CASES: [Case; 10] = [
    ("put", 1, put),
    ("replay", 0, replay),
    ("get", 1, get),
    ("get_into", 1, get_into),
    ("get_with", 1, get_with),
    ("get_reader", 0, get_reader),
    ("scan", 1, scan),
    ("overwrite", 1, overwrite),
    ("verify", 0, verify),
    ("repair", 1, repair),
];

#[test]
fn a_value_longer_than_the_memory_takes_no_more_than_its_caller_holds() {
    if let Ok(case) = std::env::var(CASE) {
        return run_case(&case);
    }
    run_all(
        "a_value_longer_than_the_memory_takes_no_more_than_its_caller_holds",
        80 * MIB,
        16 * MIB,
    );
}

#[test]
#[ignore = "half a minute and 8 GiB of disk"]
fn the_longest_value_takes_no_more_than_its_caller_holds() {
    if let Ok(case) = std::env::var(CASE) {
        return run_case(&case);
    }
    run_all(
        "the_longest_value_takes_no_more_than_its_caller_holds",
        1024 * MIB,
        256 * MIB,
    );
}

fn run_all(test: &str, value_bytes: usize, budget_bytes: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, (case, held, _)) in CASES.into_iter().enumerate() {
        let moving_bytes = if case == "overwrite" { MOVING_BYTES } else { 0 };
        let allowed_bytes = budget_bytes + held * value_bytes + SLACK_BYTES + moving_bytes;
        let group = Group::new(number, allowed_bytes);
        let mut child = Command::new(std::env::current_exe().expect("this test"));
        child
            .args([test, "--exact", "--include-ignored", "--nocapture"])
            .env(CASE, case)
            .env(STORE, folder.path().join("store"))
            .env(VALUE_BYTES, value_bytes.to_string())
            .env(BUDGET_BYTES, budget_bytes.to_string());
        match &group {
            Some(group) => drop(child.env(DOOR, group.0.join("cgroup.procs"))),
            None => println!("no right to make a control group: only the peak is looked at"),
        }
        let ended = child.output().expect("a child");
        let text = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{case}: {}: {text}", ended.status);
        let peak = text.lines().find_map(|line| line.strip_prefix("peak "));
        let peak: usize = peak.expect(&text).parse().expect("a number");
        println!("{case}: {} of {} MiB", peak / MIB, allowed_bytes / MIB);
        let is_bounded = peak <= allowed_bytes + SHARED_BYTES;
        assert!(is_bounded, "{case}: {peak} of {allowed_bytes}");
    }
}

fn run_case(case: &str) {
    if let Some(door) = std::env::var_os(DOOR) {
        std::fs::write(door, "0").expect("enter the group");
    }
    let bytes = |name: &str| std::env::var(name).expect(name).parse().expect("a number");
    let place = Place {
        path: std::env::var_os(STORE).expect(STORE).into(),
        value_bytes: bytes(VALUE_BYTES),
        budget_bytes: bytes(BUDGET_BYTES),
    };
    let run = CASES.into_iter().find(|(name, ..)| *name == case);
    run.expect("a case").2(&place);
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: usize = peak
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .expect("a peak");
    println!("\npeak {}", kib << 10);
    std::process::exit(0);
}

/// A control group with a limit; removed when dropped.
struct Group(PathBuf);

impl Group {
    fn new(number: usize, limit_bytes: usize) -> Option<Self> {
        let name = format!("kreon-large-{}-{number}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/memory").join(&name);
        let second = Path::new("/sys/fs/cgroup").join(&name);
        [(first, "memory.limit_in_bytes"), (second, "memory.max")]
            .into_iter()
            .find_map(|(folder, file)| {
                std::fs::create_dir(&folder).ok()?;
                let group = Self(folder);
                let limit = std::fs::write(group.0.join(file), limit_bytes.to_string());
                limit.is_ok().then_some(group)
            })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The store of a case.
struct Place {
    path: PathBuf,
    value_bytes: usize,
    budget_bytes: usize,
}

impl Place {
    fn open(&self) -> (Store, Region) {
        let options = Store::options().memory_bytes(self.budget_bytes);
        let store = options.open(&self.path).expect("a store");
        let region = store.region("r").expect("a region");
        // Never closed: the next case replays the log of this one.
        std::mem::forget(store.clone());
        (store, region)
    }

    fn value(&self, seed: usize) -> Vec<u8> {
        let mut value = vec![0; self.value_bytes];
        fill(&mut value, 0, seed);
        value
    }

    /// Compares without a second copy.
    fn check(&self, value: &[u8], seed: usize) {
        assert_eq!(value.len(), self.value_bytes);
        check(value, 0, seed);
    }
}

/// Fills `bytes` with the content of a value from `start` on.
fn fill(bytes: &mut [u8], start: usize, seed: usize) {
    for (at, byte) in (start..).zip(bytes) {
        *byte = ((at / 8 + seed).wrapping_mul(0x9e37_79b9) >> (at % 8)) as u8;
    }
}

fn check(value: &[u8], start: usize, seed: usize) {
    let mut expected = [0; 4096];
    for (start, part) in (start..).step_by(expected.len()).zip(value.chunks(4096)) {
        let expected = &mut expected[..part.len()];
        fill(expected, start, seed);
        assert!(part == expected, "bytes from {start} on");
    }
}

fn put(place: &Place) {
    let (store, region) = place.open();
    region.put("b", place.value(2)).expect("a put");
    region.put("c", "short").expect("a put");
    store.sync().expect("a sync");
}

fn replay(place: &Place) {
    let (_store, region) = place.open();
    assert!(region.contains("b").expect("a look"));
    assert_eq!(
        region.get("c").expect("a get").as_deref(),
        Some(&b"short"[..])
    );
}

fn get(place: &Place) {
    let (_store, region) = place.open();
    let value = region.get("b").expect("a get").expect("a value");
    place.check(&value, 2);
    drop(value);
    let values = region.multi_get(&["a", "b"]).expect("gets");
    place.check(values[1].as_deref().expect("a value"), 2);
}

fn get_into(place: &Place) {
    let (_store, region) = place.open();
    let mut buffer = Vec::new();
    for _ in 0..2 {
        assert!(region.get_into("b", &mut buffer).expect("a get"));
        place.check(&buffer, 2);
    }
    assert!(buffer.capacity() <= place.value_bytes + 4096);
}

fn get_with(place: &Place) {
    let (_store, region) = place.open();
    let shown = region.get_with("b", |value| place.check(value, 2));
    assert!(shown.expect("a get").is_some());
}

fn get_reader(place: &Place) {
    let (_store, region) = place.open();
    let mut reader = region.get_reader("b").expect("a get").expect("a value");
    assert_eq!(reader.len_bytes(), place.value_bytes as u64);
    let mut at = 0;
    loop {
        let bytes = reader.bytes().expect("bytes");
        if bytes.is_empty() {
            break;
        }
        let len = bytes.len();
        check(bytes, at, 2);
        at += len;
        reader.consume(len);
    }
    assert_eq!(at, place.value_bytes);
    let middle = place.value_bytes / 2 + 5;
    reader.seek(SeekFrom::Start(middle as u64)).expect("a seek");
    check(&reader.bytes().expect("bytes")[..1000], middle, 2);
}

fn scan(place: &Place) {
    let (store, region) = place.open();
    region.put("a", place.value(1)).expect("a put");
    region.put("d", place.value(4)).expect("a put");
    store.sync().expect("a sync");
    let mut seen = 0;
    for pair in region.iter() {
        let (key, value) = pair.expect("a pair");
        match &*key {
            b"c" => assert_eq!(value, b"short"),
            _ => place.check(&value, usize::from(key[0] - b'a') + 1),
        }
        seen += 1;
    }
    let mut scan = region.iter();
    let mut shown = |key: &[u8], value: &[u8]| {
        if key != b"c" {
            place.check(value, usize::from(key[0] - b'a') + 1);
        }
        seen += 1;
    };
    while scan.next_back_with(&mut shown).expect("a pair").is_some() {}
    let (mut scan, mut key, mut value) = (region.iter(), Vec::new(), Vec::new());
    while scan.next_into(&mut key, &mut value).expect("a pair") {
        seen += 1;
    }
    assert_eq!(seen, 12);
}

/// The collector moves the live values between the dead ones.
fn overwrite(place: &Place) {
    let (store, region) = place.open();
    for seed in [3, 2] {
        region.put("b", place.value(seed)).expect("a put");
        region.delete("d").expect("a deletion");
        store.checkpoint().expect("a checkpoint");
        region.compact().expect("a compaction");
    }
    region
        .get_with("b", |value| place.check(value, 2))
        .expect("a get");
}

fn verify(place: &Place) {
    let (store, _region) = place.open();
    let report = store.verify().expect("a report");
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_eq!(report.records, 2);
}

fn repair(place: &Place) {
    let target = place.path.with_extension("repaired");
    let options = Store::options().memory_bytes(place.budget_bytes);
    let report = kreon::Repair::new()
        .target(options)
        .run(&place.path, &target);
    assert!(report.expect("a report").is_complete());
}
