//! A server that is frozen and deposed meanwhile.

use std::time::Instant;

use kreon_coord::{Command, Mode, Reply};

use crate::house::{Real, START};
use crate::seat::{Disturbed, get, set};

const NODE: &str = "/term";

#[test]
fn a_leader_that_was_deposed_in_its_sleep_answers_no_sync_from_its_old_state() {
    let Some(real) = Real::start(3, 200) else {
        return;
    };
    let create = Command::Create(NODE.into(), [].into(), Mode::Persistent);
    let mut writer = real.seat(4000);
    while !matches!(
        writer.ask(create.clone()),
        Reply::Created(_) | Reply::Exists
    ) {}
    let mut answered = 0;
    for version in 0..2 {
        let leader = real.ensemble.leader().expect("all serve");
        let mut behind = real.seat_at(leader, 4000);
        while behind.see(NODE).is_err() && !behind.is_over {}
        real.ensemble.servers[leader].freeze().unwrap();
        let frozen = Instant::now();
        // The others elect a leader, and write.
        let mut writer = real.seat_at((leader + 1) % 3, 4000);
        loop {
            let reply = writer.ask(set(NODE, "", version));
            if matches!(reply, Reply::Written(_) | Reply::Conflict) {
                break;
            }
            assert!(frozen.elapsed() < START, "the others elect nobody");
            if writer.is_over {
                writer = real.seat_at((leader + 1) % 3, 4000);
            }
        }
        // Asked while nobody answers: the first thing that the old leader reads.
        let mut calls = Vec::new();
        for _ in 0..20 {
            calls.push((behind.send(Command::Sync), behind.send(get(NODE, false))));
        }
        real.ensemble.servers[leader].thaw().unwrap();
        let mut replies = std::collections::BTreeMap::new();
        let awake = Instant::now();
        while !behind.is_over && replies.len() < 2 * calls.len() && awake.elapsed() < START {
            replies.extend(behind.poll(std::time::Duration::from_secs(1)));
        }
        for (sync, read) in calls {
            if replies.get(&sync) != Some(&Reply::Synced) {
                continue;
            }
            if let Some(Reply::Node(node)) = replies.get(&read) {
                answered += 1;
                assert!(node.version.0 > version, "an old state behind a sync");
            }
        }
        wait_for_all(&real);
    }
    println!("{answered} synced reads were answered");
}

fn wait_for_all(real: &Real) {
    let begun = Instant::now();
    for server in 0..3 {
        let mut seat = real.seat_at(server, 4000);
        while let Err(Disturbed) = seat.see(NODE) {
            assert!(
                begun.elapsed() < START,
                "server {server} does not come back"
            );
            if seat.is_over {
                seat = real.seat_at(server, 4000);
            }
        }
    }
}
