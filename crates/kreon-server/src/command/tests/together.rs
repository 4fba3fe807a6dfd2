//! Several clients: locks, waiting, watching, durability.

use std::sync::Arc;

use tokio::task::LocalSet;

use super::{Fixture, Watching, parse, show};
use crate::command::steps::apply;
use crate::command::whole::{delrange, flushdb};
use crate::command::{execute, execute_all};
use crate::keyspace::{Access, Client, Keyspace, Source, Stripes, SyncGroup};
use crate::settings::Persistence;

pub(super) async fn ask(keyspace: &Arc<Keyspace>, client: &Client, line: &str) -> String {
    let (command, args) = parse(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    show(&execute(keyspace, client, command, &args).await)
}

#[test]
fn waiting_clients_are_served_in_their_order() {
    let fixture = Fixture::new();
    let keyspace = &fixture.keyspace;
    let local = LocalSet::new();
    local.block_on(&fixture.runtime, async {
        let wait = |line: &'static str| {
            let keyspace = Arc::clone(keyspace);
            tokio::task::spawn_local(async move { ask(&keyspace, &Client::default(), line).await })
        };
        let first = wait("BLPOP a b 0");
        let second = wait("BRPOP b 0");
        while !keyspace.waiters().has(&(0, "b".into())) {
            tokio::task::yield_now().await;
        }
        tokio::task::yield_now().await;
        let pusher = Client::default();
        assert_eq!(ask(keyspace, &pusher, "RPUSH b 1 2 3").await, "(3)");
        assert_eq!(first.await.unwrap(), "[b 1]");
        assert_eq!(second.await.unwrap(), "[b 3]");
        assert_eq!(ask(keyspace, &pusher, "LRANGE b 0 -1").await, "[2]");
        assert!(keyspace.waiters().is_empty());
    });
}

#[test]
fn wait_ends_at_its_time_and_in_a_transaction_at_once() {
    let fixture = Fixture::new();
    assert_eq!(fixture.ask("BLPOP a 0.001"), "nil");
    assert!(fixture.keyspace.waiters().is_empty());
    assert_eq!(
        fixture.exec(
            &["BLPOP a 0", "RPUSH a x y", "BRPOP a 0"],
            &Watching::default()
        ),
        "[nil (2) [a y]]"
    );
    assert_eq!(fixture.ask("BLPOP a 0"), "[a x]");
    assert_eq!(fixture.ask("BLPOP a -1"), "ERR timeout is negative");
    assert_eq!(
        fixture.ask("BLPOP a x"),
        "ERR timeout is not a float or out of range"
    );
}

#[test]
fn list_that_a_transaction_or_a_rename_makes_serves_too() {
    for lines in [
        &["RPUSH other x", "RENAME other a"][..],
        &["RPUSH a x"],
        &["RPUSH o x", "COPY o a"],
    ] {
        let fixture = Fixture::new();
        let local = LocalSet::new();
        local.block_on(&fixture.runtime, async {
            let keyspace = Arc::clone(&fixture.keyspace);
            let waits = tokio::task::spawn_local(async move {
                ask(&keyspace, &Client::default(), "BLPOP a 0").await
            });
            while fixture.keyspace.waiters().is_empty() {
                tokio::task::yield_now().await;
            }
            let commands: Vec<_> = lines
                .iter()
                .map(|line| parse(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()))
                .collect();
            execute_all(
                &fixture.keyspace,
                &Client::default(),
                &commands,
                &Watching::default(),
            )
            .await;
            assert_eq!(waits.await.unwrap(), "[a x]", "{lines:?}");
        });
    }
}

#[test]
fn change_of_a_watched_key_breaks_a_transaction() {
    let fixture = Fixture::new();
    let exec = |watching: &Watching| fixture.exec(&["SET done 1"], watching);
    for line in [
        "SET s 1",
        "HSET h f 1",
        "SADD t a",
        "ZADD z 1 a",
        "RPUSH l a b",
        "SET e 1 PX 100",
    ] {
        fixture.ask(line);
    }
    let breaking = [
        ("s", "SET s 1"),
        ("s", "EXPIRE s 100"),
        ("h", "HSET h f 2"),
        ("t", "SREM t a"),
        ("z", "ZINCRBY z 1 a"),
        ("l", "LSET l 0 x"),
        ("l", "RENAME l m"),
        ("l", "COPY s l"),
        ("m", "KREON.DELRANGE m n"),
        ("h", "FLUSHDB"),
    ];
    for (key, line) in breaking {
        let watching = fixture.watch(&[key, "other"]);
        fixture.ask(line);
        assert_eq!(exec(&watching), "nil", "{line}");
    }
    let keeping = [
        "GET s",
        "SET s 2 NX",
        "SET x 1",
        "DEL missing",
        "SADD t a",
        "COPY s x REPLACE",
    ];
    for line in ["SET s 1", "SADD t a"] {
        fixture.ask(line);
    }
    for line in keeping {
        let watching = fixture.watch(&["s", "t", "missing"]);
        fixture.ask(line);
        assert_eq!(exec(&watching), "[OK]", "{line}");
    }
    fixture.ask("SET e 1 PX 100");
    let watching = fixture.watch(&["e"]);
    fixture.pass(101);
    assert_eq!(exec(&watching), "nil", "it has expired since");
    let mut watching = watching;
    fixture.watch_more(&mut watching, &["e"]);
    assert_eq!(exec(&watching), "nil", "it was watched before, too");
    drop(watching);
    assert_eq!(
        exec(&fixture.watch(&["e"])),
        "[OK]",
        "it had expired before"
    );
    assert!(fixture.keyspace.watched().is_empty());
}

#[test]
fn transaction_breaks_what_others_watch() {
    let fixture = Fixture::new();
    let none = Watching::default();
    fixture.ask("MSET a 1 b 1");
    for (lines, is_broken) in [
        (&["SET b 1", "INCR a"][..], true),
        (&["SET b 1", "HSET a f v"], false),
        (&["SET b 1", "FLUSHDB"], true),
    ] {
        let watching = fixture.watch(&["a"]);
        fixture.exec(lines, &none);
        assert_eq!(watching.is_broken(0), is_broken, "{lines:?}");
    }
}

#[test]
fn key_that_gets_watched_while_all_are_deleted_breaks_a_transaction() {
    for line in ["FLUSHDB", "KREON.DELRANGE a z"] {
        let fixture = Fixture::new();
        fixture.ask("MSET before 1 later 1 zz 1");
        let absent = fixture.watch(&["absent", "zz"]);
        let before = fixture.watch(&["before"]);
        let held = fixture.keyspace.locks().try_alone(Stripes::All).unwrap();
        let mut access = Access::new(&fixture.keyspace, 0, Source::Device);
        let run = if line == "FLUSHDB" { flushdb } else { delrange };
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        run(&mut access, &parse(&words).1).unwrap();
        // It may still be read now.
        let later = fixture.watch(&["later"]);
        apply(&fixture.keyspace, access, &held).unwrap();
        drop(held);
        for (watching, is_broken) in [(before, true), (later, true), (absent, line == "FLUSHDB")] {
            assert_eq!(watching.is_broken(0), is_broken, "{line}");
        }
    }
}

#[test]
fn transaction_reads_its_own_writes_and_fails_by_single_commands() {
    let fixture = Fixture::new();
    let reply = fixture.exec(
        &[
            "SET a 1",
            "INCR a",
            "LPUSH a x",
            "GET a",
            "SELECT 1",
            "GET a",
            "SET a other",
            "SELECT 9",
            "HSET h f v",
            "HGETALL h",
        ],
        &Watching::default(),
    );
    let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(
        reply,
        format!("[OK (2) {wrong} 2 OK nil OK ERR DB index is out of range (1) [f v]]")
    );
    assert_eq!(fixture.ask("GET a"), "other", "the database stays selected");
    fixture.client.db.set(0);
    assert_eq!(fixture.ask("GET a"), "2");
}

#[test]
fn increments_of_many_threads_all_count() {
    let fixture = Fixture::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let keyspace = Arc::clone(&fixture.keyspace);
            scope.spawn(move || {
                let client = Client::default();
                super::runtime().block_on(async {
                    for _ in 0..200 {
                        ask(&keyspace, &client, "INCR n").await;
                        ask(&keyspace, &client, "HINCRBY h f 1").await;
                        ask(&keyspace, &client, "RPUSH l x").await;
                        let commands = [parse(&[b"INCR", b"n"]), parse(&[b"LPOP", b"l"])];
                        execute_all(&keyspace, &client, &commands, &Watching::default()).await;
                        ask(&keyspace, &client, "MGET n m").await;
                    }
                });
            });
        }
    });
    assert_eq!(fixture.ask("GET n"), "1600");
    assert_eq!(fixture.ask("HGET h f"), "800");
    assert_eq!(fixture.ask("LLEN l"), "(0)");
    assert_eq!(fixture.records(b'e'), 1);
}

#[test]
fn replies_wait_for_the_writes_that_they_tell_of() {
    let device = Arc::new(kreon_sim::SimDevice::new(kreon_sim::SimOptions::default()));
    let fixture = Fixture::on(device, Persistence::Sync);
    let [writer, reader] = [(), ()].map(|()| Client::default());
    let is_durable = |client: &Client| fixture.keyspace.epochs().is_durable(client.awaited.get());
    let ask = |client: &Client, line: &str| {
        fixture
            .runtime
            .block_on(ask(&fixture.keyspace, client, line))
    };
    let sync = |client: &Client| {
        fixture
            .runtime
            .block_on(fixture.keyspace.durable(client, &SyncGroup::default()))
            .unwrap()
    };
    for (write, read) in [
        ("SET a 1", "GET a"),
        ("HSET h f v", "HGETALL h"),
        ("RPUSH l x", "MGET l a"),
        ("SADD s x", "DBSIZE"),
        ("DEL a", "GET a"),
        ("ZADD z 1 m", "ZSCORE z m"),
        ("SET b 1", "SETNX b 2"),
    ] {
        ask(&writer, write);
        assert!(!is_durable(&writer), "{write}");
        ask(&reader, read);
        assert!(!is_durable(&reader), "{read}");
        sync(&writer);
        sync(&reader);
        assert!(is_durable(&writer) && is_durable(&reader));
    }
    ask(&writer, "SET a 1");
    ask(&reader, "GET far");
    assert!(is_durable(&reader), "other keys are durable");
}
