//! What clients send, hold back or never finish cannot take more than its limit.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpStream, UdpSocket};
use std::time::Instant;

use common::{PATIENCE, Running, Wire, eventually, request};

#[test]
fn what_is_no_request_gets_an_error_and_the_connection_ends() {
    let running = Running::new();
    for (sent, told) in [
        (&b"*x\r\n"[..], "invalid multibulk length"),
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b"PING \"\r\n", "unbalanced quotes in request"),
    ] {
        let mut wire = running.connect();
        wire.send(b"PING\r\n");
        wire.send(sent);
        assert_eq!(wire.reply(), "+PONG");
        assert_eq!(wire.reply(), format!("-ERR Protocol error: {told}"));
        assert!(wire.is_closed());
    }
    let mut wire = running.connect();
    let _ = wire.stream.write_all(&vec![b'x'; 1 << 20]);
    assert!(wire.is_closed());
}

#[test]
fn all_connections_together_hold_no_more_than_the_budget() {
    let running = Running::with(|settings| settings.limits.buffers_bytes_max = 8 << 20);
    // Each sends 3 MiB of a longer argument: at most two fit.
    let mut wires: Vec<_> = (0..5).map(|_| running.connect()).collect();
    let part = vec![b'x'; 3 << 20];
    for wire in &mut wires {
        let _ = wire
            .stream
            .write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000000\r\n");
        let _ = wire.stream.write_all(&part);
    }
    let mut other = running.connect();
    eventually("more are held than may be", || {
        other.ask("INFO clients").contains("connected_clients:3\r") || {
            let info = other.ask("INFO clients");
            let count = info.split("connected_clients:").nth(1).unwrap();
            count.split('|').next().unwrap().parse::<u32>().unwrap() <= 3
        }
    });
    assert_eq!(other.ask("PING"), "+PONG");
}

/// Whether `other` sees so many connections besides its own.
fn has_clients(other: &mut Wire, count: usize) -> bool {
    let clients = format!("connected_clients:{}|", count + 1);
    other.ask("INFO clients").contains(&clients)
}

#[test]
fn replies_that_were_sent_take_nothing_of_the_budget() {
    let running = Running::with(|settings| settings.limits.buffers_bytes_max = 1 << 20);
    let mut other = running.connect();
    other.send(&request(&[b"SET", b"k", &[b'x'; 70_000]]));
    assert_eq!(other.reply(), "+OK");
    let mut wires: Vec<_> = (0..30).map(|_| running.connect()).collect();
    for wire in &mut wires {
        assert_eq!(wire.ask("GET k").len(), "$70000|".len() + 70_000);
    }
    assert!(has_clients(&mut other, 30));
}

#[test]
fn what_a_session_keeps_counts_in_the_budget_until_it_is_forgotten() {
    let running = Running::with(|settings| settings.limits.buffers_bytes_max = 2 << 20);
    let mut other = running.connect();
    // Each request comes whole, in a read of its own.
    let value = "x".repeat(10_000);
    let names = |number: usize| format!("{number}-{}", "x".repeat(10_000));
    let queue: &dyn Fn(usize) -> String = &|_| format!("SET k {value}");
    let watch: &dyn Fn(usize) -> String = &|number| format!("WATCH {}", names(number));
    let subscribe: &dyn Fn(usize) -> String = &|number| format!("SUBSCRIBE {}", names(number));
    for (begin, more, forget) in [
        ("MULTI", queue, "DISCARD"),
        ("PING", watch, "UNWATCH"),
        ("PING", subscribe, "UNSUBSCRIBE"),
    ] {
        let mut wires: Vec<_> = (0..3).map(|_| running.connect()).collect();
        for wire in &mut wires {
            wire.ask(begin);
            for number in 0..80 {
                wire.ask(&more(number));
            }
            wire.request(forget);
            wire.request("PING");
            while !wire.reply().to_uppercase().contains("PONG") {}
        }
        drop(wires);
        let mut wire = running.connect();
        wire.ask(begin);
        let is_ended = (0..300).any(|number| {
            wire.request(&more(number));
            wire.try_reply().is_err()
        });
        assert!(is_ended, "{forget}");
        eventually("its share is not given back", || has_clients(&mut other, 0));
    }
}

#[test]
fn arguments_that_have_come_count_in_the_budget() {
    let running = Running::with(|settings| settings.limits.buffers_bytes_max = 4 << 20);
    let (mut wire, mut other) = (running.connect(), running.connect());
    assert_eq!(wire.ask("PING"), "+PONG");
    let _ = wire.stream.write_all(b"*1000000\r\n");
    // 1.5 MB, and 4 MB of what is known of them.
    let _ = wire.stream.write_all(&b"$0\r\n\r\n".repeat(250_000));
    eventually("it goes on", || has_clients(&mut other, 0));
}

#[test]
fn subscriber_that_reads_nothing_is_disconnected() {
    let running = Running::with(|settings| settings.limits.output_bytes_max = 1 << 20);
    let (mut slow, mut other) = (running.connect(), running.connect());
    assert_eq!(slow.ask("SUBSCRIBE c"), "*3|$9|subscribe|$1|c|:1");
    let payload = vec![b'x'; 100 << 10];
    let begun = Instant::now();
    loop {
        other.send(&request(&[b"PUBLISH", b"c", &payload]));
        if other.reply() == ":0" {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "the subscriber stays");
    }
    assert!(slow.is_closed());
}

#[test]
fn half_open_client_leaves_nothing_behind() {
    let running = Running::new();
    let mut other = running.connect();
    let mut half = running.connect();
    // It sends no more, but would still read: what it asked for is answered.
    half.send(b"SET a 1\r\nGET a\r\nGET");
    half.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(
        (half.reply(), half.reply()),
        ("+OK".to_owned(), "$1|1".to_owned())
    );
    assert!(half.is_closed());
    eventually("it is listed", || {
        other.ask("INFO clients").contains("connected_clients:1|")
    });
}

#[test]
fn one_client_too_many_is_told_so() {
    let running = Running::with(|settings| settings.limits.clients_max = 2);
    let (mut one, two) = (running.connect(), running.connect());
    assert_eq!(one.ask("PING"), "+PONG");
    let mut third = running.connect();
    assert_eq!(third.reply(), "-ERR max number of clients reached");
    assert!(third.is_closed());
    drop(two);
    eventually("its place stays taken", || {
        let mut wire = running.connect();
        wire.send(b"PING\r\n");
        wire.try_reply().is_ok_and(|reply| reply == b"+PONG\r\n")
    });
}

#[test]
fn ten_thousand_connections_come_and_go() {
    let running = Running::new();
    for round in 0..100 {
        let mut wires: Vec<_> = (0..100).map(|_| running.connect()).collect();
        for (place, wire) in wires.iter_mut().enumerate() {
            // Some say nothing, some leave within a request, some are served.
            match place % 3 {
                0 => {}
                1 => wire.send(b"*2\r\n$3\r\nGE"),
                _ => assert_eq!(wire.ask("PING"), "+PONG", "round {round}"),
            }
        }
    }
    let mut other = running.connect();
    eventually("connections are left", || {
        other.ask("INFO clients").contains("connected_clients:1|")
    });
    assert!(
        other
            .ask("INFO stats")
            .contains("total_connections_received:10001|")
    );
}

#[test]
fn transaction_is_bounded() {
    let running = Running::with(|settings| settings.limits.request_bytes_max = 100_000);
    let mut wire = running.connect();
    assert_eq!(wire.ask("MULTI"), "+OK");
    let set = request(&[b"SET", b"k", &[b'x'; 30_000]]);
    let replies: Vec<_> = (0..4)
        .map(|_| {
            wire.send(&set);
            wire.reply()
        })
        .collect();
    assert_eq!(replies[..3], ["+QUEUED"; 3]);
    assert_eq!(replies[3], "-ERR the transaction is too large");
    assert!(wire.ask("EXEC").starts_with("-EXECABORT"));
    assert_eq!(wire.ask("EXISTS k"), ":0");
}

#[test]
fn replies_of_a_transaction_are_bounded_whatever_its_commands_are() {
    let running = Running::with(|settings| settings.limits.output_bytes_max = 1 << 20);
    let (mut wire, mut other) = (running.connect(), running.connect());
    assert!(other.ask("SUBSCRIBE c").starts_with("*3|"));
    assert_eq!(wire.ask("MULTI"), "+OK");
    for line in ["ECHO x"].into_iter().chain(["COMMAND DOCS"; 100]) {
        assert_eq!(wire.ask(line), "+QUEUED");
    }
    assert_eq!(wire.ask("PUBLISH c x"), "+QUEUED");
    wire.request("EXEC");
    let reply = wire.reply();
    assert!(reply.starts_with("*102|$1|x|*"), "{}", &reply[..40]);
    let too_long = "-ERR the reply is longer than --output-max|";
    let refused = reply.matches(too_long).count();
    assert!((50..100).contains(&refused), "{refused}");
    assert!(reply.ends_with("|:1"), "what is short is answered");
    assert_eq!(wire.ask("PING"), "+PONG");
}

#[test]
fn reply_that_has_something_for_each_argument_is_bounded() {
    let running = Running::with(|settings| settings.limits.output_bytes_max = 1 << 20);
    let mut wire = running.connect();
    let names = " get".repeat(10_000);
    for line in [
        "UNSUBSCRIBE",
        "PUNSUBSCRIBE",
        "PUBSUB NUMSUB",
        "COMMAND INFO",
        "COMMAND DOCS",
    ] {
        let reply = wire.ask(&format!("{line}{names}"));
        let head = reply.get(..60).unwrap_or(&reply);
        assert_eq!(head, "-ERR the reply is longer than --output-max", "{line}");
    }
    assert!(wire.ask("COMMAND INFO get set").starts_with("*2|*10|"));
    assert_eq!(wire.ask("UNSUBSCRIBE get"), "*3|$11|unsubscribe|$3|get|:0");
    assert!(wire.ask("COMMAND").starts_with("*1"));
}

#[test]
fn keys_of_a_waiting_client_count_in_the_budget() {
    let running = Running::with(|settings| settings.limits.buffers_bytes_max = 4 << 20);
    let (mut one, mut two, mut other) = (running.connect(), running.connect(), running.connect());
    let keys: String = (0..10_000).map(|number| format!(" k{number}")).collect();
    let wait = format!("BLPOP{keys} 0");
    one.request(&wait);
    eventually("it does not wait", || {
        other.ask("CLIENT LIST").contains("flags=b")
    });
    let full = "-ERR the buffers of all connections are full";
    assert_eq!(two.ask(&wait), full);
    drop(one);
    eventually("its place stays taken", || has_clients(&mut other, 1));
    two.request(&wait);
    eventually("its share is not given back", || {
        other.ask("CLIENT LIST").contains("flags=b")
    });
    assert_eq!(other.ask("RPUSH k7 x"), ":1");
    assert_eq!(two.reply(), "*2|$2|k7|$1|x");
}

#[test]
fn end_answers_what_was_received_and_keeps_it() {
    let running = Running::new();
    let path = running.store_path();
    let mut wire = running.connect();
    let mut idle = running.connect();
    assert_eq!(idle.ask("PING"), "+PONG");
    for number in 0..1000 {
        wire.send(&request(&[b"SET", format!("k{number}").as_bytes(), b"v"]));
    }
    for _ in 0..1000 {
        assert_eq!(wire.reply(), "+OK");
    }
    let address = running.address();
    let Running { server, folder } = running;
    server.end().unwrap();
    assert!(idle.is_closed() && wire.is_closed());
    assert!(TcpStream::connect(address).is_err());
    let again = common::start(&path, common::settings());
    assert_eq!(Wire::connect(again.addresses()[0]).ask("DBSIZE"), ":1000");
    again.end().unwrap();
    drop(folder);
}

#[test]
fn shutdown_command_asks_for_the_end() {
    let running = Running::new();
    let mut wire = running.connect();
    assert_eq!(wire.ask("SHUTDOWN ABORT"), "-ERR No shutdown in progress.");
    wire.request("SHUTDOWN NOSAVE");
    eventually("the end is not asked for", || running.server.is_ending());
    assert!(wire.is_closed());
}

#[test]
fn metrics_and_page_are_served() {
    let running = Running::with(|settings| settings.metrics = Some("127.0.0.1:0".to_owned()));
    assert_eq!(running.connect().ask("SET a 1"), "+OK");
    let address = running.server.metrics_address().unwrap();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let metrics = get("/metrics");
    for line in [
        "kreon_server_command_seconds_count{command=\"set\"} 1",
        "kreon_server_accepted_total 1",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}\n{metrics}"
        );
    }
    assert!(metrics.contains("\nkreon_store_epoch_total "));
    assert!(get("/status.json").contains("\"durability\":\"buffered\""));
    let page = get("/");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<title>kreon serve</title>"));
    assert!(
        !page.contains("http://") || page.matches("http://").all(|_| page.contains("www.w3.org"))
    );
    assert!(get("/x").starts_with("HTTP/1.1 404"));
}

#[test]
fn client_that_stops_in_the_middle_of_a_reply_can_be_killed() {
    let running = Running::new();
    let mut other = running.connect();
    other.send(&request(&[b"SET", b"k", &vec![b'x'; 8 << 20]]));
    assert_eq!(other.reply(), "+OK");
    let mut slow = running.connect();
    let id = slow.ask("CLIENT ID");
    slow.send(&request(&[b"GET", b"k"]).repeat(4));
    eventually("it is not being sent", || {
        !other
            .ask(&format!("CLIENT LIST ID {}", &id[1..]))
            .contains("obl=0")
    });
    assert_eq!(other.ask(&format!("CLIENT KILL ID {}", &id[1..])), ":1");
    let mut all = Vec::new();
    let end = slow.stream.read_to_end(&mut all);
    assert!(end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    assert!(all.len() < 32 << 20);
}

/// An address of this machine that is not its loopback, if it has one. Nothing is sent.
fn address_of_this_machine() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[test]
fn without_a_password_other_machines_are_let_in_only_if_that_was_asked_for() {
    let Some(address) = address_of_this_machine() else {
        eprintln!("SKIPPED: this machine has no address but its loopback");
        return;
    };
    for (is_protected, password, told) in [
        (true, None, "-DENIED"),
        (false, None, "+PONG"),
        (true, Some(b"secret".to_vec()), "-NOAUTH"),
    ] {
        let running = Running::with(|settings| {
            settings.listen = vec!["0.0.0.0:0".to_owned()];
            settings.is_protected = is_protected;
            settings.password = password;
        });
        let port = running.address().port();
        let mut far = Wire::connect((address, port).into());
        if told != "-DENIED" {
            far.send(b"PING\r\n");
        }
        let reply = far.reply();
        assert!(reply.starts_with(told), "{reply}");
        let mut near = Wire::connect((Ipv4Addr::LOCALHOST, port).into());
        assert!(!near.ask("PING").starts_with("-DENIED"));
    }
}
