//! Edges of single commands, and texts of errors: those of Redis 7.

use super::Fixture;
use crate::keyspace::NAME_BYTES_MAX;

/// Asks line by line, and compares replies.
fn script(lines: &[(&str, &str)]) {
    let fixture = Fixture::new();
    for (line, reply) in lines {
        assert_eq!(fixture.ask(line), *reply, "{line}");
    }
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn strings_have_the_edges_of_redis() {
    script(&[
        ("GET", "ERR wrong number of arguments for 'get' command"),
        ("SET a 1 NX XX", "ERR syntax error"),
        ("SET a 1 EX 0", "ERR invalid expire time in 'set' command"),
        (
            "SET a 1 EX x",
            "ERR value is not an integer or out of range",
        ),
        ("SET a 1 EX 1 PX 1", "ERR syntax error"),
        ("SET a 1 GET", "nil"),
        ("SET a 2 XX GET", "1"),
        ("SET a 3 NX GET", "2"),
        (
            "MSET a 1 b",
            "ERR wrong number of arguments for 'mset' command",
        ),
        ("MSETNX a 1 c 2", "(0)"),
        ("MSETNX c 1 c 2", "(1)"),
        ("MGET a c none", "[2 2 nil]"),
        (
            "DECRBY a -9223372036854775808",
            "ERR decrement would overflow",
        ),
        ("SET a 9223372036854775807", "OK"),
        ("INCR a", "ERR increment or decrement would overflow"),
        ("INCRBYFLOAT f 0.1", "0.1"),
        ("INCRBYFLOAT f 0.2", "0.3"),
        ("SETRANGE new 3 x", "(4)"),
        ("STRLEN new", "(4)"),
        ("SETRANGE new -1 x", "ERR offset is out of range"),
        (
            "SETRANGE new 536870912 x",
            "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
        ),
        ("SET t hello", "OK"),
        ("GETRANGE t 1 -2", "ell"),
        ("GETRANGE t -1 -3", ""),
        ("GETRANGE t 0 -100", "h"),
        ("GETEX t PERSIST", "hello"),
        ("GETDEL t", "hello"),
        ("EXISTS t t a", "(1)"),
        ("LPUSH l x", "(1)"),
        ("APPEND l x", WRONG_TYPE),
        ("SET l x GET", WRONG_TYPE),
        ("MGET l a", "[nil 9223372036854775807]"),
        ("SETNX l x", "(0)"),
        ("SET l x", "OK"),
        ("LLEN l", WRONG_TYPE),
    ]);
}

#[test]
fn sorted_sets_have_the_edges_of_redis() {
    script(&[
        ("ZADD z 1 a 2 b 3 c 3 d", "(4)"),
        (
            "ZADD z NX XX 1 a",
            "ERR XX and NX options at the same time are not compatible",
        ),
        (
            "ZADD z GT LT 1 a",
            "ERR GT, LT, and/or NX options at the same time are not compatible",
        ),
        (
            "ZADD z INCR 1 a 1 b",
            "ERR INCR option supports a single increment-element pair",
        ),
        ("ZADD z x a", "ERR value is not a valid float"),
        ("ZADD z CH GT 0 a 9 b", "(1)"),
        ("ZADD z LT 2 b", "(0)"),
        ("ZADD z NX INCR 1 a", "nil"),
        ("ZADD z INCR 0.5 a", "1.5"),
        ("ZRANGE z 0 -1 WITHSCORES", "[a 1.5 b 2 c 3 d 3]"),
        ("ZRANGE z 0 1 REV", "[d c]"),
        ("ZRANGE z -1 -1", "[d]"),
        ("ZRANGE z (1.5 3 BYSCORE", "[b c d]"),
        ("ZRANGE z +inf (2 BYSCORE REV LIMIT 1 1", "[c]"),
        ("ZRANGE z [b (d BYLEX", "[b c]"),
        ("ZRANGE z + - BYLEX REV", "[d c b a]"),
        (
            "ZRANGE z b d BYLEX",
            "ERR min or max not valid string range item",
        ),
        (
            "ZRANGE z 0 1 LIMIT 0 1",
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ),
        (
            "ZRANGE z - + BYLEX WITHSCORES",
            "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
        ),
        ("ZCOUNT z (1.5 x", "ERR min or max is not a float"),
        ("ZCOUNT z -inf +inf", "(4)"),
        ("ZRANK z c", "(2)"),
        ("ZREVRANK z c", "(1)"),
        ("ZREVRANK z none", "nil"),
        ("ZMSCORE z a none", "[1.5 nil]"),
        ("ZINCRBY z inf a", "inf"),
        (
            "ZINCRBY z -inf a",
            "ERR resulting score is not a number (NaN)",
        ),
        (
            "ZPOPMIN z -1",
            "ERR value is out of range, must be positive",
        ),
        ("ZPOPMAX z 2", "[a inf d 3]"),
        ("ZREMRANGEBYRANK z 0 0", "(1)"),
        ("ZREMRANGEBYSCORE z 3 3", "(1)"),
        ("EXISTS z", "(0)"),
    ]);
}

#[test]
fn lists_hashes_and_sets_have_the_edges_of_redis() {
    script(&[
        ("RPUSH l a b c a", "(4)"),
        ("LPOP l 0", "[]"),
        ("LPOP none 1", "nil"),
        ("LPOP l -1", "ERR value is out of range, must be positive"),
        (
            "RPOP l 1 1",
            "ERR wrong number of arguments for 'rpop' command",
        ),
        ("LINDEX l -1", "a"),
        ("LINDEX l 9", "nil"),
        ("LSET l 9 x", "ERR index out of range"),
        ("LSET none 0 x", "ERR no such key"),
        ("LREM l -1 a", "(1)"),
        ("LRANGE l 0 -1", "[a b c]"),
        ("RPOP l 2", "[c b]"),
        ("LTRIM l 1 0", "OK"),
        ("EXISTS l", "(0)"),
        (
            "HSET h f",
            "ERR wrong number of arguments for 'hset' command",
        ),
        ("HSET h f 1 f 2 g 3", "(2)"),
        ("HGET h f", "2"),
        (
            "HINCRBY h f x",
            "ERR value is not an integer or out of range",
        ),
        ("HINCRBYFLOAT h f 0.5", "2.5"),
        ("HINCRBY h f 1", "ERR hash value is not an integer"),
        ("HRANDFIELD h 0", "[]"),
        ("HRANDFIELD h 5 WITHVALUE", "ERR syntax error"),
        ("HDEL h f g f", "(2)"),
        ("EXISTS h", "(0)"),
        ("SADD s a b a", "(2)"),
        ("SPOP s -1", "ERR value is out of range, must be positive"),
        ("SMISMEMBER s a c", "[(1) (0)]"),
        ("SPOP s 0", "[]"),
        ("SREM s a b", "(2)"),
        ("SRANDMEMBER s", "nil"),
        ("TYPE s", "none"),
    ]);
}

#[test]
fn keys_have_the_edges_of_redis() {
    script(&[
        ("RENAME none x", "ERR no such key"),
        ("SET a 1", "OK"),
        ("RENAME a a", "OK"),
        ("RENAMENX a a", "(0)"),
        (
            "COPY a a",
            "ERR source and destination objects are the same",
        ),
        ("COPY a b DB 9", "ERR DB index is out of range"),
        ("COPY a a DB 1", "(1)"),
        ("COPY a a DB 1", "(0)"),
        ("SADD s x", "(1)"),
        ("RENAME s a", "OK"),
        ("TYPE a", "set"),
        ("SCAN x", "ERR invalid cursor"),
        ("SCAN 0 COUNT 0", "ERR syntax error"),
        (
            "SCAN 77",
            "ERR invalid cursor: unknown, or forgotten since; begin anew with 0",
        ),
        ("FLUSHDB NOW", "ERR syntax error"),
        ("FLUSHALL", "OK"),
        ("DBSIZE", "(0)"),
    ]);
}

#[test]
fn own_commands_go_by_the_order_of_keys() {
    script(&[
        ("MSET u1 a u2 b v c", "OK"),
        ("SADD u15 m", "(1)"),
        ("KREON.RANGE u v", "[u1 a u15 nil u2 b]"),
        ("KREON.RANGE u v REV LIMIT 2", "[u2 b u15 nil]"),
        ("KREON.RANGE - + KEYS", "[u1 u15 u2 v]"),
        ("KREON.RANGE u2 u1", "[]"),
        ("KREON.COUNT u1 +", "(4)"),
        ("KREON.COUNT u15 v", "(2)"),
        ("KREON.DELRANGE u1 u2", "OK"),
        ("KREON.RANGE - + KEYS", "[u2 v]"),
        ("KREON.RANGE a b FOO", "ERR syntax error"),
    ]);
}

#[test]
fn scan_shows_each_key_once() {
    let fixture = Fixture::new();
    for number in 0..25 {
        fixture.ask(&format!("SET s{number} x"));
        fixture.ask(&format!("SADD t{number} x y z"));
    }
    let scan = |command: &str, options: &str| {
        let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
        loop {
            let reply = fixture.ask(&format!("{command} {cursor} {options} COUNT 7"));
            let (next, list) = reply[1..].split_once(' ').unwrap();
            let list = list
                .trim_matches(['[', ']'])
                .split(' ')
                .filter(|it| !it.is_empty());
            found.extend(list.map(str::to_owned));
            cursor = next.to_owned();
            if cursor == "0" {
                break;
            }
        }
        let count = found.len();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), count, "none twice");
        count
    };
    assert_eq!(scan("SCAN", "MATCH *"), 50);
    assert_eq!(scan("SCAN", "MATCH s*"), 25);
    assert_eq!(scan("SCAN", "MATCH *1"), 6);
    assert_eq!(scan("SCAN", "TYPE set"), 25);
    assert_eq!(scan("SCAN", "TYPE string"), 25);
    assert_eq!(scan("SCAN", "TYPE zset"), 0);
    for number in 0..20 {
        fixture.ask(&format!("SADD big m{number}"));
        fixture.ask(&format!("HSET bigh m{number} v{number}"));
        fixture.ask(&format!("ZADD bigz 1{number} m{number}"));
    }
    assert_eq!(scan("SSCAN big", "MATCH m*"), 20);
    assert_eq!(scan("HSCAN bigh", "MATCH m*"), 40);
    assert_eq!(scan("ZSCAN bigz", "MATCH m1*"), 22);
}

#[test]
fn cursor_of_another_scan_shows_nothing_that_is_not_asked_for() {
    let fixture = Fixture::new();
    for number in 10..30 {
        fixture.ask(&format!("SADD first m{number}"));
        fixture.ask(&format!("SADD second n{number}"));
    }
    fixture.ask("SADD third x y");
    fixture.ask("SET text 1");
    let cursor_of = |line: &str| {
        let reply = fixture.ask(line);
        reply[1..].split(' ').next().unwrap().to_owned()
    };
    let cursor = cursor_of("SSCAN first 0 COUNT 5");
    assert_eq!(
        fixture.ask(&format!("SSCAN third {cursor} COUNT 100")),
        "[0 [x y]]"
    );
    assert_eq!(
        fixture.ask(&format!("SCAN {cursor} COUNT 100")),
        "[0 [text]]"
    );
    let cursor = cursor_of("SSCAN third 0 COUNT 1");
    assert_eq!(
        fixture.ask(&format!("SSCAN first {cursor} COUNT 100")),
        "[0 []]"
    );
    // The set was replaced by another one between the calls.
    let cursor = cursor_of("SSCAN first 0 COUNT 5");
    fixture.ask("DEL first");
    fixture.ask("SADD first z");
    assert_eq!(
        fixture.ask(&format!("SSCAN first {cursor} COUNT 100")),
        "[0 [z]]"
    );
}

#[test]
fn chosen_elements_are_distinct_or_repeated() {
    let fixture = Fixture::new();
    let members: Vec<String> = (0..5000).map(|number| format!("m{number}")).collect();
    for chunk in members.chunks(500) {
        fixture.ask(&format!("SADD large {}", chunk.join(" ")));
        fixture.ask(&format!(
            "HSET hash {}",
            chunk
                .iter()
                .map(|it| format!("{it} v"))
                .collect::<Vec<_>>()
                .join(" ")
        ));
    }
    fixture.ask("SADD small a b c");
    let words = |reply: String| -> Vec<String> {
        let words = reply
            .trim_matches(['[', ']'])
            .split(' ')
            .filter(|it| !it.is_empty());
        words.map(str::to_owned).collect()
    };
    for (line, count, distinct) in [
        ("SRANDMEMBER small 10", 3, 3),
        ("SRANDMEMBER small 2", 2, 2),
        ("SRANDMEMBER large 100", 100, 100),
        ("SRANDMEMBER large 2000", 2000, 2000),
        ("HRANDFIELD hash 50", 50, 50),
        ("SPOP large 700", 700, 700),
        ("SPOP large 3000", 3000, 3000),
    ] {
        let mut found = words(fixture.ask(line));
        assert_eq!(found.len(), count, "{line}");
        found.sort();
        found.dedup();
        assert_eq!(found.len(), distinct, "{line}");
    }
    assert_eq!(words(fixture.ask("SRANDMEMBER small -20")).len(), 20);
    assert_eq!(words(fixture.ask("SRANDMEMBER large -20")).len(), 20);
    assert_eq!(fixture.ask("SCARD large"), "(1300)");
    assert_eq!(words(fixture.ask("SPOP large 100000")).len(), 1300);
    assert_eq!(fixture.records(b'e'), 5000 + 3);
    let mut hits = [0; 3];
    for _ in 0..300 {
        match fixture.ask("SRANDMEMBER small").as_str() {
            "a" => hits[0] += 1,
            "b" => hits[1] += 1,
            _ => hits[2] += 1,
        }
    }
    assert!(hits.iter().all(|&hits| hits > 50), "{hits:?}");
}

#[test]
fn many_elements_are_chosen_evenly_where_one_gap_is_far_larger_than_all_others() {
    let fixture = Fixture::new();
    let members: Vec<String> = (0..20_000).map(|number| format!("{number:08}")).collect();
    for chunk in members.chunks(500) {
        fixture.ask(&format!("SADD s {}", chunk.join(" ")));
    }
    fixture.ask("SADD s \u{7ff}");
    // Nearly all random keys lie in front of the last member. To pass over the chosen ones each time would take 10^7 steps.
    let chosen = fixture.ask("SRANDMEMBER s 4900");
    let quarter = |number: usize| {
        let chosen = chosen.trim_matches(['[', ']']).split(' ');
        let numbers = chosen.filter_map(|member| member.parse::<usize>().ok());
        numbers.filter(|it| it / 5000 == number).count()
    };
    for number in 0..4 {
        let count = quarter(number);
        assert!((1000..1500).contains(&count), "{count} of {number}");
    }
}

#[test]
fn names_have_a_longest_length() {
    let fixture = Fixture::new();
    let longest = "x".repeat(NAME_BYTES_MAX);
    assert_eq!(fixture.ask(&format!("SET {longest} v")), "OK");
    assert_eq!(fixture.ask(&format!("GET {longest}")), "v");
    assert_eq!(fixture.ask(&format!("ZADD z 1 {longest}")), "(1)");
    assert_eq!(fixture.ask("ZRANK z a"), "nil");
    let long = "x".repeat(70_000);
    assert_eq!(fixture.ask(&format!("GET {long}")), "nil");
    assert!(
        fixture
            .ask(&format!("SET {long} v"))
            .starts_with("ERR key, field or member")
    );
    assert!(
        fixture
            .ask(&format!("HSET h {long} v"))
            .starts_with("ERR key, field or member")
    );
    assert_eq!(fixture.ask("EXISTS h"), "(0)");
}
