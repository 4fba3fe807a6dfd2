//! Servers that are killed while writes are under way.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kreon_coord::{Command, Mode, Reply, Version};

use crate::house::{Real, START};
use crate::seat::{Disturbed, Seat, children, get, set};

const COUNTER: &str = "/counter";
const LIST: &str = "/list";

/// Writes of each kind that are under way together.
const BURST: u64 = 200;

/// Writes by compare-and-set, and counts what is known of its writes.
struct Writer {
    seat: Seat,
    /// The version that it knows to be there.
    version: u64,
    /// Calls that made a node, and calls of which that is not known.
    made: usize,
    maybe_made: usize,
    unknown: usize,
    was_replaced: bool,
}

impl Writer {
    fn new(mut seat: Seat) -> Self {
        for path in [COUNTER, LIST] {
            let create = Command::Create(path.into(), [].into(), Mode::Persistent);
            while !matches!(seat.ask(create.clone()), Reply::Created(_) | Reply::Exists) {}
        }
        Self {
            seat,
            version: 0,
            made: 0,
            maybe_made: 0,
            unknown: 0,
            was_replaced: false,
        }
    }

    /// The node after all that was written, as soon as somebody answers.
    fn see(&mut self, real: &Real) -> (u64, Vec<u8>) {
        let begun = Instant::now();
        loop {
            match self.seat.see(COUNTER) {
                Ok(node) => {
                    let node = node.expect("it is never deleted");
                    return (node.version.0, node.data.to_vec());
                }
                Err(Disturbed) if self.seat.is_over => {
                    self.seat = real.seat(4000);
                    self.was_replaced = true;
                }
                Err(Disturbed) => assert!(begun.elapsed() < START, "nobody answers"),
            }
        }
    }

    /// One write of each kind. The first is settled, the second is counted.
    fn write(&mut self, real: &Real) {
        let data = (self.version + 1).to_string();
        match self.seat.ask(set(COUNTER, &data, self.version)) {
            Reply::Written(version) => {
                assert_eq!(version, Version(self.version + 1));
                self.version += 1;
            }
            Reply::Unknown | Reply::Expired => {
                self.unknown += 1;
                let (version, found) = self.see(real);
                let done = version == self.version + 1 && found == data.as_bytes();
                assert!(
                    done || version == self.version,
                    "{version}, not {}",
                    self.version
                );
                self.version = version;
            }
            // The only writer always knows the version.
            other => panic!("{other:?}"),
        }
        let create = Command::Create(format!("{LIST}/n-"), [].into(), Mode::EphemeralSequential);
        match self.seat.ask(create) {
            Reply::Created(_) => self.made += 1,
            _ => self.maybe_made += 1,
        }
    }

    /// Many writes of each kind without waiting; `strike` comes when the first are answered.
    fn burst(&mut self, real: &mut Real, strike: impl FnOnce(&mut Real)) {
        let mut calls = BTreeMap::new();
        for next in self.version..self.version + BURST {
            let data = (next + 1).to_string();
            calls.insert(self.seat.send(set(COUNTER, &data, next)), Kind::Swap);
            let path = format!("{LIST}/n-");
            let create = Command::Create(path, [].into(), Mode::EphemeralSequential);
            calls.insert(self.seat.send(create), Kind::Creation);
        }
        let (mut strike, mut acknowledged) = (Some(strike), self.version);
        let begun = Instant::now();
        while !calls.is_empty() && !self.seat.is_over {
            assert!(begun.elapsed() < START, "calls without an answer");
            for (call, reply) in self.seat.poll(Duration::from_secs(1)) {
                match (calls.remove(&call), reply) {
                    (Some(Kind::Swap), Reply::Written(version)) => acknowledged = version.0,
                    (Some(Kind::Creation), Reply::Created(_)) => self.made += 1,
                    (Some(Kind::Creation), Reply::Unknown) => self.maybe_made += 1,
                    // Behind a swap that was not carried out, all are refused.
                    (Some(Kind::Swap), Reply::Unknown | Reply::Conflict) => self.unknown += 1,
                    other => panic!("{other:?}"),
                }
            }
            if (calls.len() as u64) < 2 * BURST - BURST / 5
                && let Some(strike) = strike.take()
            {
                strike(real);
            }
        }
        if let Some(strike) = strike {
            strike(real);
        }
        self.maybe_made += calls.len();
        let (version, _) = self.see(real);
        assert!(version >= acknowledged, "an acknowledged write is lost");
        assert!(version <= self.version + BURST, "a write was sent twice");
        self.version = version;
    }

    /// Nothing that was acknowledged is lost, and nothing was sent twice.
    fn settle(&mut self, real: &Real) {
        let (version, data) = self.see(real);
        assert_eq!(version, self.version);
        assert_eq!(data, version.to_string().as_bytes());
        let (made, maybe) = (self.made, self.maybe_made);
        while !self.seat.is_over {
            if let Reply::Children(names) = self.seat.ask(children(LIST, false)) {
                // A session that was replaced on the way has taken its nodes with it.
                let least = if self.was_replaced { 0 } else { made };
                let count = names.len();
                assert!((least..=made + maybe).contains(&count), "{count} nodes");
                println!("{count} nodes of {made} answered and {maybe} other calls");
                break;
            }
        }
        println!("{version} writes, {} others not answered", self.unknown);
    }
}

#[derive(Debug)]
enum Kind {
    Swap,
    Creation,
}

#[test]
fn a_killed_server_loses_no_write_and_no_write_is_sent_twice() {
    let Some(mut real) = Real::start(1, 200) else {
        return;
    };
    let mut writer = Writer::new(real.seat(4000));
    for _ in 0..2 {
        (0..10).for_each(|_| writer.write(&real));
        writer.burst(&mut real, |real| {
            let server = &mut real.ensemble.servers[0];
            server.kill().unwrap();
            server.restart().unwrap();
        });
    }
    (0..10).for_each(|_| writer.write(&real));
    writer.settle(&real);
}

#[test]
fn an_ensemble_goes_on_when_its_leader_is_killed() {
    let Some(mut real) = Real::start(3, 200) else {
        return;
    };
    let mut writer = Writer::new(real.seat(4000));
    for _ in 0..2 {
        (0..10).for_each(|_| writer.write(&real));
        let leader = real.ensemble.leader().expect("all serve");
        // It sees only the server that is killed, and watches a node that changes meanwhile.
        let mut watcher = real.seat_at(leader, 4000);
        let is_watching = matches!(watcher.ask(get(COUNTER, true)), Reply::Node(_));
        writer.burst(&mut real, |real| {
            real.ensemble.servers[leader].kill().unwrap();
        });
        (0..10).for_each(|_| writer.write(&real));
        let server = &mut real.ensemble.servers[leader];
        server.restart().unwrap();
        server.wait_until_serves(START).unwrap();
        if is_watching {
            // Told, or over: whoever is neither believes in what is no more.
            match watcher.next_change() {
                Ok(path) => assert_eq!(path, COUNTER),
                Err(Disturbed) => assert!(watcher.is_over),
            }
        }
    }
    writer.settle(&real);
}
