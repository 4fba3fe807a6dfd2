//! Keys that end.

use super::{Fixture, START_MS, parse};
use crate::command::keys::{persist, rename};
use crate::keyspace::{Access, COLLECTION, EXPIRY, STRING, Source};

#[test]
fn keys_end_at_their_deadline() {
    let fixture = Fixture::new();
    let ask = |line: &str| fixture.ask(line);
    assert_eq!(ask("SET s v PX 1500"), "OK");
    assert_eq!(ask("RPUSH l a b"), "(2)");
    assert_eq!(ask("PEXPIRE l 1500"), "(1)");
    assert_eq!(ask("PTTL s"), "(1500)");
    assert_eq!(ask("TTL l"), "(2)");
    assert_eq!(ask("PEXPIRETIME l"), format!("({})", START_MS + 1500));
    fixture.pass(1499);
    assert_eq!((ask("GET s"), ask("LLEN l")), ("v".into(), "(2)".into()));
    fixture.pass(2);
    assert_eq!((ask("GET s"), ask("LLEN l")), ("nil".into(), "(0)".into()));
    assert_eq!(
        (ask("TTL s"), ask("TYPE l")),
        ("(-2)".into(), "none".into())
    );
    assert_eq!(
        (ask("DBSIZE"), ask("KEYS *"), ask("RANDOMKEY")),
        ("(0)".into(), "[]".into(), "nil".into())
    );
    assert_eq!(ask("SCAN 0"), "[0 []]");
    assert_eq!(ask("SET s w XX"), "nil");
}

#[test]
fn deadlines_hold_over_changes_of_the_value_and_openings() {
    let fixture = Fixture::new();
    for line in [
        "SET n 1 EX 100",
        "HSET h f v",
        "EXPIRE h 100",
        "INCR n",
        "APPEND n 0",
        "SETRANGE n 0 3",
        "HSET h g w",
        "RENAME n m",
        "COPY h c",
    ] {
        assert!(!fixture.ask(line).starts_with("ERR"), "{line}");
    }
    let fixture = fixture.reopen();
    for key in ["m", "h", "c"] {
        assert_eq!(fixture.ask(&format!("TTL {key}")), "(100)", "{key}");
    }
    assert_eq!(fixture.ask("GET m"), "30");
    assert_eq!(fixture.ask("SET m 1 KEEPTTL"), "OK");
    assert_eq!(fixture.ask("TTL m"), "(100)");
    assert_eq!(fixture.ask("SET m 1"), "OK");
    assert_eq!(fixture.ask("TTL m"), "(-1)");
    assert_eq!(fixture.ask("PERSIST h"), "(1)");
    assert_eq!(fixture.ask("PERSIST h"), "(0)");
    fixture.pass(100_001);
    assert_eq!(fixture.ask("EXISTS m h c"), "(2)");
}

#[test]
fn moment_in_the_past_deletes() {
    let fixture = Fixture::new();
    for line in ["SET a 1", "RPUSH b 1"] {
        fixture.ask(line);
    }
    assert_eq!(fixture.ask("EXPIRE a -1"), "(1)");
    assert_eq!(fixture.ask("PEXPIREAT b 1"), "(1)");
    assert_eq!(fixture.ask("SET c 1 PXAT 1"), "OK");
    assert_eq!(fixture.ask("EXISTS a b c"), "(0)");
    assert_eq!(fixture.records(b'e') + fixture.records(STRING), 0);
}

#[test]
fn space_of_expired_collections_is_taken_back() {
    let fixture = Fixture::new();
    let ask = |line: &str| fixture.ask(line);
    let reclaim = || {
        fixture
            .runtime
            .block_on(fixture.keyspace.reclaim())
            .unwrap()
    };
    for line in [
        "SADD gone a b c",
        "EXPIRE gone 10",
        "ZADD kept 1 a",
        "EXPIRE kept 10",
        "EXPIRE kept 1000",
        "HSET again f v",
        "EXPIRE again 10",
    ] {
        ask(line);
    }
    assert_eq!((fixture.records(EXPIRY), reclaim()), (3, 0));
    fixture.pass(10_001);
    assert_eq!(ask("HSET again g w"), "(1)");
    assert_eq!(
        fixture.records(b'e'),
        3 + 2 + 2,
        "what has expired still takes space"
    );
    assert_eq!(reclaim(), 2);
    assert_eq!(fixture.records(b'e'), 2 + 1);
    assert_eq!(
        (fixture.records(EXPIRY), fixture.records(COLLECTION)),
        (1, 2)
    );
    assert_eq!(ask("HGETALL again"), "[g w]");
    assert_eq!(reclaim(), 0);
}

#[test]
fn space_of_a_collection_that_got_away_before_its_deadline_is_not_taken() {
    let fixture = Fixture::new();
    fixture.ask("RPUSH a x y");
    fixture.ask("PEXPIRE a 100");
    // A transaction reads before the deadline, and is applied after it.
    let mut access = Access::new(&fixture.keyspace, 0, Source::Memory);
    rename(&mut access, &parse(&[b"RENAME", b"a", b"b"]).1).unwrap();
    persist(&mut access, &parse(&[b"PERSIST", b"b"]).1).unwrap();
    fixture.pass(101);
    let found = fixture.keyspace.expired().unwrap();
    assert_eq!(found.len(), 1);
    access.apply().unwrap();
    let reclaimed = fixture.keyspace.reclaim_all(found);
    fixture.runtime.block_on(reclaimed).unwrap();
    assert_eq!(fixture.ask("LRANGE b 0 -1"), "[x y]");
    assert_eq!((fixture.records(b'e'), fixture.records(EXPIRY)), (2, 0));
}

#[test]
fn conditions_of_expire_hold() {
    let fixture = Fixture::new();
    let ask = |line: &str| fixture.ask(line);
    ask("SET a 1");
    let cases = [
        ("EXPIRE a 100 XX", "(0)"),
        ("EXPIRE a 100 GT", "(0)"),
        ("EXPIRE a 100 LT", "(1)"),
        ("EXPIRE a 200 NX", "(0)"),
        ("EXPIRE a 50 GT", "(0)"),
        ("EXPIRE a 200 GT", "(1)"),
        ("EXPIRE a 300 LT", "(0)"),
        ("EXPIRE a 300 XX", "(1)"),
        ("TTL a", "(300)"),
        (
            "EXPIRE a 1 NX XX",
            "ERR NX and XX, GT or LT options at the same time are not compatible",
        ),
        (
            "EXPIRE a 9223372036854775807",
            "ERR invalid expire time in 'expire' command",
        ),
        ("EXPIRE missing 1", "(0)"),
        ("EXPIRE a 1 Q", "ERR Unsupported option Q"),
    ];
    for (line, reply) in cases {
        assert_eq!(ask(line), reply, "{line}");
    }
}
