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

/// Memory of this process, which the server runs in.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
