//! What must hold for all sequences of commands: a property for the fuzzer, and for a test.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use kreon::{Clock, Store};
use tokio::runtime::Builder;

use crate::command::{Combiner, Command, Pipeline, Queued, execute, execute_all, find};
use crate::keyspace::{COLLECTION, Client, Head, Keyspace, KeyspaceOptions, Kind, Rooms, Watching};
use crate::reply::Reply;
use crate::settings::Persistence;

/// Commands to choose from: `K` is a key, `V` a member or value, `N` a number, `B` an end of a range of members.
const FORMS: &[&str] = &[
    "GET K",
    "SET K V",
    "SET K V NX GET",
    "SET K V XX KEEPTTL",
    "SET K V PXAT 99999999999999",
    "SETNX K V",
    "GETSET K V",
    "GETDEL K",
    "GETEX K PERSIST",
    "MGET K K",
    "MSET K V K V",
    "MSETNX K V K V",
    "APPEND K V",
    "STRLEN K",
    "SETRANGE K N V",
    "GETRANGE K N N",
    "INCR K",
    "DECRBY K N",
    "INCRBYFLOAT K N",
    "DEL K K",
    "EXISTS K K",
    "TYPE K",
    "EXPIREAT K 99999999999",
    "EXPIREAT K N",
    "PEXPIREAT K 99999999999999 GT",
    "PERSIST K",
    "EXPIRETIME K",
    "TTL none",
    "RENAME K K",
    "RENAMENX K K",
    "COPY K K REPLACE",
    "COPY K K",
    "KEYS *",
    "KEYS a*",
    "DBSIZE",
    "FLUSHDB",
    "HSET K V V V V",
    "HSETNX K V V",
    "HGET K V",
    "HMGET K V V",
    "HGETALL K",
    "HDEL K V V",
    "HLEN K",
    "HEXISTS K V",
    "HKEYS K",
    "HVALS K",
    "HSTRLEN K V",
    "HINCRBY K V N",
    "HINCRBYFLOAT K V N",
    "SADD K V V V",
    "SREM K V V",
    "SISMEMBER K V",
    "SMISMEMBER K V V",
    "SMEMBERS K",
    "SCARD K",
    "SPOP K 0",
    "SRANDMEMBER K 0",
    "SUNION K K",
    "SINTER K K",
    "SDIFF K K",
    "ZADD K N V N V",
    "ZADD K GT CH N V",
    "ZADD K NX INCR N V",
    "ZREM K V V",
    "ZSCORE K V",
    "ZMSCORE K V V",
    "ZCARD K",
    "ZCOUNT K N N",
    "ZRANGE K N N REV",
    "ZRANGE K N N BYSCORE LIMIT 0 N",
    "ZRANGE K B B BYLEX",
    "ZREVRANGE K N N WITHSCORES",
    "ZRANGEBYSCORE K N N",
    "ZRANK K V",
    "ZREVRANK K V",
    "ZINCRBY K N V",
    "ZPOPMIN K",
    "ZPOPMAX K N",
    "ZREMRANGEBYSCORE K N N",
    "ZREMRANGEBYRANK K N N",
    "LPUSH K V V V",
    "RPUSH K V V V",
    "LPOP K",
    "RPOP K N",
    "LLEN K",
    "LRANGE K N N",
    "LINDEX K N",
    "LSET K N V",
    "LTRIM K N N",
    "LREM K N V",
    "BLPOP K K -1",
    "KREON.RANGE K K",
    "KREON.RANGE - + KEYS REV",
    "KREON.COUNT K +",
    "KREON.DELRANGE K K",
    "HSET K V",
    "ZADD K x V",
    "LPOP",
];
const KEYS: &[&str] = &["a", "b", "ab", "c", ""];
const VALUES: &[&str] = &["x", "y", "1", "2", "-3", "", "x\0y", "10"];
const NUMBERS: &[&str] = &[
    "0", "1", "2", "-1", "-2", "5", "-3", "1.5", "x", "100", "inf",
];
const ENDS: &[&str] = &["-", "+", "[x", "(x", "[1", "(y"];
/// Commands of one input.
const COMMANDS_MAX: usize = 200;

/// Bytes as choices; zeros at the end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn of(&mut self, words: &'static [&'static str]) -> &'static str {
        let choice = match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                usize::from(byte)
            }
            None => 0,
        };
        words.get(choice % words.len()).copied().unwrap_or_default()
    }

    fn command(&mut self) -> (&'static Command, Vec<Bytes>) {
        let form = self.of(FORMS);
        let args = form.split(' ').map(|part| match part {
            "K" => self.of(KEYS),
            "V" => self.of(VALUES),
            "N" => self.of(NUMBERS),
            "B" => self.of(ENDS),
            other => other,
        });
        let args: Vec<Bytes> = args.map(|arg| Bytes::from_static(arg.as_bytes())).collect();
        let name = args.first().map_or(&[][..], |name| name);
        let Some(command) = find(name) else {
            panic!("no command {form}");
        };
        (command, args)
    }
}

/// Commands that are given one by one reply as they do in pipelines and in transactions, whose reads go other ways; and afterwards
/// all databases have the same records, and the number of elements that their heads tell. `store` is empty.
///
/// # Panics
/// This does not hold.
pub fn check_commands(store: Store, bytes: &[u8]) {
    let options = KeyspaceOptions {
        databases: 3,
        persistence: Persistence::Buffered,
        rooms: Rooms::unlimited(),
    };
    let (Ok(keyspace), Ok(runtime)) = (
        Keyspace::open(store, options, Clock::default()),
        Builder::new_current_thread().enable_time().build(),
    ) else {
        panic!("an empty store can be used");
    };
    let [single, together, pipelined] = [0, 1, 2].map(|db| {
        let client = Client::default();
        client.db.set(db);
        client
    });
    let mut choices = Choices(bytes);
    let mut run = 0;
    while !choices.0.is_empty() && run < COMMANDS_MAX {
        let count = 1 + choices.0.first().map_or(0, |byte| usize::from(byte / 64));
        let commands: Vec<_> = (0..count).map(|_| choices.command()).collect();
        run += count;
        let watching = Watching::default();
        let all = execute_all(&keyspace, &together, &commands, &watching);
        let Reply::Array(replies) = runtime.block_on(all) else {
            panic!("a transaction fails: {commands:?}");
        };
        for ((command, args), expected) in commands.iter().zip(&replies) {
            let reply = runtime.block_on(execute(&keyspace, &single, command, args));
            assert_eq!(reply, *expected, "{args:?}");
        }
        let in_pipelines = runtime.block_on(run_in_pipelines(&keyspace, &pipelined, &commands));
        assert_eq!(in_pipelines, replies, "{commands:?}");
    }
    for db in [1, 2] {
        assert_eq!(
            records(&keyspace, 0),
            records(&keyspace, db),
            "database {db}"
        );
    }
    check_heads(&keyspace);
}

/// As a connection runs what came together.
async fn run_in_pipelines(
    keyspace: &Arc<Keyspace>,
    client: &Client,
    commands: &[Queued],
) -> Vec<Reply> {
    let (combiner, db) = (Combiner::default(), client.db.get());
    let (mut pipeline, mut replies) = (Pipeline::default(), Vec::new());
    for (command, args) in commands {
        if Pipeline::takes(command, args) {
            pipeline.push(db, command, args.clone());
            continue;
        }
        let before = mem::take(&mut pipeline);
        replies.extend(combiner.run_to_end(keyspace, client, before).await);
        replies.push(execute(keyspace, client, command, args).await);
    }
    replies.extend(combiner.run_to_end(keyspace, client, pipeline).await);
    replies
}

/// Kinds of all records, in their order.
fn records(keyspace: &Keyspace, db: usize) -> Vec<u8> {
    let Ok(database) = keyspace.database(db) else {
        return Vec::new();
    };
    let keys = database.region.iter().keys();
    keys.filter_map(|key| key.ok()?.first().copied()).collect()
}

fn check_heads(keyspace: &Keyspace) {
    let Ok(database) = keyspace.database(0) else {
        return;
    };
    let mut elements = 0;
    for (key, head) in database.region.prefix([COLLECTION]).flatten() {
        let Some(head) = Head::decode(&head) else {
            panic!("{key:?} has no head");
        };
        elements += head.len * if head.kind == Kind::SortedSet { 2 } else { 1 };
    }
    let found = records(keyspace, 0)
        .into_iter()
        .filter(|&kind| kind == b'e');
    assert_eq!(
        found.count() as u64,
        elements,
        "elements of all collections"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_reply_alone_as_in_a_transaction() {
        let mut state = 1_u64;
        for round in 0..12 {
            let bytes: Vec<u8> = (0..1500)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(round + 1);
                    (state >> 40) as u8
                })
                .collect();
            let folder = tempfile::tempdir().unwrap();
            let options = Store::options().memory_bytes(16 << 20);
            check_commands(options.open(folder.path().join("store")).unwrap(), &bytes);
        }
    }
}
