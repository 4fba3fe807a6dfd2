//! Stores that are open for reading only: beside each other, never beside a writer, and without a byte written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use std::io::{BufRead, BufReader};

use kreon::{Backup, Durability, ErrorKind, Options, Result, Store, Update, WriteBatch};

/// What a child process of a test is told to do.
const TASK: &str = "KREON_TEST_TASK";
const STORE: &str = "KREON_TEST_STORE";

fn options() -> Options {
    Store::options().memory_bytes(16 << 20)
}

fn reading() -> Options {
    options().read_only(true)
}

fn value(number: u32) -> Vec<u8> {
    vec![number as u8; 40 + number as usize % 300]
}

/// A store with spilled pairs, others in the log alone, deletions of both kinds and regions that no checkpoint has.
fn filled(folder: &Path) -> PathBuf {
    let path = folder.join("store");
    let store = options().l0_bytes(512 << 10).open(&path).unwrap();
    let region = store.region("first").unwrap();
    for number in 0..6000_u32 {
        region.put(number.to_be_bytes(), value(number)).unwrap();
    }
    store.checkpoint().unwrap();
    let late = store.region("made late").unwrap();
    for number in 0..1000_u32 {
        region.put((7 * number).to_be_bytes(), b"newer").unwrap();
        late.put(format!("{number}/{}", "long".repeat(300)), b"x")
            .unwrap();
    }
    region.delete(3_u32.to_be_bytes()).unwrap();
    let gone = 100_u32.to_be_bytes()..200_u32.to_be_bytes();
    region.delete_range(gone).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&late, "a", "b");
    batch.put(&region, "a", vec![7; 100_000]);
    store.write(batch, Durability::Sync).unwrap();
    store.close().unwrap();
    path
}

type Content = BTreeMap<(String, Vec<u8>), Vec<u8>>;

fn content(store: &Store) -> Content {
    let mut content = Content::new();
    for name in store.region_names() {
        for pair in store.existing_region(&name).unwrap().iter() {
            let (key, value) = pair.unwrap();
            content.insert((name.clone(), key.to_vec()), value.to_vec());
        }
    }
    content
}

/// Runs the test `child` of this program as a process of its own with a task.
fn begin(task: &str, store: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(TASK, task)
        .env(STORE, store)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The next line of the child's that is for the parent. Its output stays open: the harness prints more at the end.
fn told(child: &mut Child) -> String {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let mut told = lines.map_while(std::io::Result::ok).filter_map(|line| {
        let told = line.strip_prefix("told: ")?;
        Some(told.to_owned())
    });
    told.next().unwrap_or_default()
}

/// The part of the child.
#[test]
fn child() {
    let Ok(task) = std::env::var(TASK) else {
        return;
    };
    let path = std::env::var(STORE).unwrap();
    let (options, is_told) = match task.as_str() {
        "write" => (options(), "open".to_owned()),
        _ => (reading(), String::new()),
    };
    let store = options.open(path).unwrap();
    let is_told = match is_told.is_empty() {
        true => content(&store).len().to_string(),
        false => is_told,
    };
    println!("\ntold: {is_told}");
    // Until the parent has done its part.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn two_processes_read_at_once_and_see_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path());
    let store = reading().open(&path).unwrap();
    let found = content(&store);
    let mut other = begin("read", &path);
    assert_eq!(told(&mut other), found.len().to_string());
    // Both are open now, and a third one.
    assert_eq!(content(&reading().open(&path).unwrap()), found);
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    drop(store);
    let store = options().open(&path).unwrap();
    assert_eq!(content(&store), found, "a writer finds what readers did");
}

#[test]
fn a_writer_and_readers_exclude_each_other_and_busy_names_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path());
    for (task, refused) in [("read", options()), ("write", reading())] {
        let mut other = begin(task, &path);
        assert!(!told(&mut other).is_empty());
        let error = refused.open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        #[cfg(all(target_os = "linux", not(feature = "portable")))]
        {
            let named = format!("in process {} (", other.id());
            assert!(error.to_string().contains(&named), "{error}");
        }
        drop(other.stdin.take());
        assert!(other.wait().unwrap().success());
    }
    let _reader = reading().open(&path).unwrap();
    let error = options().open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    assert!(error.to_string().contains("(this one)"), "{error}");
}

#[test]
fn a_reader_changes_no_byte_and_has_the_file_open_for_reading() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path());
    let about = || {
        let about = fs::metadata(&path).unwrap();
        (
            about.len(),
            about.blocks(),
            about.mtime(),
            about.mtime_nsec(),
        )
    };
    let (before, bytes) = (about(), fs::read(&path).unwrap());
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let store = reading().open(&path).unwrap();
    #[cfg(target_os = "linux")]
    for access in accesses(&path) {
        assert_eq!(access, 0, "O_RDONLY");
    }
    let found = content(&store);
    assert!(found.len() > 6000);
    assert!(store.verify().unwrap().is_clean());
    assert!(store.stats().device_writes == 0 && store.stats().device_flushes == 0);
    let snapshot = store.snapshot();
    let region = store.existing_region("first").unwrap();
    assert_eq!(region.get("a").unwrap().unwrap().len(), 100_000);
    assert_eq!(
        store.drive(region.get_async("a")).unwrap().unwrap().len(),
        100_000
    );
    assert!(region.get(3_u32.to_be_bytes()).unwrap().is_none());
    drop(snapshot);
    store.close().unwrap();
    assert_eq!(store.region("first").unwrap_err().kind(), ErrorKind::Closed);
    drop((region, store));
    assert_eq!(about(), before);
    assert!(fs::read(&path).unwrap() == bytes);
}

/// How this process has the file open: `O_ACCMODE` of the flags of each descriptor.
#[cfg(target_os = "linux")]
fn accesses(path: &Path) -> Vec<u32> {
    let file = fs::canonicalize(path).unwrap();
    let mut accesses = Vec::new();
    for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
        if fs::read_link(entry.path()).is_ok_and(|target| target == file) {
            let info = Path::new("/proc/self/fdinfo").join(entry.file_name());
            let info = fs::read_to_string(info).unwrap();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = u32::from_str_radix(flags.unwrap().trim(), 8).unwrap();
            accesses.push(flags & 3);
        }
    }
    assert!(!accesses.is_empty());
    accesses
}

#[test]
fn every_call_that_writes_is_refused_and_what_has_nothing_to_write_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path());
    let store = reading().open(&path).unwrap();
    let found = content(&store);
    let region = store.region("first").unwrap();
    let batch = || {
        let mut batch = WriteBatch::new();
        batch.put(&region, "k", "v");
        batch
    };
    let committed = || {
        let mut transaction = store.transaction();
        transaction.get(&region, "a")?;
        transaction.put(&region, "k", "v")?;
        transaction.commit(Durability::Sync)
    };
    let refused: Vec<(&str, Result<()>)> = vec![
        ("put", region.put("k", "v")),
        ("durable put", region.put_with("k", "v", Durability::Sync)),
        ("delete", region.delete("k")),
        ("delete_range", region.delete_range("a".."b")),
        ("put_async", store.drive(region.put_async("k", "v"))),
        ("batch", store.write(batch(), Durability::Buffered)),
        ("write_async", store.drive(store.write_async(batch()))),
        ("ingest", region.ingest([("k", "v")]).map(drop)),
        (
            "update",
            region.update("k", |_| Update::Put(vec![1])).map(drop),
        ),
        ("commit", committed()),
        ("region", store.region("new").map(drop)),
        ("drop_region", store.drop_region("first")),
        ("checkpoint", store.checkpoint()),
        ("checkpoint_l0", store.checkpoint_l0()),
        ("compact", store.compact()),
        ("compact of a region", region.compact()),
    ];
    for (call, outcome) in refused {
        let error = outcome.expect_err(call);
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{call}: {error}");
    }
    store.sync().unwrap();
    store.drive(store.sync_async()).unwrap();
    let mut transaction = store.transaction();
    assert!(transaction.get(&region, "a").unwrap().is_some());
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(content(&store), found);
    assert_eq!(store.stats().device_writes, 0);
}

#[test]
fn nothing_is_created_for_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let kind = || reading().format(true).open(&path).unwrap_err().kind();
    assert_eq!(kind(), ErrorKind::NotFound);
    assert!(!path.exists());
    fs::write(&path, "").unwrap();
    assert_eq!(kind(), ErrorKind::NotFound);
    fs::write(&path, vec![b'x'; 100_000]).unwrap();
    assert_eq!(kind(), ErrorKind::InvalidArgument);
    assert_eq!(fs::read(&path).unwrap(), vec![b'x'; 100_000]);
}

#[test]
fn a_log_that_does_not_fit_is_told_with_the_memory_that_would_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::options()
        .memory_bytes(160 << 20)
        .open(&path)
        .unwrap();
    let region = store.region("r").unwrap();
    for number in 0..150_000_u32 {
        region.put(number.to_be_bytes(), [1; 60]).unwrap();
    }
    store.sync().unwrap();
    let l0_bytes = store.stats().l0_bytes;
    // As after a crash: closing it would spill.
    std::mem::forget(store);
    let copy = folder.path().join("copy");
    fs::copy(&path, &copy).unwrap();
    assert!(l0_bytes > 12 << 20, "{l0_bytes}");

    let small = || Store::options().memory_bytes(8 << 20).read_only(true);
    let error = small().open(&copy).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let told = error.to_string();
    let needed = told.split("a memory_bytes of ").nth(1).unwrap();
    let needed: usize = needed.split(' ').next().unwrap().parse().unwrap();
    assert!(
        (l0_bytes as usize..6 * l0_bytes as usize).contains(&needed),
        "{told}"
    );
    let enough = Store::options().memory_bytes(needed).read_only(true);
    let enough = enough.open(&copy).unwrap();
    let region = enough.existing_region("r").unwrap();
    assert_eq!(region.iter().count(), 150_000);
    let stats = enough.stats();
    assert!(
        stats.memory.sum_bytes() <= needed as u64,
        "{}",
        stats.memory
    );
    let beyond = small().replay_bytes_max(usize::MAX).open(&copy).unwrap();
    let region = beyond.existing_region("r").unwrap();
    assert_eq!(region.iter().count(), 150_000);
}

#[test]
fn a_reader_makes_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path());
    let store = reading().open(&path).unwrap();
    let backup = Backup::at(folder.path().join("backups"));
    let refused = backup.make(&store).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    let made = backup.list().unwrap_or_default();
    assert!(made.is_empty());
}
