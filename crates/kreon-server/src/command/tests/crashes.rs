//! Power cuts: what is found afterwards is the state between two commands, and none that was told of as durable is lost.

use std::sync::Arc;

use kreon_sim::{Keep, SimDevice, SimOptions};

use super::Fixture;
use super::model::Model;
use super::sequences::{Chance, KEYS, check_records};
use crate::keyspace::SyncGroup;
use crate::settings::Persistence;

const FORMS: &[&str] = &[
    "SET K W",
    "APPEND K W",
    "DEL K",
    "RENAME K K",
    "COPY K K REPLACE",
    "HSET K WW+",
    "HDEL K W+",
    "SADD K W+",
    "SREM K W+",
    "ZADD K NW+",
    "ZPOPMIN K",
    "RPUSH K W+",
    "LREM K I W",
    "LPOP K",
];

/// All that a user can read.
fn content(mut ask: impl FnMut(&str) -> String) -> Vec<String> {
    let mut content = Vec::new();
    for key in KEYS {
        content.push(match ask(&format!("TYPE {key}")).as_str() {
            "string" => ask(&format!("GET {key}")),
            "hash" => ask(&format!("HGETALL {key}")),
            "set" => ask(&format!("SMEMBERS {key}")),
            "zset" => ask(&format!("ZRANGE {key} 0 -1 WITHSCORES")),
            "list" => ask(&format!("LRANGE {key} 0 -1")),
            _ => String::new(),
        });
    }
    content
}

/// A state between two commands.
struct Moment {
    model: Model,
    /// Events of the device when the replies before it had been sent; `None`: they were not waited for.
    sent: Option<usize>,
}

fn run(seed: u64) {
    let mut chance = Chance(seed);
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let fixture = Fixture::on(Arc::clone(&device), Persistence::Sync);
    let mut model = Model::default();
    let mut moments = vec![Moment {
        model: model.clone(),
        sent: None,
    }];
    for step in 0..150 {
        // Of a pipeline some commands may have to run alone, and lie between two batches.
        let lines = (0..1 + chance.below(3)).map(|_| chance.of(FORMS));
        let lines: Vec<_> = lines.collect();
        let lines: Vec<_> = lines.into_iter().map(|form| chance.fill(form)).collect();
        let joined: Vec<String> = lines.iter().map(|words| words.join(" ")).collect();
        let joined: Vec<&str> = joined.iter().map(String::as_str).collect();
        let mut expected = Vec::new();
        for words in &lines {
            expected.push(model.run(words));
            moments.push(Moment {
                model: model.clone(),
                sent: None,
            });
        }
        moments.pop();
        assert_eq!(
            fixture.pipeline(&joined),
            expected,
            "seed {seed}, step {step}"
        );
        let sent = (chance.below(4) == 0).then(|| {
            let group = SyncGroup::default();
            let durable = fixture.keyspace.durable(&fixture.client, &group);
            fixture.runtime.block_on(durable).unwrap();
            device.events()
        });
        moments.push(Moment {
            model: model.clone(),
            sent,
        });
    }
    let history = device.history();
    for cut in 0..40 {
        let events = chance.below(history.events.len() + 1);
        let mut keep = match cut % 3 {
            0 => Keep::Nothing,
            1 => Keep::All,
            _ => Keep::SomeWrites { seed: cut },
        };
        let crash = history.crash_after(events);
        let Some(least) = moments
            .iter()
            .rposition(|it| it.sent.is_some_and(|sent| sent <= events))
        else {
            continue;
        };
        let image = crash.image(&mut keep);
        let left = Arc::new(SimDevice::from_image(image, SimOptions::default()));
        let after = Fixture::on(left, Persistence::Sync);
        let found = content(|line| after.ask(line));
        let state = moments.iter().skip(least).find(|moment| {
            let mut model = moment.model.clone();
            content(|line| model.run(&line.split(' ').collect::<Vec<_>>())) == found
        });
        let trace = format!("seed {seed}, cut {cut} after event {events}");
        let state =
            state.unwrap_or_else(|| panic!("{trace}: {found:?} is no state from {least} on"));
        check_records(&after, &state.model, &trace);
        // New collections take no numbers of old ones.
        after.ask("FLUSHDB");
        after.ask("RPUSH a x");
        assert_eq!(after.ask("LRANGE a 0 -1"), "[x]", "{trace}");
    }
}

#[test]
fn power_cut_leaves_the_state_between_two_commands() {
    (0..3).for_each(run);
}
