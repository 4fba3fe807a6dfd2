//! `kreon backup` and kill -9: a process that writes and backs up is killed in the middle of a backup.
//!
//! That process is this program again. Its writes are numbered, and each is a batch over two regions: a store has a state
//! that the writer had if it has the first so many records, whole, and a count that says how many. The backup itself hands
//! the writer its next numbers whenever it has come a MiB further, and where it is to be killed it stops and says so.
//! So nothing here is a matter of time.

mod fixture;

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use kreon::{Backup, Durability, Region, Store, WriteBatch};

use fixture::{Fixture, bare_command, run};

/// The store that the child works on, and where in its backup it stops.
const STORE: &str = "KREON_BACKUP_STORE";
const STOP: &str = "KREON_BACKUP_STOP";

/// Records of the store before its first backup.
const RECORDS: u64 = 8000;
/// Records that are written for each MiB of a backup: as much again would be 256.
const BESIDE: u64 = 20;
const VALUE_BYTES: usize = 4000;
/// Memory for all of it: of values that do not fit in frames some would be copied in idle time, and those copies backed up.
const MEMORY: usize = 96 << 20;

fn open(path: &Path) -> Store {
    let options = Store::options().memory_bytes(MEMORY);
    options.open(path).unwrap()
}

/// The value of a record, which no file system can make shorter.
fn value(number: u64, version: u64) -> Vec<u8> {
    let mut state = (number << 1 | 1) ^ version << 40;
    let words = (0..VALUE_BYTES / 8).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.collect()
}

fn count_of(counts: &Region) -> u64 {
    let count = counts.get("records").unwrap();
    count.map_or(0, |count| u64::from_be_bytes(count[..].try_into().unwrap()))
}

/// A thread that writes as many records as it is told to, and tells how many are durable then.
struct Writer {
    wanted: Sender<u64>,
    durable: Receiver<u64>,
    /// As far as it was told; what it has not told yet.
    last: u64,
    is_writing: bool,
}

impl Writer {
    fn start(store: &Store) -> Self {
        let (wanted, orders) = channel();
        let (tell, durable) = channel();
        let store = store.clone();
        let (records, counts) = (store.region("records").unwrap(), store.region("counts"));
        let counts = counts.unwrap();
        let found = count_of(&counts);
        thread::spawn(move || {
            let mut number = found;
            for more in orders {
                for left in (0..more).rev() {
                    let mut batch = WriteBatch::new();
                    batch.put(&records, number.to_be_bytes(), value(number, 0));
                    number += 1;
                    batch.put(&counts, "records", number.to_be_bytes());
                    let durability = match left {
                        0 => Durability::Sync,
                        _ => Durability::Buffered,
                    };
                    store.write(batch, durability).unwrap();
                }
                tell.send(number).unwrap();
            }
        });
        Self {
            wanted,
            durable,
            last: found,
            is_writing: false,
        }
    }

    /// Lets it write on, without waiting.
    fn go_on(&mut self, records: u64) {
        self.wait();
        self.wanted.send(records).unwrap();
        self.is_writing = true;
    }

    /// How many records are durable, when it has written what it was told to.
    fn wait(&mut self) -> u64 {
        if self.is_writing {
            self.last = self.durable.recv().unwrap();
            self.is_writing = false;
        }
        self.last
    }
}

/// Not a test of its own: the process that is killed.
#[test]
fn child() {
    let (Ok(path), Ok(stop)) = (env::var(STORE), env::var(STOP)) else {
        return;
    };
    let path = Path::new(&path);
    let store = open(path);
    let backup = Backup::at(path.with_file_name("backups"));
    let mut writer = Writer::start(&store);
    if writer.last == 0 {
        writer.go_on(RECORDS);
        writer.wait();
        store.checkpoint().unwrap();
    } else {
        // A whole one, beside the writer.
        let before = writer.last;
        let made = backup.make_with(&store, |_| {
            writer.go_on(BESIDE);
            Ok(())
        });
        let (number, after) = (made.unwrap().number, writer.wait());
        println!("\ntold: {number} {before} {after}");
    }
    let ended = backup.make_with(&store, |progress| {
        let durable = writer.wait();
        writer.go_on(BESIDE);
        if progress.step == stop && progress.share() >= 0.5 {
            println!("\ntold: {durable}");
            // The writer is in the middle of something when the kill comes, or has done it.
            writer.go_on(RECORDS / 10);
            loop {
                thread::park();
            }
        }
        Ok(())
    });
    panic!("the backup was never at {stop}: {ended:?}");
}

/// Runs the child until it stops within a backup, and kills it there: SIGKILL. The numbers of the lines that it told.
fn killed(store: &Path, stop: &str) -> Vec<Vec<u64>> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(STORE, store)
        .env(STOP, stop)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = Vec::new();
    for line in lines.map_while(Result::ok) {
        let Some(numbers) = line.strip_prefix("told: ") else {
            continue;
        };
        let numbers: Vec<u64> = numbers.split(' ').map(|n| n.parse().unwrap()).collect();
        let stops = numbers.len() == 1;
        told.push(numbers);
        if stops {
            break;
        }
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), None, "it ended by itself");
    told
}

/// How many records the store at `path` has. They must be the first ones, and `version` says what each of them holds.
fn records_of(path: &Path, version: impl Fn(u64) -> u64) -> u64 {
    let store = open(path);
    let records = store.region("records").unwrap();
    let mut found = 0_u64;
    for pair in records.iter() {
        let (key, held) = pair.unwrap();
        assert_eq!(key[..], found.to_be_bytes(), "a record is missing");
        assert!(held[..] == value(found, version(found)), "record {found}");
        found += 1;
    }
    // Each is a batch with the count: neither is there without the other.
    assert_eq!(count_of(&store.region("counts").unwrap()), found);
    store.close().unwrap();
    found
}

/// Restores the newest backup into a new store, which is verified; how many records it has.
fn restored(fixture: &Fixture, name: &str, version: impl Fn(u64) -> u64) -> u64 {
    let target = fixture.path(name);
    let folder = fixture.path("backups");
    let mut restore = bare_command();
    restore.arg("restore").args([&folder, &target]);
    run(restore, b"").ok();
    run(fixture.command_on(&target, &["verify"]), b"").ok();
    records_of(&target, version)
}

/// `kreon backup`: its number, and the bytes that it wrote.
fn backed_up(fixture: &Fixture) -> (u64, u64) {
    let (folder, memory) = (fixture.path("backups"), MEMORY.to_string());
    let folder = folder.to_str().unwrap();
    let told = fixture.ok(&["backup", folder, "--json", "--memory", &memory]);
    let made: serde_json::Value = serde_json::from_str(&told).unwrap();
    let number = |field: &str| made[field].as_u64().unwrap();
    let written = number("copied_bytes") + number("manifest_bytes");
    (number("number"), written)
}

fn verify_backup(fixture: &Fixture) -> fixture::Run {
    let mut command = bare_command();
    command.arg("verify-backup").arg(fixture.path("backups"));
    run(command, b"")
}

#[test]
fn a_backup_killed_under_load_leaves_store_and_folder_whole_and_a_later_one_writes_what_changed() {
    let fixture = Fixture::new();
    let (store, unchanged) = (fixture.store(), |_| 0);

    // The first backup is killed half done: there is none.
    let told = killed(&store, "log");
    let durable = told[0][0];
    assert!(durable > RECORDS, "nobody wrote beside the backup");
    let data = fixture.path("backups/data-000001");
    assert!(
        data.metadata().unwrap().len() > 1 << 20,
        "nothing was copied"
    );
    fixture.ok(&["verify"]);
    let first = records_of(&store, unchanged);
    assert!(first >= durable, "{first} records of {durable}");
    let words = ["no finished backup", "backups"];
    verify_backup(&fixture).fails(9, &words);
    let mut restore = bare_command();
    restore
        .arg("restore")
        .args([fixture.path("backups"), fixture.path("none")]);
    run(restore, b"").fails(9, &words);
    assert!(!fixture.path("none").exists());

    // Again: all of it, and just what the store has.
    let (number, full_bytes) = backed_up(&fixture);
    assert_eq!(number, 1);
    assert_eq!(restored(&fixture, "again", unchanged), first);

    // One beside the writer ends, the next is killed when only its manifest is missing: the one before counts.
    let told = killed(&store, "manifest");
    let [made, stopped] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(made[..2], [2, first]);
    assert!(made[2] > first && stopped[0] > made[2], "{told:?}");
    fixture.ok(&["verify"]);
    let second = records_of(&store, unchanged);
    assert!(second >= stopped[0], "{second} records of {told:?}");
    let shown = verify_backup(&fixture).ok();
    assert!(shown.contains("2 backup"), "{shown}");
    let of_then = restored(&fixture, "beside", unchanged);
    assert!((first..=made[2]).contains(&of_then), "{of_then}: {told:?}");
    assert_eq!(backed_up(&fixture).0, 3);
    assert_eq!(restored(&fixture, "later", unchanged), second);

    // A hundredth of the keys is changed.
    let writer = open(&store);
    let records = writer.region("records").unwrap();
    for number in (0..second).step_by(100) {
        records.put(number.to_be_bytes(), value(number, 1)).unwrap();
    }
    writer.close().unwrap();
    let (number, bytes) = backed_up(&fixture);
    println!("full: {full_bytes} bytes written, after changes of 1 % of the keys: {bytes}");
    assert_eq!(number, 4);
    assert!(bytes * 100 <= full_bytes * 3, "{bytes} of {full_bytes}");
    let changed = |number: u64| u64::from(number.is_multiple_of(100));
    assert_eq!(restored(&fixture, "changed", changed), second);
}
