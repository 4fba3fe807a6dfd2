//! How long sessions last, and who ends them.

use std::io::{BufRead, BufReader};
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use kreon_coord::{CallId, Command, Coordinator, Event, Mode, Reply, ZooKeeper};
use rustix::process::{Pid, Signal, kill_process};

use crate::house::{Real, START};
use crate::seat::{Disturbed, Seat};

/// Tells the process of a test that it is the one to be frozen, and where the servers are.
const SERVERS: &str = "KREON_COORD_SERVERS";

const LIVE: &str = "/live";

fn ephemeral() -> Command {
    Command::Create(LIVE.into(), [].into(), Mode::Ephemeral)
}

#[test]
fn the_time_that_was_granted_is_told() {
    let Some(real) = Real::start(1, 200) else {
        return;
    };
    for (asked_ms, granted_ms) in [(1, 400), (1000, 1000), (60_000, 4000)] {
        // Who asks for less than the servers grant may not reach them in that time: it is tried again.
        assert_eq!(real.seat(asked_ms).session_ms(), granted_ms);
    }
    let error = ZooKeeper::connect("", 1000).err().expect("no servers");
    assert_eq!(error.kind(), kreon_base::ErrorKind::InvalidArgument);
    let nobody = ZooKeeper::connect("127.0.0.1:1", 100)
        .err()
        .expect("no server");
    assert_eq!(nobody.kind(), kreon_base::ErrorKind::Io);
}

/// The part of the process that is frozen: it says when it is ready, and when it learns that its session is over.
fn be_frozen(servers: &str) {
    let session = ZooKeeper::connect(servers, 1000).unwrap();
    session.send(CallId(1), ephemeral()).unwrap();
    let mut events = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < START {
        events.clear();
        session.poll(&mut events, Duration::from_secs(1)).unwrap();
        for event in &events {
            println!("told {event:?}");
            if *event == Event::Expired {
                return;
            }
        }
    }
}

#[test]
fn a_process_that_was_frozen_learns_at_once_that_its_session_is_over() {
    if let Ok(servers) = std::env::var(SERVERS) {
        return be_frozen(&servers);
    }
    let Some(real) = Real::start(1, 200) else {
        return;
    };
    let name = "times::a_process_that_was_frozen_learns_at_once_that_its_session_is_over";
    let mut process = Process::new(std::env::current_exe().unwrap());
    process.args(["--exact", name, "--nocapture"]);
    process.env(SERVERS, real.ensemble.addresses());
    let mut child = process.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut wait_for = |what: &str| {
        let told = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(what)));
        assert!(told.is_some(), "it never told {what}");
    };
    wait_for("Created");
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, Signal::STOP).unwrap();
    let gone = wait_until_gone(&real);
    kill_process(id, Signal::CONT).unwrap();
    let woken = Instant::now();
    wait_for("Expired");
    let after = woken.elapsed();
    assert!(child.wait().unwrap().success());
    assert!(gone, "the node of a frozen process stays");
    println!("told {after:?} after it was woken");
}

/// Whether the node goes, as others see it.
fn wait_until_gone(real: &Real) -> bool {
    let begun = Instant::now();
    let mut watcher = real.seat(4000);
    while begun.elapsed() < START {
        match watcher.see(LIVE) {
            Ok(None) => return true,
            Ok(Some(_)) => std::thread::sleep(Duration::from_millis(50)),
            Err(Disturbed) => watcher = real.seat(4000),
        }
    }
    false
}

#[test]
fn a_session_without_contact_is_over_only_when_a_server_says_so() {
    let Some(mut real) = Real::start(1, 200) else {
        return;
    };
    for session_ms in [400, 4000] {
        lose_contact(&mut real, session_ms);
    }
}

fn lose_contact(real: &mut Real, session_ms: u32) {
    let path = format!("{LIVE}-{session_ms}");
    let mut seat = real.seat(session_ms);
    let create = Command::Create(path.clone(), [].into(), Mode::Ephemeral);
    while !matches!(seat.ask(create.clone()), Reply::Created(_)) {
        seat = real.seat(session_ms);
    }
    let server = &mut real.ensemble.servers[0];
    server.kill().unwrap();
    let call = seat.send(Command::Sync);
    assert_eq!(seat.answer(call), Reply::Unknown, "there is no server");
    // The client gives up after 7/5 of the time. The server that comes back knows the session.
    std::thread::sleep(Duration::from_millis(u64::from(session_ms) * 8 / 5));
    seat.poll(Duration::ZERO);
    assert!(!seat.is_over, "nobody can know that");
    server.restart().unwrap();
    server.wait_until_serves(START).unwrap();
    let (was_taken_up, seat) = settle(seat, &path);
    let mut other = real.seat(4000);
    let is_there = loop {
        match other.see(&path) {
            Ok(node) => break node.is_some(),
            Err(Disturbed) => other = real.seat(4000),
        }
    };
    // It may end between the two questions, on a machine that stands still.
    let still = was_taken_up && settle(seat, &path).0;
    assert!(is_there || !still, "the session goes on without its node");
    assert!(
        !is_there || was_taken_up,
        "the session is over, and its node stays"
    );
    println!("{session_ms} ms: taken up: {was_taken_up}");
}

/// Waits until the session is answered again, or is over. Whether it goes on.
fn settle(mut seat: Seat, path: &str) -> (bool, Seat) {
    let begun = Instant::now();
    while !seat.is_over && seat.see(path).is_err() {
        assert!(begun.elapsed() < START, "neither an answer nor the end");
    }
    (!seat.is_over, seat)
}
