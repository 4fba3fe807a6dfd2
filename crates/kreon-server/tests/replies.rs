//! Replies of many elements: how much memory they take while they are gathered. One test at a time: the memory is that of the
//! process.

mod common;

use std::fs;
use std::sync::Mutex;

use common::{Running, Wire, request};

static ALONE: Mutex<()> = Mutex::new(());

const TOO_LONG: &str = "-ERR the reply is longer than --output-max";
const FULL: &str = "-ERR the buffers of all connections are full";

/// The most memory that this process, which the server runs in, has had since [`forget_peak`].
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() << 10
}

fn forget_peak() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// A request of words, each but the first three of `word`.
fn add(wire: &mut Wire, command: &[&[u8]], elements: &[Vec<u8>]) {
    for elements in elements.chunks(100) {
        let mut words = command.to_vec();
        words.extend(elements.iter().map(Vec::as_slice));
        wire.send(&request(&words));
        assert!(!wire.reply().starts_with('-'));
    }
}

#[test]
fn long_value_that_is_asked_for_often_is_not_read_often() {
    const VALUE_BYTES: usize = 8 << 20;
    let _alone = ALONE.lock();
    let running = Running::with(|settings| settings.limits.output_bytes_max = 3 * VALUE_BYTES);
    let mut wire = running.connect();
    wire.send(&request(&[b"SET", b"k", &vec![b'x'; VALUE_BYTES]]));
    assert_eq!(wire.reply(), "+OK");
    wire.send(&request(&[b"HSET", b"h", b"f", &vec![b'x'; VALUE_BYTES]]));
    assert_eq!(wire.reply(), ":1");
    let many = |words: &[&'static [u8]], last: &'static [u8]| {
        let repeated = std::iter::repeat_n(last, 100);
        request(&words.iter().copied().chain(repeated).collect::<Vec<_>>())
    };
    let mut transaction = request(&[b"MULTI"]);
    transaction.extend(request(&[b"GET", b"k"]).repeat(100));
    forget_peak();
    let before = peak_bytes();
    for all in [many(&[b"MGET"], b"k"), many(&[b"HMGET", b"h"], b"f")] {
        wire.send(&all);
        assert_eq!(wire.reply(), TOO_LONG);
    }
    wire.send(&transaction);
    (0..101).for_each(|_| drop(wire.reply()));
    wire.request("EXEC");
    let replies = wire.try_reply().unwrap();
    assert!(replies.ends_with(format!("{TOO_LONG}\r\n").as_bytes()));
    assert_eq!(replies.len() / VALUE_BYTES, 2);
    let grown = peak_bytes().saturating_sub(before);
    assert!(
        grown < 20 * VALUE_BYTES as u64,
        "{grown} bytes for an error"
    );
    assert_eq!(wire.ask("MGET none none"), "*2|$-1|$-1");
}

/// Collections of 2 MiB each, and a limit of one.
fn with_collections() -> (Running, Wire) {
    let running = Running::with(|settings| settings.limits.output_bytes_max = 1 << 20);
    let mut wire = running.connect();
    let elements: Vec<Vec<u8>> = (0..2048)
        .map(|number| format!("{number:01024}").into_bytes())
        .collect();
    let pairs: Vec<Vec<u8>> = elements
        .iter()
        .flat_map(|it| [it.clone(), it.clone()])
        .collect();
    let scored = |it: &Vec<u8>| [b"1".to_vec(), it.clone()];
    add(&mut wire, &[b"HSET", b"h"], &pairs);
    add(&mut wire, &[b"SADD", b"s"], &elements);
    add(&mut wire, &[b"RPUSH", b"l"], &elements);
    add(
        &mut wire,
        &[b"ZADD", b"z"],
        &elements.iter().flat_map(scored).collect::<Vec<_>>(),
    );
    add(&mut wire, &[b"MSET"], &pairs);
    (running, wire)
}

#[test]
fn reply_of_a_large_collection_is_an_error_and_takes_nothing_away() {
    let _alone = ALONE.lock();
    let (_running, mut wire) = with_collections();
    for (line, of_less) in [
        ("HGETALL h", "HGET h x"),
        ("HKEYS h", "HLEN h"),
        ("HVALS h", "HLEN h"),
        (
            "HRANDFIELD h 1900 WITHVALUES",
            "HRANDFIELD h 100 WITHVALUES",
        ),
        ("HSCAN h 0 COUNT 2000", "HSCAN h 0 COUNT 100"),
        ("SMEMBERS s", "SCARD s"),
        ("SUNION s none", "SUNION none"),
        ("SINTER s s", "SINTER s none"),
        ("SDIFF s none", "SDIFF none s"),
        ("SRANDMEMBER s -5000", "SRANDMEMBER s 100"),
        ("SPOP s 1900", "SISMEMBER s x"),
        ("SSCAN s 0 COUNT 2000", "SSCAN s 0 COUNT 100"),
        ("LRANGE l 0 -1", "LRANGE l 0 99"),
        ("LPOP l 1900", "LLEN l"),
        ("RPOP l 1900", "LLEN l"),
        ("ZRANGE z 0 -1", "ZRANGE z 0 99"),
        ("ZRANGE z - + BYLEX", "ZRANGE z - + BYLEX LIMIT 0 100"),
        ("ZRANGEBYSCORE z 0 2", "ZRANGEBYSCORE z 2 3"),
        ("ZREVRANGE z 0 -1 WITHSCORES", "ZREVRANGE z 0 9 WITHSCORES"),
        ("ZPOPMIN z 1900", "ZCARD z"),
        ("ZSCAN z 0 COUNT 2000", "ZSCAN z 0 COUNT 100"),
        ("KEYS *", "KEYS x*"),
        ("SCAN 0 COUNT 2000", "SCAN 0 COUNT 100"),
        ("KREON.RANGE - +", "KREON.RANGE - + LIMIT 100"),
    ] {
        assert_eq!(wire.ask(line), TOO_LONG, "{line}");
        assert!(!wire.ask(of_less).starts_with('-'), "{of_less}");
    }
    for line in ["HLEN h", "SCARD s", "LLEN l", "ZCARD z"] {
        assert_eq!(wire.ask(line), ":2048", "{line}");
    }
    for (line, reply) in [
        ("MULTI", "+OK"),
        ("HVALS h", "+QUEUED"),
        ("HVALS none", "+QUEUED"),
    ] {
        assert_eq!(wire.ask(line), reply);
    }
    assert_eq!(wire.ask("EXEC"), format!("*2|{TOO_LONG}|*0"));
    // What is gathered for no reply is not bounded by its length.
    assert_eq!(wire.ask("ZREMRANGEBYSCORE z 0 2"), ":2048");
    assert_eq!(wire.ask(&format!("LREM l 0 {:01024}", 7)), ":1");
}

#[test]
fn replies_that_are_gathered_share_the_budget_of_all_connections() {
    let _alone = ALONE.lock();
    let (running, wire) = with_collections();
    drop(wire);
    let running = running.restart(|settings| settings.limits.buffers_bytes_max = 1 << 20);
    let mut wire = running.connect();
    for line in [
        "HGETALL h",
        "SMEMBERS s",
        "LRANGE l 0 -1",
        "LREM l 0 x",
        "COPY h h2",
    ] {
        assert_eq!(wire.ask(line), FULL, "{line}");
    }
    assert!(
        wire.ask("INFO clients")
            .ends_with("clients_buffers_bytes:0")
    );
    assert!(wire.ask("LRANGE l 0 99").starts_with("*100|"));
    assert_eq!(wire.ask("LLEN l"), ":2048");
    assert!(
        wire.ask("INFO clients")
            .ends_with("clients_buffers_bytes:0")
    );
}
