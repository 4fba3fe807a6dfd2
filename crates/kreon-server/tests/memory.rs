//! What clients cannot make the server's process take. One test at a time: the memory is that of the process.

mod common;

use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

use common::{Running, eventually, request};

static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn announcement_of_512_mib_takes_no_memory() {
    let _alone = ALONE.lock();
    let running = Running::new();
    let before = resident_bytes();
    let mut wires: Vec<_> = (0..100).map(|_| running.connect()).collect();
    for wire in &mut wires {
        wire.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n");
        wire.send(&[b'x'; 1000]);
    }
    let mut other = running.connect();
    eventually("the announcements have not come", || {
        other.ask("CLIENT LIST").matches("qbuf=10").count() == 100
    });
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for 100 announcements");
}

#[test]
fn slow_reader_is_not_served_further_and_holds_a_bounded_output() {
    let _alone = ALONE.lock();
    let running = Running::new();
    let mut other = running.connect();
    other.send(&request(&[b"SET", b"k", &[b'x'; 1 << 20]]));
    assert_eq!(other.reply(), "+OK");
    // Ten gigabytes of replies are asked for, and none is read.
    let mut slow = running.connect();
    slow.stream
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    slow.send(&request(&[b"CLIENT", b"SETNAME", b"slow"]));
    assert_eq!(slow.reply(), "+OK");
    let before = resident_bytes();
    let requests = request(&[b"GET", b"k"]).repeat(10_000);
    let _ = slow.stream.write_all(&requests);
    eventually("the replies wait", || {
        let clients = other.ask("CLIENT LIST");
        let mut lines = clients.split("id=");
        lines.any(|line| line.contains("name=slow ") && !line.contains(" obl=0 "))
    });
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for a slow reader");
    assert_eq!(other.ask("PING"), "+PONG");
    assert_eq!(slow.reply().len(), "$1048576|".len() + (1 << 20));
}

#[test]
fn queued_command_does_not_keep_what_was_received_with_it() {
    let _alone = ALONE.lock();
    let running = Running::new();
    let before = resident_bytes();
    let mut wires: Vec<_> = (0..8).map(|_| running.connect()).collect();
    for wire in &mut wires {
        let mut all = request(&[b"EXISTS", &vec![b'x'; 32 << 20]]);
        all.extend(request(&[b"MULTI"]));
        all.extend(request(&[b"SET", b"k", &[b'x'; 20_000]]));
        let mut writer = wire.stream.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || writer.write_all(&all).unwrap());
            let replies = [(); 3].map(|()| wire.reply());
            assert_eq!(replies, [":0", "+OK", "+QUEUED"]);
        });
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 128 << 20, "{grown} bytes for 160 kB of commands");
}

#[test]
fn values_that_are_read_together_hold_a_bounded_output() {
    const VALUE_BYTES: usize = 8 << 20;
    let _alone = ALONE.lock();
    let running = Running::new();
    let mut other = running.connect();
    other.send(&request(&[b"SET", b"small", &[b'x'; 10_000]]));
    assert_eq!(other.reply(), "+OK");
    let value = vec![b'x'; VALUE_BYTES];
    for number in 0..20 {
        other.send(&request(&[b"SET", format!("k{number}").as_bytes(), &value]));
        assert_eq!(other.reply(), "+OK");
    }
    drop(other);
    let running = running.restart(|settings| settings.limits.output_bytes_max = 2 * VALUE_BYTES);
    let mut wire = running.connect();
    let before = resident_bytes();
    // The first is not in memory: those behind it are read together with it.
    let mut all = request(&[b"GET", b"small"]);
    for number in 0..20 {
        all.extend(request(&[b"GET", format!("k{number}").as_bytes()]));
    }
    wire.send(&all);
    std::thread::sleep(Duration::from_millis(300));
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 100 << 20, "{grown} bytes for values that wait");
    assert_eq!(wire.reply().len(), "$10000|".len() + 10_000);
    for number in 0..20 {
        let bytes = wire.try_reply().unwrap().len();
        assert_eq!(bytes, "$8388608\r\n\r\n".len() + VALUE_BYTES, "{number}");
    }
}

/// Memory of this process, which the server runs in.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
