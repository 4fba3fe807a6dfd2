//! The binding against the library of this system.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tempfile::TempDir;

use crate::{Connection, Cursor, Session, version};

const TABLE: &str = "table:t";
/// Without files of the log made ahead, which come and go while a copy is made.
const SETTINGS: &str = "create,cache_size=10MB,log=(enabled,file_max=1MB,prealloc=false),use_environment=false,\
                        config_base=false";

fn connection(dir: &Path, settings: &str) -> Arc<Connection> {
    let connection = Connection::open(dir, settings).unwrap();
    let session = Session::open(&connection).unwrap();
    session.create(TABLE, "leaf_page_max=4096").unwrap();
    connection
}

fn cursor(connection: &Arc<Connection>) -> Cursor {
    let session = Session::open(connection).unwrap();
    session.cursor(TABLE).unwrap()
}

fn got(cursor: &mut Cursor, key: &[u8]) -> Option<Vec<u8>> {
    let mut got = None;
    let is_found = cursor.get(key, |value| got = Some(value.to_vec()));
    assert_eq!(is_found.unwrap(), got.is_some());
    got
}

fn keys_from(cursor: &mut Cursor, start: &[u8], count: usize) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let shown = cursor.scan(start, count, |key, value| {
        assert_eq!(key, value);
        keys.push(key.to_vec());
    });
    assert_eq!(shown.unwrap(), keys.len());
    keys
}

/// Copies the files of an open database: what is there after its process was killed.
fn as_after_a_kill(dir: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

#[test]
fn get_shows_the_newest_value_until_it_is_deleted() {
    let dir = TempDir::new().unwrap();
    let mut cursor = cursor(&connection(dir.path(), SETTINGS));
    assert_eq!(got(&mut cursor, b"k"), None);
    cursor.put(b"k", b"one").unwrap();
    cursor.put(b"k", b"").unwrap();
    assert_eq!(got(&mut cursor, b"k"), Some(Vec::new()));
    cursor.put(b"k", &[0; 5000]).unwrap();
    assert_eq!(got(&mut cursor, b"k"), Some(vec![0; 5000]));
    assert_eq!(got(&mut cursor, b"k\0"), None);
    cursor.delete(b"k").unwrap();
    cursor.delete(b"k").unwrap();
    assert_eq!(got(&mut cursor, b"k"), None);
}

#[test]
fn a_scan_begins_at_the_first_key_that_is_not_below_its_start() {
    let dir = TempDir::new().unwrap();
    let mut cursor = cursor(&connection(dir.path(), SETTINGS));
    assert!(keys_from(&mut cursor, b"", 9).is_empty());
    // Zeroes and bytes of all kinds, in the order of bytes.
    let keys: [&[u8]; 5] = [b"\0", b"a", b"a\0", b"c", b"\xff\xff"];
    for key in keys.iter().rev() {
        cursor.put(key, key).unwrap();
    }
    // On the device, too, where keys are found another way.
    for _ in 0..2 {
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(keys_from(&mut cursor, key, 9), keys[at..]);
        }
        assert_eq!(keys_from(&mut cursor, b"b", 1), [b"c"]);
        assert!(keys_from(&mut cursor, b"\xff\xff\0", 9).is_empty());
        assert!(keys_from(&mut cursor, b"a", 0).is_empty());
        cursor.session().checkpoint().unwrap();
    }
}

#[test]
fn pairs_put_together_are_there_together() {
    let dir = TempDir::new().unwrap();
    let connection = connection(dir.path(), SETTINGS);
    let mut cursor = cursor(&connection);
    let pairs: Vec<_> = (0..50u8).map(|n| (vec![n], vec![n])).collect();
    cursor.put_together(&pairs).unwrap();
    assert_eq!(keys_from(&mut cursor, b"", 100).len(), 50);
    // The transaction has ended: others see it, and the session can begin the next.
    let mut other = self::cursor(&connection);
    assert_eq!(got(&mut other, &[49]), Some(vec![49]));
    cursor.put_together(&pairs).unwrap();
}

#[test]
fn a_commit_that_is_synchronous_survives_a_kill_of_the_process() {
    let dir = TempDir::new().unwrap();
    let settings = format!("{SETTINGS},transaction_sync=(enabled,method=fsync)");
    let mut open = cursor(&connection(dir.path(), &settings));
    open.put(b"k", b"v").unwrap();
    let copy = as_after_a_kill(dir.path());
    let mut again = cursor(&connection(copy.path(), &settings));
    assert_eq!(got(&mut again, b"k"), Some(b"v".to_vec()));
}

#[test]
fn a_flush_of_the_log_makes_durable_what_was_committed_before() {
    let dir = TempDir::new().unwrap();
    let mut open = cursor(&connection(dir.path(), SETTINGS));
    open.put(b"k", b"v").unwrap();
    open.session().flush_log().unwrap();
    let copy = as_after_a_kill(dir.path());
    let mut again = cursor(&connection(copy.path(), SETTINGS));
    assert_eq!(got(&mut again, b"k"), Some(b"v".to_vec()));
}

#[test]
fn the_database_is_open_until_its_last_session_is_dropped() {
    let dir = TempDir::new().unwrap();
    let connection = connection(dir.path(), SETTINGS);
    let mut first = cursor(&connection);
    drop(connection);
    first.put(b"k", b"v").unwrap();
    // A second time while it is open is refused.
    assert!(Connection::open(dir.path(), SETTINGS).is_err());
    drop(first);
    let mut again = cursor(&self::connection(dir.path(), SETTINGS));
    assert_eq!(got(&mut again, b"k"), Some(b"v".to_vec()));
}

#[test]
fn sessions_of_many_threads_put_and_get() {
    let dir = TempDir::new().unwrap();
    let connection = connection(dir.path(), SETTINGS);
    thread::scope(|scope| {
        for thread in 0..4u8 {
            let connection = &connection;
            scope.spawn(move || {
                let mut cursor = cursor(connection);
                for number in 0..100u8 {
                    cursor.put(&[thread, number], &[number]).unwrap();
                    assert_eq!(got(&mut cursor, &[thread, number]), Some(vec![number]));
                }
            });
        }
    });
    let mut cursor = cursor(&connection);
    assert_eq!(cursor.scan(b"", 1000, |_, _| ()).unwrap(), 400);
}

#[test]
fn an_error_tells_its_call_and_what_was_wrong() {
    let dir = TempDir::new().unwrap();
    let missing = Connection::open(&dir.path().join("missing"), SETTINGS).err();
    let told = missing.unwrap().to_string();
    assert!(
        told.contains("open") && told.contains("No such file"),
        "{told}"
    );
    assert!(Connection::open(dir.path(), "create\0").is_err());
    let connection = connection(dir.path(), SETTINGS);
    let session = Session::open(&connection).unwrap();
    assert!(session.create(TABLE, "no_such_setting=1").is_err());
    let session = Session::open(&connection).unwrap();
    assert!(session.cursor("table:missing").is_err());
    let empty = cursor(&connection).put(b"", b"v").unwrap_err();
    assert!(empty.to_string().contains("put") && !empty.is_rollback());
}

#[test]
fn the_version_is_three_numbers() {
    let version = version();
    let numbers: Vec<_> = version.split('.').map(str::parse::<u32>).collect();
    assert!(
        numbers.len() == 3 && numbers.iter().all(Result::is_ok),
        "{version}"
    );
}
