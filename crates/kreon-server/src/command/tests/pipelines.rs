//! Writes that come together: what each of them does and replies is what it would alone.

use std::sync::Arc;

use kreon_sim::{SimDevice, SimOptions};
use tokio::task::LocalSet;

use super::{Client, Combiner, Fixture, pipeline, show};
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
fn pipelines_that_wait_for_one_lock_run_together_and_all_are_answered() {
    let fixture = Fixture::new();
    let (keyspace, combiner) = (&fixture.keyspace, std::rc::Rc::new(Combiner::default()));
    let local = LocalSet::new();
    local.block_on(&fixture.runtime, async {
        let stripe = keyspace.locks().stripe(0, b"hot");
        let held = keyspace.locks().try_alone(Stripes::One(stripe)).unwrap();
        let runs: Vec<_> = (0..10)
            .map(|number| {
                let (keyspace, combiner) = (Arc::clone(keyspace), std::rc::Rc::clone(&combiner));
                tokio::task::spawn_local(async move {
                    let client = Client::default();
                    let own = format!("SET own{number} {number}");
                    let lines = ["INCR hot", &own, "HSET hot f v", "INCR hot"];
                    let pipeline = pipeline(&client, &lines);
                    combiner.run_to_end(&keyspace, &client, pipeline).await
                })
            })
            .collect();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert!(
            runs.iter().all(|run| !run.is_finished()),
            "the lock is held"
        );
        drop(held);
        let mut last = 0;
        for run in runs {
            let replies: Vec<String> = run.await.unwrap().iter().map(show).collect();
            assert_eq!(replies[1], "OK");
            assert!(replies[2].starts_with("WRONGTYPE"));
            let number = |text: &str| -> u32 { text.trim_matches(['(', ')']).parse().unwrap() };
            let (first, second) = (number(&replies[0]), number(&replies[3]));
            assert_eq!(second, first + 1, "nobody comes between");
            last = last.max(second);
        }
        assert_eq!(last, 20);
    });
    assert_eq!(fixture.ask("GET own7"), "7");
}

#[test]
fn pipeline_is_not_run_for_another_while_one_of_its_locks_is_taken() {
    let fixture = Fixture::new();
    let (keyspace, combiner) = (&fixture.keyspace, std::rc::Rc::new(Combiner::default()));
    let stripe = |key: &str| keyspace.locks().stripe(0, key.as_bytes());
    // Locks are taken in ascending order: what needs both waits for this one first, and not for the other.
    let mut names = (0..).map(|number| format!("cold{number}"));
    let cold = names.find(|name| stripe(name) < stripe("hot")).unwrap();
    let local = LocalSet::new();
    local.block_on(&fixture.runtime, async {
        let [hot_held, cold_held] = [stripe("hot"), stripe(&cold)]
            .map(|stripe| keyspace.locks().try_alone(Stripes::One(stripe)).unwrap());
        let both = ["INCR hot".to_owned(), format!("SET {cold} 1")];
        let [both, one] = [both.to_vec(), vec!["INCR hot".to_owned()]].map(|lines| {
            let (keyspace, combiner) = (Arc::clone(keyspace), std::rc::Rc::clone(&combiner));
            tokio::task::spawn_local(async move {
                let client = Client::default();
                let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
                let pipeline = pipeline(&client, &lines);
                combiner.run_to_end(&keyspace, &client, pipeline).await
            })
        });
        tokio::task::yield_now().await;
        drop(hot_held);
        assert_eq!(show(&one.await.unwrap()[0]), "(1)");
        tokio::task::yield_now().await;
        assert!(!both.is_finished(), "the other lock is taken");
        drop(cold_held);
        let replies: Vec<String> = both.await.unwrap().iter().map(show).collect();
        assert_eq!(replies, ["(2)", "OK"]);
    });
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
