//! Backups of a store on a file: beside writers, killed in the middle, restored and opened.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kreon::{Backup, Durability, ErrorKind, Store, WriteBatch};

const WRITERS: u64 = 3;

fn open(path: &Path) -> Store {
    Store::options()
        .memory_bytes(16 << 20)
        .open(path)
        .expect("a store")
}

fn value(number: u64) -> Vec<u8> {
    number.to_be_bytes().repeat(64)
}

/// Writes batches whose two keys have the same value, one greater each time.
fn write(store: &Store, writer: u64, number: u64) {
    let region = store.region("pairs").expect("a region");
    let mut batch = WriteBatch::new();
    for side in ["left", "right"] {
        let key = format!("{side}/{writer}/{}", number % 500);
        batch.put(&region, key, value(number));
    }
    let last = format!("last/{writer}");
    batch.put(&region, last, number.to_be_bytes());
    store.write(batch, Durability::Buffered).expect("a write");
}

fn number_of(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("8 bytes"))
}

/// What writer `writer` had written last, if all of it is there.
fn last_of(store: &Store, writer: u64) -> u64 {
    let first = 1;
    let region = store.region("pairs").expect("a region");
    let last = region.get(format!("last/{writer}")).expect("a read");
    let last = number_of(&last.expect("a last one"));
    for number in last.saturating_sub(499).max(first)..=last {
        for side in ["left", "right"] {
            let key = format!("{side}/{writer}/{}", number % 500);
            let found = region.get(&key).expect("a read");
            assert!(
                found.as_deref() == Some(&value(number)[..]),
                "{key} at {last}"
            );
        }
    }
    last
}

#[test]
fn a_backup_beside_writers_has_all_that_was_acknowledged_and_batches_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let backup = Backup::at(folder.path().join("backups"));
    let store = open(&folder.path().join("store"));
    let (is_over, done) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 3]);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, is_over, done) = (&store, &is_over, &done);
            scope.spawn(move || {
                for number in 1.. {
                    write(store, writer, number);
                    done[writer as usize].store(number, Ordering::Release);
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        for round in 0..6 {
            std::thread::sleep(Duration::from_millis(150));
            let before: Vec<_> = done
                .iter()
                .map(|done| done.load(Ordering::Acquire))
                .collect();
            let outcome = backup.make(&store);
            if round == 5 || outcome.is_err() {
                is_over.store(true, Ordering::Relaxed);
            }
            outcome.expect("a backup");
            let after: Vec<_> = done
                .iter()
                .map(|done| done.load(Ordering::Acquire))
                .collect();
            let restored = folder.path().join(format!("restored-{round}"));
            backup.restore(&restored).expect("a restore");
            let restored = open(&restored);
            for writer in 0..WRITERS {
                let (last, at) = (last_of(&restored, writer), writer as usize);
                // One write may have been under way.
                assert!((before[at]..=after[at] + 1).contains(&last), "{last}");
            }
            assert_eq!(restored.verify().expect("a look").problems, [""; 0]);
        }
    });
    assert_eq!(backup.list().expect("a list").len(), 1);
}

#[test]
fn a_restore_goes_into_a_new_file_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, backups) = (folder.path().join("store"), folder.path().join("backups"));
    let backup = Backup::at(&backups);
    assert_eq!(backup.list().unwrap_err().kind(), ErrorKind::NotFound);
    let store = open(&path);
    write(&store, 0, 1);
    backup.make(&store).expect("a backup");
    let outcome = backup.restore(&path);
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let outcome = backup.clone().number(7).restore(folder.path().join("new"));
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound);
    let names = std::fs::read_dir(folder.path()).expect("a folder");
    assert_eq!(names.count(), 2, "something was left");
}

const CHILD: &str = "KREON_BACKUP_CHILD";

/// Not a test of its own: the process that is killed.
#[test]
fn child_that_backs_up_for_ever() {
    let Ok(folder) = std::env::var(CHILD) else {
        return;
    };
    let folder = Path::new(&folder);
    let store = open(&folder.join("store"));
    let backup = Backup::at(folder.join("backups"));
    for number in 1.. {
        for step in 0..400 {
            write(&store, 0, number * 400 + step);
        }
        backup.make(&store).expect("a backup");
    }
}

#[test]
fn a_backup_that_is_killed_leaves_a_whole_one_and_the_next_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let backup = Backup::at(folder.path().join("backups"));
    let mut last = 0;
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().expect("a test"))
            .args(["--exact", "child_that_backs_up_for_ever"])
            .env(CHILD, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a child");
        std::thread::sleep(Duration::from_millis(400 + round * 37));
        child.kill().expect("a kill");
        child.wait().expect("an end");
        if round == 0 && backup.list().is_err() {
            continue;
        }
        backup.verify().expect("a whole backup");
        let restored = folder.path().join(format!("restored-{round}"));
        backup.restore(&restored).expect("a restore");
        let restored = open(&restored);
        let number = restored.region("pairs").expect("a region").get("last/0");
        let number = number.expect("a read").expect("a last one");
        let number = number_of(&number);
        // Every backup was made right behind the last write of a round of the child.
        assert_eq!(number % 400, 399);
        assert_eq!(restored.verify().expect("a look").problems, [""; 0]);
        last = last.max(number);
    }
    assert!(last > 0, "no child came so far");
    let store = open(&folder.path().join("store"));
    write(&store, 1, 1);
    backup.make(&store).expect("a backup");
    assert_eq!(backup.list().expect("a list").len(), 1);
}

#[test]
fn a_store_of_an_older_backup_shares_no_log_of_the_newer_ones() {
    const VALUES: u64 = 6000;
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let fill = |store: &Store, byte: u8| {
        let region = store.region("r").expect("a region");
        for key in 0..VALUES {
            let put = region.put(key.to_be_bytes(), [byte; 1000]);
            put.expect("a put");
        }
    };
    let backup = Backup::at(path("backups")).keep(9);
    let first = open(&path("first"));
    first.region("r").expect("a region");
    let oldest = backup.make(&first).expect("a backup").number;
    fill(&first, b'a');
    backup.make(&first).expect("a backup");
    first.close().expect("the end");

    let older = backup.clone().number(oldest);
    older.restore(path("second")).expect("a restore");
    let second = open(&path("second"));
    fill(&second, b'b');
    backup.make(&second).expect("a backup");
    backup.restore(path("third")).expect("a restore");
    let third = open(&path("third"));
    let region = third.region("r").expect("a region");
    for key in 0..VALUES {
        let found = region.get(key.to_be_bytes()).expect("a read");
        assert!(found.as_deref() == Some(&[b'b'; 1000][..]), "{key}");
    }
    assert!(third.verify().expect("a look").problems.is_empty());
}
