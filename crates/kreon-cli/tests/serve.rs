//! `kreon serve` as a process: signals, kill -9, its file of settings, and a client that nobody here wrote.

mod fixture;
mod served;

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fixture::Fixture;
use served::Served;

/// Rounds of kill -9; more are asked for by this variable.
const ROUNDS: u64 = 3;
const ROUNDS_VARIABLE: &str = "KREON_SERVE_KILLS";

/// Sends a line and returns `count` lines of replies, while the server answers.
fn ask(stream: &mut BufReader<TcpStream>, line: &str, count: usize) -> Option<Vec<String>> {
    stream
        .get_mut()
        .write_all(format!("{line}\r\n").as_bytes())
        .ok()?;
    let mut lines = Vec::new();
    for _ in 0..count {
        let mut reply = String::new();
        if stream.read_line(&mut reply).ok()? == 0 || !reply.ends_with("\r\n") {
            return None;
        }
        lines.push(reply.trim_end().to_owned());
    }
    Some(lines)
}

/// The number behind a key.
fn number(stream: &mut BufReader<TcpStream>, key: &str) -> Option<u64> {
    number_of(stream, &format!("GET {key}"))
}

/// The number that a command replies with; 0 for nothing.
fn number_of(stream: &mut BufReader<TcpStream>, line: &str) -> Option<u64> {
    let first = ask(stream, line, 1)?;
    if first[0] == "$-1" {
        return Some(0);
    }
    let mut text = String::new();
    stream.read_line(&mut text).ok()?;
    text.strip_suffix("\r\n")?.parse().ok()
}

#[test]
fn sigterm_closes_the_store_with_all_that_was_acknowledged() {
    let fixture = Fixture::new();
    let served = Served::start(&fixture, &[]);
    let mut wire = BufReader::new(served.connect());
    assert_eq!(ask(&mut wire, "SET a 1", 1).unwrap(), ["+OK"]);
    assert!(served.end().contains("is closed"));
    let served = Served::start(&fixture, &[]);
    assert_eq!(number(&mut BufReader::new(served.connect()), "a"), Some(1));
}

#[test]
fn settings_come_from_a_file_and_a_password_from_another() {
    let fixture = Fixture::new();
    let password = fixture.file("password", "secret\n");
    let config = fixture.file(
        "serve.toml",
        format!("databases = 3\nauth-file = \"{password}\"\ndurability = \"interval:20\"\n"),
    );
    let served = Served::start(&fixture, &["--config", &config]);
    let mut wire = BufReader::new(served.connect());
    assert_eq!(
        ask(&mut wire, "GET a", 1).unwrap(),
        ["-NOAUTH Authentication required."]
    );
    assert_eq!(ask(&mut wire, "AUTH secret", 1).unwrap(), ["+OK"]);
    let databases = ask(&mut wire, "CONFIG GET databases", 5).unwrap();
    assert_eq!(databases[4], "3");
}

/// What a client knows of its counter: the highest number that was acknowledged, or that anybody read.
type Known = Arc<Vec<AtomicU64>>;

const CLIENTS: usize = 8;

/// Counts up until the server is gone: by a pipeline of plain writes, and two keys in one transaction; and reads the counters of
/// others.
fn count_up(stream: TcpStream, me: usize, known: &Known) {
    let mut wire = BufReader::new(stream);
    let mut next = known[me].load(Ordering::SeqCst);
    loop {
        next += 1;
        let plain = format!("SET c{me} {next}\r\nRPUSH l{me} {next}\r\nHSET h{me} f {next}");
        let transaction = format!("MULTI\r\nSET a{me} {next}\r\nSET b{me} {next}\r\nEXEC");
        match ask(&mut wire, &format!("{plain}\r\n{transaction}"), 9) {
            Some(replies) => assert_eq!(replies[7..], ["+OK", "+OK"], "{replies:?}"),
            None => return,
        }
        known[me].fetch_max(next, Ordering::SeqCst);
        let other = (me + next as usize) % CLIENTS;
        let Some(read) = number(&mut wire, &format!("c{other}")) else {
            return;
        };
        known[other].fetch_max(read, Ordering::SeqCst);
    }
}

#[test]
fn kill_takes_back_nothing_that_was_acknowledged_or_read_with_sync() {
    let rounds = env::var(ROUNDS_VARIABLE)
        .ok()
        .and_then(|rounds| rounds.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS);
    let fixture = Fixture::new();
    let known: Known = Arc::new((0..CLIENTS).map(|_| AtomicU64::new(0)).collect());
    for round in 0..rounds {
        let mut served = Served::start(&fixture, &["--durability", "sync"]);
        let mut wire = BufReader::new(served.connect());
        for (me, known) in known.iter().enumerate() {
            let least = known.load(Ordering::SeqCst);
            let [c, a, b] =
                ["c", "a", "b"].map(|key| number(&mut wire, &format!("{key}{me}")).unwrap());
            assert!(c >= least, "round {round}: {c} after {least} was told");
            assert!(
                a == b && a >= c.saturating_sub(1),
                "round {round}: {c} {a} {b}"
            );
            let last = number_of(&mut wire, &format!("LINDEX l{me} -1")).unwrap();
            let field = number_of(&mut wire, &format!("HGET h{me} f")).unwrap();
            assert!(
                c >= last && last >= field && field >= least.max(c.saturating_sub(1)),
                "round {round}: {c} {last} {field} after {least} was told"
            );
            // What is there now was read: it is never to vanish.
            known.fetch_max(c, Ordering::SeqCst);
        }
        let told: u64 = known.iter().map(|known| known.load(Ordering::SeqCst)).sum();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|me| {
                let (stream, known) = (served.connect(), Arc::clone(&known));
                thread::spawn(move || count_up(stream, me, &known))
            })
            .collect();
        // The kill comes after as many acknowledgements as the round wants.
        while known
            .iter()
            .map(|known| known.load(Ordering::SeqCst))
            .sum::<u64>()
            < told + 40 + 13 * round
        {
            thread::yield_now();
        }
        served.child.kill().unwrap();
        served.child.wait().unwrap();
        for client in clients {
            client.join().unwrap();
        }
    }
}

#[test]
fn redis_cli_runs_a_session_of_all_groups() {
    let version = Command::new("redis-cli").arg("--version").output();
    if version.is_err() {
        let _ = writeln!(std::io::stderr(), "SKIPPED, no redis-cli in the path");
        return;
    }
    let fixture = Fixture::new();
    let served = Served::start(&fixture, &[]);
    let mut cli = Command::new("redis-cli");
    cli.args(["-p", &served.port.to_string()]);
    let mut cli = cli
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: Vec<_> = SESSION.iter().map(|(line, _)| *line).collect();
    let text = lines.join("\n") + "\n";
    cli.stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = cli.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let expected: String = SESSION
        .iter()
        .map(|(_, reply)| format!("{reply}\n"))
        .collect();
    assert_eq!(printed, expected);
}

/// Lines, and what redis-cli prints for each.
const SESSION: &[(&str, &str)] = &[
    ("PING", "PONG"),
    ("SET s hello", "OK"),
    ("GET s", "hello"),
    ("APPEND s ' world'", "11"),
    ("GETRANGE s 6 10", "world"),
    ("SET n 10 EX 100 NX", "OK"),
    ("INCRBY n 5", "15"),
    ("INCRBYFLOAT n 0.5", "15.5"),
    ("MSET x 1 y 2", "OK"),
    ("MGET x y z", "1\n2\n"),
    ("EXISTS x y z", "2"),
    ("TYPE s", "string"),
    ("TTL s", "-1"),
    ("EXPIRE s 100", "1"),
    ("PERSIST s", "1"),
    ("RENAME x w", "OK"),
    ("HSET h f 1 g 2", "2"),
    ("HGETALL h", "f\n1\ng\n2"),
    ("HINCRBY h f 4", "5"),
    ("HDEL h g", "1"),
    ("HLEN h", "1"),
    ("SADD t a b c", "3"),
    ("SISMEMBER t b", "1"),
    ("SMEMBERS t", "a\nb\nc"),
    ("SREM t a", "1"),
    ("SCARD t", "2"),
    ("ZADD z 1 a 2 b 3 c", "3"),
    ("ZRANGE z 0 -1 WITHSCORES", "a\n1\nb\n2\nc\n3"),
    ("ZRANK z c", "2"),
    ("ZINCRBY z 0.5 a", "1.5"),
    ("ZRANGEBYSCORE z (1.5 +inf", "b\nc"),
    ("ZPOPMIN z", "a\n1.5"),
    ("RPUSH l 1 2 3", "3"),
    ("LRANGE l 0 -1", "1\n2\n3"),
    ("LPOP l", "1"),
    ("LLEN l", "2"),
    ("MULTI", "OK"),
    ("INCR m", "QUEUED"),
    ("LLEN l", "QUEUED"),
    ("EXEC", "1\n2"),
    ("PUBLISH c x", "0"),
    ("KREON.RANGE n t KEYS", "n\ns"),
    ("KREON.COUNT - +", "9"),
    ("SELECT 1", "OK"),
    ("DBSIZE", "0"),
    ("SELECT 0", "OK"),
    ("DEL s n h", "3"),
    ("DBSIZE", "6"),
    ("FLUSHALL", "OK"),
    ("DBSIZE", "0"),
    (
        "NOSUCH",
        "ERR unknown command 'NOSUCH', with args beginning with: \n",
    ),
];
