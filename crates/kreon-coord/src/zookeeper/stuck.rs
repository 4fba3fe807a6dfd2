//! Tests with a server that keeps connections alive and answers no calls.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::ZooKeeper;
use crate::command::{Command, Reply};
use crate::coordinator::{CallId, Coordinator, Event};

/// A connection has to begin within it, on a busy machine too; a stuck one is left after three times as long.
const SESSION_MS: u32 = 500;

const PING: i32 = -2;

/// What a server does with a connection.
#[derive(Clone, Copy)]
enum Kind {
    /// Takes up the session, answers pings and nothing else.
    Stuck,
    /// Says that the session is over.
    Ended,
}

fn frame(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut len_bytes = [0; 4];
    stream.read_exact(&mut len_bytes)?;
    let mut frame = vec![0; u32::from_be_bytes(len_bytes) as usize];
    stream.read_exact(&mut frame)?;
    Ok(frame)
}

fn answer(stream: &mut TcpStream, parts: &[&[u8]]) -> std::io::Result<()> {
    let body = parts.concat();
    stream.write_all(&[&(body.len() as u32).to_be_bytes()[..], &body].concat())
}

fn serve(mut stream: TcpStream, kind: Kind) -> std::io::Result<()> {
    frame(&mut stream)?;
    let session: i64 = match kind {
        Kind::Stuck => 7,
        Kind::Ended => 0,
    };
    // Version of the protocol, time, session, password, and that it is not read-only.
    let (time, password) = ((SESSION_MS as i32).to_be_bytes(), [0; 16]);
    let parts: [&[u8]; 6] = [
        &[0; 4],
        &time,
        &session.to_be_bytes(),
        &16_i32.to_be_bytes(),
        &password,
        &[0],
    ];
    answer(&mut stream, &parts)?;
    loop {
        let asked = frame(&mut stream)?;
        if asked.get(..4) == Some(&PING.to_be_bytes()) {
            answer(&mut stream, &[&PING.to_be_bytes(), &[0; 12]])?;
        }
    }
}

/// Serves one connection after the other so, and the last kind from then on; the address, and how many there were.
fn start(kinds: &'static [Kind]) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let index = counted.fetch_add(1, Ordering::SeqCst) as usize;
            let kind = kinds[index.min(kinds.len() - 1)];
            std::thread::spawn(move || serve(stream, kind));
        }
    });
    (address, count)
}

/// Events until the session is over.
fn until_expired(session: &ZooKeeper) -> Vec<Event> {
    let (mut events, started) = (Vec::new(), Instant::now());
    while !events.contains(&Event::Expired) {
        assert!(started.elapsed() < Duration::from_secs(30), "{events:?}");
        let _ = session.poll(&mut events, Duration::from_millis(20));
    }
    events
}

#[test]
fn a_server_that_answers_pings_and_no_calls_is_left() {
    let (address, count) = start(&[Kind::Stuck, Kind::Ended]);
    let session = ZooKeeper::connect(&address, SESSION_MS).unwrap();
    session.send(CallId(1), Command::Sync).unwrap();
    let events = until_expired(&session);
    assert_eq!(
        events,
        [Event::Replied(CallId(1), Reply::Unknown), Event::Expired]
    );
    assert!(count.load(Ordering::SeqCst) >= 2);
}

#[test]
fn a_server_that_takes_up_a_session_and_answers_no_calls_is_left() {
    let (address, count) = start(&[Kind::Stuck, Kind::Stuck, Kind::Ended]);
    let session = ZooKeeper::connect(&address, SESSION_MS).unwrap();
    session.send(CallId(1), Command::Sync).unwrap();
    until_expired(&session);
    assert!(count.load(Ordering::SeqCst) >= 3);
}
