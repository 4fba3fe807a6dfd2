//! Writes that come together: what each of them does and replies is what it would alone.

use std::sync::Arc;

use kreon_sim::{SimDevice, SimOptions};
use tokio::task::LocalSet;

use super::{Client, Combiner, Fixture, parse, pipeline, show};
use crate::command::pipeline::{Pipeline, Scratch};
use crate::keyspace::{Stripes, SyncGroup};
use crate::settings::Persistence;

#[test]
fn command_of_a_pipeline_sees_those_before_it() {
    let fixture = Fixture::new();
    let replies = fixture.pipeline(&[
        "SET n 1",
        "INCR n",
        "APPEND n 0",
        "LPUSH l a",
        "RPUSH l b c",
        "LPOP l",
        "DEL l",
        "RPUSH l x",
        "SETNX n 9",
        "GETSET n 7",
        "HSET h f 1",
        "HINCRBY h f 2",
        "ZADD z 1 m",
        "ZINCRBY z 2 m",
        "RENAME z y",
        "EXPIRE h 100",
        "PERSIST h",
    ]);
    assert_eq!(
        replies,
        [
            "OK", "(2)", "(2)", "(1)", "(3)", "a", "(1)", "(1)", "(0)", "20", "(1)", "(3)", "(1)",
            "3", "OK", "(1)", "(1)",
        ]
    );
    assert_eq!(fixture.ask("LRANGE l 0 -1"), "[x]");
    assert_eq!(fixture.ask("ZRANGE y 0 -1 WITHSCORES"), "[m 3]");
    assert_eq!(
        fixture.records(b'e'),
        1 + 1 + 2,
        "of the list, the hash, the set"
    );
}

#[test]
fn command_that_fails_leaves_nothing_and_takes_no_other_along() {
    let fixture = Fixture::new();
    let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
    let replies = fixture.pipeline(&[
        "SET a 1",
        "HSET a f v",
        "SET text abc",
        "INCR text",
        "ZADD z 1 m inf n",
        "ZINCRBY z -inf n",
        "ZINCRBY z 1 m",
        "SET b 2",
    ]);
    let not_integer = "ERR value is not an integer or out of range";
    let nan = "ERR resulting score is not a number (NaN)";
    assert_eq!(
        replies,
        ["OK", wrong, "OK", not_integer, "(2)", nan, "2", "OK"]
    );
    assert_eq!(fixture.ask("MGET a b text"), "[1 2 abc]");
    assert_eq!(fixture.ask("ZRANGE z 0 -1 WITHSCORES"), "[m 2 n inf]");
}

/// Runs pipelines as those that wait for the same locks.
fn run_together(fixture: &Fixture, pipelines: &mut [Pipeline]) {
    let held = fixture.keyspace.locks().try_alone(Stripes::All).unwrap();
    Scratch::default().run_all(&fixture.keyspace, pipelines, &Stripes::All, held);
}

#[test]
fn refused_command_leaves_nothing_of_what_it_wrote_before_it_failed() {
    let fixture = Fixture::new();
    let long = "x".repeat(70_000);
    let mut together = Pipeline::default();
    for line in ["SET a 1", &format!("MSET b 1 {long} 1"), "SET c 1"] {
        let (command, args) = parse(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        together.push(0, command, args);
    }
    let watching = fixture.watch(&["b"]);
    run_together(&fixture, std::slice::from_mut(&mut together));
    let replies: Vec<_> = together
        .take_done()
        .0
        .map(|(_, reply)| show(&reply))
        .collect();
    assert_eq!((&*replies[0], &*replies[2]), ("OK", "OK"));
    assert!(replies[1].starts_with("ERR key, field or member is longer"));
    assert_eq!(fixture.ask("MGET a b c"), "[1 nil 1]");
    assert_eq!(fixture.exec(&["SET done 1"], &watching), "[OK]");
}

#[test]
fn command_that_is_to_run_alone_leaves_nothing_to_those_behind_it() {
    let fixture = Fixture::new();
    fixture.ask("RPUSH from x y");
    fixture.ask("SET to kept");
    // It deletes what it replaces before it finds that it must scan.
    let copy = pipeline(&fixture.client, &["COPY from to REPLACE", "SET a 1"]);
    let other = pipeline(&fixture.client, &["SET b 1"]);
    let mut pipelines = [copy, other];
    run_together(&fixture, &mut pipelines);
    let [copy, other] = &mut pipelines;
    assert_eq!(
        (copy.take_done().0.len(), other.take_done().0.len()),
        (0, 1)
    );
    assert_eq!(fixture.ask("MGET to a b"), "[kept nil 1]");
}

#[test]
fn command_of_many_arguments_is_no_part_of_a_pipeline_however_short_they_are() {
    let is_taken = |keys: usize| {
        let words = [vec![&b"DEL"[..]], vec![&b""[..]; keys]].concat();
        let (command, args) = parse(&words);
        Pipeline::takes(command, &args)
    };
    assert!(is_taken(1000));
    assert!(!is_taken(1024));
}

#[test]
fn commands_of_a_batch_that_the_store_refuses_run_alone() {
    let fixture = Fixture::new();
    fixture.keyspace.store().drop_region("redis:1").unwrap();
    let far = Client::default();
    far.db.set(1);
    let near = pipeline(&fixture.client, &["SET a 1", "INCR a", "HSET a f v"]);
    let mut pipelines = [near, pipeline(&far, &["SET a 1"])];
    let watching = fixture.watch(&["a"]);
    run_together(&fixture, &mut pipelines);
    for refused in &mut pipelines {
        assert_eq!(refused.take_done().0.len(), 0, "nothing was applied");
    }
    assert_eq!(fixture.ask("EXISTS a"), "(0)");
    assert_eq!(fixture.exec(&["SET done 1"], &watching), "[OK]");
    let combiner = Combiner::default();
    let alone = |client: &Client, pipeline: Pipeline| -> Vec<String> {
        let run = combiner.run_to_end(&fixture.keyspace, client, pipeline);
        fixture.runtime.block_on(run).iter().map(show).collect()
    };
    let [near, far_pipeline] = pipelines;
    let replies = alone(&far, far_pipeline);
    assert!(replies[0].starts_with("ERR "), "{replies:?}");
    let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(alone(&fixture.client, near), ["OK", "(2)", wrong]);
}

#[test]
fn command_that_scans_runs_alone_between_those_of_its_pipeline() {
    let fixture = Fixture::new();
    let replies = fixture.pipeline(&[
        "ZADD z 2 b 1 a 3 c",
        "ZPOPMIN z",
        "ZADD z 0 d",
        "ZPOPMIN z 1",
        "SADD s x",
        "SPOP s",
        "SADD s y",
    ]);
    assert_eq!(replies, ["(3)", "[a 1]", "(1)", "[d 0]", "(1)", "x", "(1)"]);
    assert_eq!(fixture.ask("ZRANGE z 0 -1"), "[b c]");
    assert_eq!(fixture.ask("SMEMBERS s"), "[y]");
}

#[test]
fn long_values_and_replies_are_not_gathered_without_bound() {
    let fixture = Fixture::new();
    let part = "x".repeat(15 << 10);
    let append = format!("APPEND long {part}");
    let lines = vec![append.as_str(); 20];
    let replies = fixture.pipeline(&lines);
    assert_eq!(replies.last().unwrap(), "(307200)");
    let lines = vec!["GETSET long y", "SET long z", "GETDEL long"];
    let replies = fixture.pipeline(&lines);
    assert_eq!((replies[0].len(), &*replies[2]), (307_200, "z"));
    let client = Client::default();
    let long = format!("SET a {}", "x".repeat(17 << 10));
    let (command, args) = super::parse(&long.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    assert!(!super::Pipeline::takes(command, &args));
    // Once the replies are long no further command is begun: they are sent first.
    for key in ["k", "l", "m"] {
        fixture.ask(&format!("SET {key} {}", "x".repeat(40 << 10)));
    }
    let mut pipeline = pipeline(&client, &["GETSET k x", "GETSET l x", "GETSET m x"]);
    for done in [2, 1] {
        let run = Combiner::default();
        let run = run.run(&fixture.keyspace, pipeline);
        pipeline = fixture.runtime.block_on(run).unwrap();
        assert_eq!(pipeline.take_done().0.len(), done);
    }
}

#[test]
fn head_of_a_list_is_written_once_for_all_pushes_of_a_pipeline() {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let fixture = Fixture::on(Arc::clone(&device), Persistence::Buffered);
    let lines = vec!["RPUSH l x"; 100];
    let replies = fixture.pipeline(&lines);
    assert_eq!(replies.last().unwrap(), "(100)");
    let entries = fixture.keyspace.store().stats().l0_entries;
    assert!(
        entries <= 100 + 8,
        "{entries} entries of 100 elements and a head"
    );
    assert_eq!(fixture.ask("LLEN l"), "(100)");
}

#[test]
fn reply_of_a_pipeline_rests_on_its_batch() {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let fixture = Fixture::on(device, Persistence::Sync);
    let is_durable = || {
        let awaited = fixture.client.awaited.get();
        fixture.keyspace.epochs().is_durable(awaited)
    };
    let sync = || {
        let group = SyncGroup::default();
        let durable = fixture.keyspace.durable(&fixture.client, &group);
        fixture.runtime.block_on(durable).unwrap();
    };
    for lines in [&["SET a 1"][..], &["SET a 1", "LPUSH l x", "INCR a"]] {
        fixture.pipeline(lines);
        assert!(!is_durable(), "{lines:?}");
        sync();
    }
    // One that changes nothing tells of what was there, which is durable by now.
    fixture.pipeline(&["SETNX a 5", "HSET a f v"]);
    assert!(is_durable());
    fixture.pipeline(&["SET b 1"]);
    let other = Client::default();
    let setnx = pipeline(&other, &["SETNX b 5"]);
    let combiner = Combiner::default();
    let run = combiner.run_to_end(&fixture.keyspace, &other, setnx);
    fixture.runtime.block_on(run);
    assert!(!fixture.keyspace.epochs().is_durable(other.awaited.get()));
}

#[test]
fn pipeline_breaks_what_others_watch_and_serves_who_waits() {
    let fixture = Fixture::new();
    let watching = fixture.watch(&["b"]);
    fixture.pipeline(&["SET a 1", "INCR b", "SET c 1"]);
    assert_eq!(fixture.exec(&["SET done 1"], &watching), "nil");
    drop(watching);
    let watching = fixture.watch(&["a"]);
    fixture.pipeline(&["HSET a f v", "SET b 1"]);
    assert_eq!(
        fixture.exec(&["SET done 1"], &watching),
        "[OK]",
        "a command that fails changes nothing"
    );
    drop(watching);
    let local = LocalSet::new();
    local.block_on(&fixture.runtime, async {
        let keyspace = Arc::clone(&fixture.keyspace);
        let waits = tokio::task::spawn_local(async move {
            super::together::ask(&keyspace, &Client::default(), "BLPOP l 0").await
        });
        while fixture.keyspace.waiters().is_empty() {
            tokio::task::yield_now().await;
        }
        let lines = ["SET a 2", "RPUSH l x y", "LPOP l", "RPUSH l z"];
        let pipeline = pipeline(&fixture.client, &lines);
        let combiner = Combiner::default();
        let replies = combiner.run_to_end(&fixture.keyspace, &fixture.client, pipeline);
        let replies: Vec<String> = replies.await.iter().map(show).collect();
        assert_eq!(replies, ["OK", "(2)", "y", "(1)"], "x is gone before LPOP");
        assert_eq!(waits.await.unwrap(), "[l x]");
    });
}

#[test]
fn full_store_refuses_each_command_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let options = super::store_options().volume_bytes_max(64 << 20);
    let store = options.open(folder.path().join("store")).unwrap();
    let fixture = Fixture::of(store, Persistence::Buffered);
    let value = "x".repeat(12 << 10);
    let is_full = (0..20_000).any(|number| {
        let set = format!("SET k{number} {value}{number}");
        let replies = fixture.pipeline(&[&set, "INCR counter"]);
        replies[0].starts_with("OOM")
    });
    assert!(is_full, "64 MiB hold no 240 MB");
    let set = format!("SET more {value}");
    let replies = fixture.pipeline(&["DEL k0", &set, "DEL k1", "HSET k2 f v"]);
    assert_eq!((&*replies[0], &*replies[2]), ("(1)", "(1)"));
    assert!(replies[3].starts_with("WRONGTYPE"), "{}", replies[3]);
}
