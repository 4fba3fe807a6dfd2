//! What connections can be in: authenticated, within a transaction, subscribed.

mod common;

use std::time::Duration;

use common::{Running, eventually};

#[test]
fn strings_are_set_and_read_back_in_one_pipeline() {
    let running = Running::new();
    let mut wire = running.connect();
    wire.send(b"SET a 1\r\nGET a\r\n*2\r\n$3\r\nGET\r\n$1\r\nb\r\nECHO x\r\nNOSUCH y\r\nGET\r\n");
    let replies: Vec<_> = (0..6).map(|_| wire.reply()).collect();
    assert_eq!(
        replies,
        [
            "+OK",
            "$1|1",
            "$-1",
            "$1|x",
            "-ERR unknown command 'NOSUCH', with args beginning with: 'y' ",
            "-ERR wrong number of arguments for 'get' command",
        ]
    );
}

#[test]
fn replies_of_a_pipeline_come_in_the_order_of_its_requests() {
    let running = Running::new();
    let (mut wire, mut other) = (running.connect(), running.connect());
    wire.send(
        b"SET n 1\r\nINCR n\r\nGET n\r\nLPUSH n x\r\nNOSUCH\r\nLPUSH l a\r\nLPUSH l b\r\nPING\r\nSELECT 1\r\n\
          SET n 5\r\nINCR n\r\nSELECT 0\r\nINCR n\r\nECHO e\r\nLPOP l\r\nZADD z 1 a\r\nZPOPMIN z\r\nSET n\r\n\
          DEL n l\r\nWATCH n\r\nMULTI\r\nSET n 7\r\nINCR n\r\nEXEC\r\nINCR n\r\n",
    );
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let expected = [
        "+OK",
        ":2",
        "$1|2",
        wrong,
        "-ERR unknown command 'NOSUCH', with args beginning with: ",
        ":1",
        ":2",
        "+PONG",
        "+OK",
        "+OK",
        ":6",
        "+OK",
        ":3",
        "$1|e",
        "$1|b",
        ":1",
        "*2|$1|a|$1|1",
        "-ERR wrong number of arguments for 'set' command",
        ":2",
        "+OK",
        "+OK",
        "+QUEUED",
        "+QUEUED",
        "*2|+OK|:8",
        ":9",
    ];
    for (number, expected) in expected.into_iter().enumerate() {
        assert_eq!(wire.reply(), expected, "reply {number}");
    }
    // A transaction that watches is broken by a pipeline of another connection, and of its own.
    for breaks_itself in [false, true] {
        assert_eq!(wire.ask("WATCH a"), "+OK");
        let breaking = if breaks_itself { &mut wire } else { &mut other };
        breaking.send(b"SET x 1\r\nSET a 1\r\nINCR x\r\n");
        assert_eq!([(); 3].map(|()| breaking.reply()), ["+OK", "+OK", ":2"]);
        wire.send(b"MULTI\r\nSET done 1\r\nEXEC\r\n");
        assert_eq!([(); 3].map(|()| wire.reply()), ["+OK", "+QUEUED", "*-1"]);
    }
    assert_eq!(wire.ask("EXISTS done"), ":0");
}

#[test]
fn pipelines_of_many_connections_all_count() {
    const CLIENTS: usize = 12;
    const ROUNDS: usize = 30;
    let running = Running::new();
    let address = running.address();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                let mut wire = common::Wire::connect(address);
                for round in 0..ROUNDS {
                    let own = format!("INCR own{client}\r\n");
                    let lines = format!(
                        "INCR hot\r\nLPUSH list {client}\r\n{own}HSET hash {client} {round}\r\n"
                    );
                    wire.send(lines.repeat(8).as_bytes());
                    for _ in 0..4 * 8 {
                        assert!(wire.reply().starts_with(':'));
                    }
                }
            });
        }
    });
    let mut wire = running.connect();
    let all = CLIENTS * ROUNDS * 8;
    assert_eq!(
        wire.ask("GET hot"),
        format!("${}|{all}", all.to_string().len())
    );
    assert_eq!(wire.ask("LLEN list"), format!(":{all}"));
    assert_eq!(wire.ask("HLEN hash"), format!(":{CLIENTS}"));
    assert_eq!(wire.ask("GET own3"), format!("$3|{}", ROUNDS * 8));
}

#[test]
fn nothing_is_done_before_the_password_is_given() {
    let running = Running::with(|settings| settings.password = Some(b"secret".to_vec()));
    let mut wire = running.connect();
    assert_eq!(wire.ask("GET a"), "-NOAUTH Authentication required.");
    assert_eq!(wire.ask("NOSUCH"), "-NOAUTH Authentication required.");
    assert!(wire.ask("AUTH wrong").starts_with("-WRONGPASS"));
    assert!(wire.ask("AUTH root secret").starts_with("-WRONGPASS"));
    assert!(wire.ask("HELLO 3").starts_with("-NOAUTH"));
    assert_eq!(wire.ask("AUTH secret"), "+OK");
    assert_eq!(wire.ask("GET a"), "$-1");
    let mut wire = running.connect();
    assert!(
        wire.ask("HELLO 3 AUTH default secret SETNAME me")
            .starts_with("%7")
    );
    assert_eq!(wire.ask("CLIENT GETNAME"), "$2|me");
    assert_eq!(wire.ask("RESET"), "+RESET");
    assert_eq!(wire.ask("GET a"), "-NOAUTH Authentication required.");
}

#[test]
fn no_password_is_told_to_who_asks_for_slow_commands() {
    let running = Running::with(|settings| settings.password = Some(b"secret".to_vec()));
    let mut wire = running.connect();
    assert_eq!(wire.ask("AUTH secret"), "+OK");
    assert_eq!(wire.ask("CONFIG SET slowlog-log-slower-than 0"), "+OK");
    wire.ask("AUTH default secret");
    wire.ask("HELLO 2 AUTH default secret");
    let slow = wire.ask("SLOWLOG GET");
    assert!(
        slow.contains("|$4|AUTH|$10|(redacted)|$10|(redacted)|"),
        "{slow}"
    );
    assert!(slow.contains("|$5|HELLO|$10|(redacted)|") && !slow.contains("secret"));
}

#[test]
fn value_that_was_waited_for_is_among_the_slow_commands() {
    let running = Running::new();
    let mut wire = running.connect();
    let value = "x".repeat(10_000);
    for number in 0..20 {
        assert_eq!(wire.ask(&format!("SET k{number} {value}")), "+OK");
    }
    drop(wire);
    let running = running.restart(|_| ());
    let mut wire = running.connect();
    assert_eq!(wire.ask("CONFIG SET slowlog-log-slower-than 0"), "+OK");
    for number in 0..20 {
        wire.ask(&format!("GET k{number}"));
    }
    assert_eq!(wire.ask("SLOWLOG LEN"), ":21", "CONFIG and the gets");
    wire.send(b"GET k1\r\nGET k2\r\nECHO x\r\n");
    let ends = [(); 3].map(|()| wire.reply().pop());
    assert_eq!(ends, [Some('x'); 3]);
    let slow = wire.ask("SLOWLOG GET 3");
    assert!(slow.contains("|$4|ECHO|$1|x|"), "{slow}");
}

#[test]
fn databases_have_keys_of_their_own() {
    let running = Running::new();
    let mut wire = running.connect();
    assert_eq!(wire.ask("SET a 0"), "+OK");
    assert_eq!(wire.ask("SELECT 1"), "+OK");
    assert_eq!(wire.ask("GET a"), "$-1");
    assert_eq!(wire.ask("SELECT 4"), "-ERR DB index is out of range");
    for index in ["x", "+1", "01"] {
        assert_eq!(
            wire.ask(&format!("SELECT {index}")),
            "-ERR value is not an integer or out of range"
        );
    }
    assert_eq!(wire.ask("SELECT 0"), "+OK");
    assert_eq!(wire.ask("GET a"), "$1|0");
}

#[test]
fn transaction_runs_as_one_or_not_at_all() {
    let running = Running::new();
    let (mut one, mut other) = (running.connect(), running.connect());
    assert_eq!(one.ask("EXEC"), "-ERR EXEC without MULTI");
    assert_eq!(one.ask("MULTI"), "+OK");
    assert_eq!(one.ask("MULTI"), "-ERR MULTI calls can not be nested");
    assert_eq!(one.ask("SET a 1"), "+QUEUED");
    assert_eq!(one.ask("PING"), "+QUEUED");
    assert_eq!(one.ask("INCR a"), "+QUEUED");
    assert_eq!(other.ask("GET a"), "$-1");
    assert_eq!(one.ask("EXEC"), "*3|+OK|+PONG|:2");
    assert_eq!(other.ask("GET a"), "$1|2");
    // A request that is wrong in itself spoils all of it.
    assert_eq!(one.ask("MULTI"), "+OK");
    assert_eq!(one.ask("SET a 9"), "+QUEUED");
    assert!(one.ask("NOSUCH").starts_with("-ERR unknown command"));
    assert!(one.ask("EXEC").starts_with("-EXECABORT"));
    assert_eq!(other.ask("GET a"), "$1|2");
    assert_eq!(one.ask("DISCARD"), "-ERR DISCARD without MULTI");
}

#[test]
fn transaction_is_given_up_if_a_watched_key_changed() {
    let running = Running::new();
    let (mut one, mut other) = (running.connect(), running.connect());
    assert_eq!(one.ask("WATCH a b"), "+OK");
    assert_eq!(other.ask("SET b 1"), "+OK");
    for expected in ["*-1", "*1|+OK"] {
        assert_eq!(one.ask("MULTI"), "+OK");
        assert_eq!(one.ask("SET a 1"), "+QUEUED");
        assert_eq!(one.ask("EXEC"), expected);
    }
    assert_eq!(one.ask("WATCH a"), "+OK");
    assert_eq!(one.ask("UNWATCH"), "+OK");
    assert_eq!(other.ask("SET a 2"), "+OK");
    assert_eq!(one.ask("MULTI"), "+OK");
    assert_eq!(one.ask("WATCH c"), "-ERR WATCH inside MULTI is not allowed");
    assert_eq!(one.ask("GET a"), "+QUEUED");
    assert_eq!(one.ask("EXEC"), "*1|$1|2");
}

#[test]
fn subscribers_get_what_is_published_and_nothing_else() {
    let running = Running::new();
    let (mut one, mut other) = (running.connect(), running.connect());
    one.request("SUBSCRIBE news sport");
    assert_eq!(one.reply(), "*3|$9|subscribe|$4|news|:1");
    assert_eq!(one.reply(), "*3|$9|subscribe|$5|sport|:2");
    assert_eq!(one.ask("PSUBSCRIBE n*"), "*3|$10|psubscribe|$2|n*|:3");
    assert!(one.ask("GET a").starts_with("-ERR Can't execute 'get'"));
    assert_eq!(one.ask("PING"), "*2|$4|pong|$0");
    assert_eq!(other.ask("PUBLISH news hello"), ":2");
    assert_eq!(one.reply(), "*3|$7|message|$4|news|$5|hello");
    assert_eq!(one.reply(), "*4|$8|pmessage|$2|n*|$4|news|$5|hello");
    assert_eq!(
        other.ask("PUBSUB NUMSUB news other"),
        "*4|$4|news|:1|$5|other|:0"
    );
    assert_eq!(other.ask("PUBSUB NUMPAT"), ":1");
    assert_eq!(one.ask("PUNSUBSCRIBE"), "*3|$12|punsubscribe|$2|n*|:2");
    one.request("UNSUBSCRIBE");
    assert_eq!(one.reply(), "*3|$11|unsubscribe|$4|news|:1");
    assert_eq!(one.reply(), "*3|$11|unsubscribe|$5|sport|:0");
    assert_eq!(other.ask("PUBLISH news hello"), ":0");
    assert_eq!(one.ask("GET a"), "$-1");
    // Its end is the end of its subscriptions.
    assert_eq!(one.ask("SUBSCRIBE news"), "*3|$9|subscribe|$4|news|:1");
    drop(one);
    eventually("a subscription outlives its connection", || {
        other.ask("PUBLISH news x") == ":0"
    });
}

#[test]
fn messages_are_pushes_between_replies_in_the_third_version() {
    let running = Running::new();
    let (mut one, mut other) = (running.connect(), running.connect());
    assert!(one.ask("HELLO 3").starts_with("%7|$6|server"));
    assert_eq!(one.ask("SUBSCRIBE c"), ">3|$9|subscribe|$1|c|:1");
    assert_eq!(one.ask("GET a"), "_");
    assert_eq!(other.ask("PUBLISH c x"), ":1");
    assert_eq!(one.reply(), ">3|$7|message|$1|c|$1|x");
    assert_eq!(one.ask("HELLO 4"), "-NOPROTO unsupported protocol version");
}

#[test]
fn connections_are_listed_named_and_killed() {
    let running = Running::new();
    let (mut one, mut other) = (running.connect(), running.connect());
    assert_eq!(one.ask("CLIENT SETNAME first"), "+OK");
    assert!(
        one.ask("CLIENT SETNAME a\tb")
            .starts_with("-ERR Client names cannot contain")
    );
    let id = one.ask("CLIENT ID");
    let list = other.ask("CLIENT LIST");
    let line = format!("id={} addr={}", &id[1..], one.stream.local_addr().unwrap());
    assert!(
        list.contains(&line) && list.contains("name=first"),
        "{list}"
    );
    assert_eq!(other.ask(&format!("CLIENT KILL ID {}", &id[1..])), ":1");
    assert!(one.is_closed());
    assert_eq!(other.ask("CLIENT KILL 1.2.3.4:5"), "-ERR No such client");
    eventually("an ended connection is listed", || {
        !other.ask("CLIENT LIST").contains("name=first")
    });
    // SKIPME no: itself, after the reply.
    assert_eq!(other.ask("CLIENT KILL TYPE normal SKIPME no"), ":1");
    assert!(other.is_closed());
}

#[test]
fn waiting_command_is_answered_by_another_connection_and_ended_by_a_kill() {
    let running = Running::new();
    let (mut one, mut other) = (running.connect(), running.connect());
    one.request("BLPOP list 0");
    eventually("nobody waits", || {
        other.ask("CLIENT LIST").contains("flags=b")
    });
    assert_eq!(other.ask("RPUSH list a"), ":1");
    assert_eq!(one.reply(), "*2|$4|list|$1|a");
    let id = one.ask("CLIENT ID");
    one.request("BLPOP list 0");
    eventually("nobody waits", || {
        other.ask("CLIENT LIST").contains("flags=b")
    });
    assert_eq!(other.ask(&format!("CLIENT KILL ID {}", &id[1..])), ":1");
    assert!(one.is_closed());
    // Who left takes no element.
    let mut third = running.connect();
    third.request("BLPOP list 0");
    eventually("nobody waits", || {
        other.ask("CLIENT LIST").contains("flags=b")
    });
    drop(third);
    eventually("one who left waits", || {
        !other.ask("CLIENT LIST").contains("flags=b")
    });
    assert_eq!(other.ask("RPUSH list b"), ":1");
    assert_eq!(other.ask("LLEN list"), ":1");
}

#[test]
fn element_that_a_waiting_command_finds_is_sent_to_a_client_that_sends_no_more() {
    let running = Running::new();
    let mut other = running.connect();
    assert_eq!(other.ask("RPUSH last x"), ":1");
    // So many that another thread looks at them.
    let keys: Vec<_> = (0..5000).map(|number| format!("k{number}")).collect();
    let mut half = running.connect();
    half.request(&format!("BLPOP {} last 0", keys.join(" ")));
    half.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(half.reply(), "*2|$4|last|$1|x");
    assert_eq!(other.ask("LLEN last"), ":0");
}

#[test]
fn commands_on_the_server_tell_of_it() {
    let running = Running::with(|settings| settings.has_debug = true);
    let mut wire = running.connect();
    assert_eq!(wire.ask("CONFIG GET databases"), "*2|$9|databases|$1|4");
    assert_eq!(
        wire.ask("CONFIG SET timeout 100 slowlog-log-slower-than 0"),
        "+OK"
    );
    assert_eq!(wire.ask("CONFIG GET timeout"), "*2|$7|timeout|$3|100");
    assert!(wire.ask("CONFIG SET port 1").contains("immutable"));
    let failed = wire.ask("CONFIG SET timeout 7 maxclients x");
    assert!(failed.contains("related to argument 'maxclients'"));
    assert_eq!(wire.ask("CONFIG GET timeout"), "*2|$7|timeout|$3|100");
    assert!(
        wire.ask("CONFIG SET nosuch 1")
            .starts_with("-ERR Unknown option")
    );
    assert_eq!(wire.ask("WAIT 0 100"), ":0");
    wire.send(b"MULTI\r\nWAIT 1 100\r\nSET a 1\r\nEXEC\r\nDEL a\r\n");
    let replies = [(); 5].map(|()| wire.reply());
    assert_eq!(replies[3], "*2|:0|+OK");
    assert_eq!(wire.ask("DEBUG SLEEP 0"), "+OK");
    let slow = wire.ask("SLOWLOG GET 1");
    assert!(slow.contains("|$5|DEBUG|$5|SLEEP|"), "{slow}");
    let info = wire.ask("INFO server commandstats");
    assert!(
        info.contains("redis_version:") && info.contains("cmdstat_debug:calls=1"),
        "{info}"
    );
    assert!(!info.contains("# Clients"));
    assert_eq!(wire.ask("SAVE"), "+OK");
    assert!(wire.ask("LASTSAVE")[1..].parse::<i64>().unwrap() > 1_700_000_000);
    assert!(
        wire.ask("LATENCY HISTOGRAM save")
            .starts_with("*2|$4|save|*4|$5|calls|:1|")
    );
    assert_eq!(wire.ask("SET key 12345"), "+OK");
    assert_eq!(wire.ask("MEMORY USAGE key"), ":56");
    assert_eq!(wire.ask("MEMORY USAGE none"), "$-1");
    assert!(wire.ask("INFO nosuch nosuch").starts_with("$0"));
    assert_eq!(wire.ask("LPUSH list a b"), ":2");
    assert!(
        wire.ask("INFO keyspace")
            .ends_with("|# Keyspace|db0:keys=2")
    );
    assert!(!wire.ask("INFO all").contains("# Keyspace"));
    assert!(
        wire.ask("CLIENT NOSUCH")
            .starts_with("-ERR unknown subcommand 'NOSUCH'")
    );
}

#[test]
fn backups_that_clients_ask_for_can_be_restored() {
    let backups = tempfile::tempdir().unwrap();
    let folder = backups.path().join("backups");
    let running = Running::with(|settings| settings.backups = Some(folder.clone()));
    let mut wire = running.connect();
    assert_eq!(wire.ask("SET a 1"), "+OK");
    assert_eq!(wire.ask("BGSAVE"), "+Background saving started");
    eventually("the backup does not end", || {
        wire.ask("INFO persistence")
            .contains("rdb_bgsave_in_progress:0")
    });
    let restored = backups.path().join("restored");
    kreon::Backup::at(&folder).restore(&restored).unwrap();
    let again = common::start(&restored, common::settings());
    assert_eq!(
        common::Wire::connect(again.addresses()[0]).ask("GET a"),
        "$1|1"
    );
    again.end().unwrap();
}

#[test]
fn idle_connections_are_closed_but_not_subscribers() {
    let running = Running::with(|settings| {
        settings.limits.idle_max = Some(Duration::from_secs(1));
    });
    let (mut one, mut subscriber) = (running.connect(), running.connect());
    assert_eq!(subscriber.ask("SUBSCRIBE c"), "*3|$9|subscribe|$1|c|:1");
    assert!(one.is_closed());
    assert_eq!(subscriber.ask("PING"), "*2|$4|pong|$0");
}

#[test]
fn connection_whose_command_takes_long_is_not_idle() {
    let running = Running::with(|settings| {
        settings.has_debug = true;
        settings.limits.idle_max = Some(Duration::from_secs(1));
    });
    let mut wire = running.connect();
    assert_eq!(wire.ask("DEBUG SLEEP 2.5"), "+OK");
    assert_eq!(wire.ask("PING"), "+PONG");
    assert!(wire.is_closed());
}
