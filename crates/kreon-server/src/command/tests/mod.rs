//! Tests of commands on data, on a store of their own.

mod combined;
mod crashes;
mod edges;
mod expiry;
mod model;
mod pipelines;
mod rooms;
mod sequences;
mod together;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use kreon::{Clock, Store, Timestamp};
use kreon_sim::SimDevice;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::{Combiner, Command, Pipeline, execute, execute_all, find};
use crate::keyspace::{Client, Keyspace, KeyspaceOptions, Rooms, Watching};
use crate::reply::{Reply, double_text};
use crate::settings::Persistence;

/// A keyspace whose clock stands still unless a test moves it.
struct Fixture {
    keyspace: Arc<Keyspace>,
    client: Client,
    runtime: Runtime,
    time_ms: Arc<AtomicU64>,
    folder: TempDir,
}

/// When the clock of a fixture begins.
const START_MS: u64 = 1_700_000_000_000;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn clock(time_ms: &Arc<AtomicU64>) -> Clock {
    let time_ms = Arc::clone(time_ms);
    Clock::of(move || Timestamp::of_ms(time_ms.load(Ordering::SeqCst)))
}

fn store_options() -> kreon::Options {
    Store::options().memory_bytes(16 << 20)
}

fn keyspace(store: Store, clock: Clock, persistence: Persistence) -> Arc<Keyspace> {
    let options = KeyspaceOptions {
        databases: 4,
        persistence,
        rooms: Rooms::unlimited(),
    };
    Keyspace::open(store, options, clock).unwrap()
}

fn open(folder: &TempDir, time_ms: &Arc<AtomicU64>) -> Arc<Keyspace> {
    let clock = clock(time_ms);
    let store = store_options().clock(clock.clone());
    let store = store.open(folder.path().join("store")).unwrap();
    keyspace(store, clock, Persistence::Buffered)
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let time_ms = Arc::new(AtomicU64::new(START_MS));
        Self {
            keyspace: open(&folder, &time_ms),
            client: Client::default(),
            runtime: runtime(),
            time_ms,
            folder,
        }
    }

    /// Closes the store and opens it again.
    fn reopen(self) -> Self {
        let Self {
            keyspace,
            client,
            runtime,
            time_ms,
            folder,
        } = self;
        keyspace.store().close().unwrap();
        drop(keyspace);
        Self {
            keyspace: open(&folder, &time_ms),
            client,
            runtime,
            time_ms,
            folder,
        }
    }

    /// On a device of the caller.
    fn on(device: Arc<SimDevice>, persistence: Persistence) -> Self {
        let time_ms = Arc::new(AtomicU64::new(START_MS));
        let clock = clock(&time_ms);
        let store = store_options()
            .clock(clock.clone())
            .open_on(device)
            .unwrap();
        Self {
            keyspace: keyspace(store, clock, persistence),
            client: Client::default(),
            runtime: runtime(),
            time_ms,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// On an open store, whose clock is that of the system.
    fn of(store: Store, persistence: Persistence) -> Self {
        Self {
            keyspace: keyspace(store, Clock::default(), persistence),
            client: Client::default(),
            runtime: runtime(),
            time_ms: Arc::new(AtomicU64::new(START_MS)),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn pass(&self, ms: u64) {
        self.time_ms.fetch_add(ms, Ordering::SeqCst);
    }

    fn run(&self, words: &[&[u8]]) -> Reply {
        let (command, args) = parse(words);
        self.runtime
            .block_on(execute(&self.keyspace, &self.client, command, &args))
    }

    /// Runs a command of words without spaces; shows the reply.
    fn ask(&self, line: &str) -> String {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        show(&self.run(&words))
    }

    /// Runs commands, one a line, as one; shows the reply.
    fn exec(&self, lines: &[&str], watching: &Watching) -> String {
        let commands: Vec<_> = lines
            .iter()
            .map(|line| parse(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()))
            .collect();
        let all = execute_all(&self.keyspace, &self.client, &commands, watching);
        show(&self.runtime.block_on(all))
    }

    /// Runs commands, one a line, as a connection runs what came together; shows the replies.
    fn pipeline(&self, lines: &[&str]) -> Vec<String> {
        let pipeline = pipeline(&self.client, lines);
        let combiner = Combiner::default();
        let run = combiner.run_to_end(&self.keyspace, &self.client, pipeline);
        self.runtime.block_on(run).iter().map(show).collect()
    }

    fn watch(&self, keys: &[&str]) -> Watching {
        let mut watching = Watching::default();
        self.watch_more(&mut watching, keys);
        watching
    }

    fn watch_more(&self, watching: &mut Watching, keys: &[&str]) {
        let keys: Vec<Bytes> = keys
            .iter()
            .map(|key| Bytes::copy_from_slice(key.as_bytes()))
            .collect();
        self.runtime
            .block_on(self.keyspace.watch(&self.client, watching, &keys))
            .unwrap();
    }

    /// Number of records of one kind in the first database.
    fn records(&self, kind: u8) -> usize {
        let region = &self.keyspace.database(0).unwrap().region;
        region.prefix([kind]).keys().count()
    }
}

/// Writes, one a line.
fn pipeline(client: &Client, lines: &[&str]) -> Pipeline {
    let mut pipeline = Pipeline::default();
    for line in lines {
        let (command, args) = parse(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        assert!(Pipeline::takes(command, &args), "{line}");
        pipeline.push(client.db.get(), command, args);
    }
    pipeline
}

fn parse(words: &[&[u8]]) -> (&'static Command, Vec<Bytes>) {
    let args: Vec<Bytes> = words
        .iter()
        .map(|word| Bytes::copy_from_slice(word))
        .collect();
    let command = find(words[0]).unwrap_or_else(|| panic!("no command {:?}", args[0]));
    (command, args)
}

/// As a reader of RESP2 would see it: `nil`, `(1)`, `[a b]`, errors as they are.
fn show(reply: &Reply) -> String {
    let list = |replies: &mut dyn Iterator<Item = &Reply>| {
        let shown: Vec<String> = replies.map(show).collect();
        format!("[{}]", shown.join(" "))
    };
    match reply {
        Reply::Ok => "OK".to_owned(),
        Reply::Nil | Reply::NilArray => "nil".to_owned(),
        Reply::Int(number) => format!("({number})"),
        Reply::Double(number) => double_text(*number),
        Reply::Simple(text) => (*text).to_owned(),
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Reply::Value { value, skip } => String::from_utf8_lossy(&value[*skip..]).into_owned(),
        Reply::Text(text) => text.clone(),
        Reply::Error(error) => error.0.to_string(),
        Reply::Array(replies) | Reply::Set(replies) | Reply::Push(replies) => {
            list(&mut replies.iter())
        }
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            list(&mut pairs.iter().flat_map(|(a, b)| [a, b]))
        }
    }
}
