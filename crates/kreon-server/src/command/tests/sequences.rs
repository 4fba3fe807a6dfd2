//! Random sequences of commands, compared with a model, across openings of the store.

use super::model::Model;
use super::{Fixture, Pipeline, Watching, parse};
use crate::keyspace::{COLLECTION, EXPIRY};

/// Keys that all groups share, so that types meet.
pub(super) const KEYS: &[&str] = &["a", "b", "c", "ab"];
/// Members, fields and values; the numbers serve as scores and increments.
const WORDS: &[&str] = &["x", "y", "zz", "z", "1", "2", "-3", "10"];
const NUMBERS: &[&str] = &["1", "2", "-3", "10"];
const INDEXES: &[&str] = &["0", "1", "2", "-1", "-2", "5"];

/// SplitMix64, from a seed.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % end as u64) as usize
    }

    pub(super) fn of(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len())]
    }

    /// Fills a form: `K` a key, `W` a word, `N` a number, `I` an index, `+` the last word or pair again and again.
    pub(super) fn fill(&mut self, form: &'static str) -> Vec<&'static str> {
        let mut words = Vec::new();
        for part in form.split(' ') {
            match part {
                "K" => words.push(self.of(KEYS)),
                "W" => words.push(self.of(WORDS)),
                "N" => words.push(self.of(NUMBERS)),
                "I" => words.push(self.of(INDEXES)),
                "W+" => (0..=self.below(3)).for_each(|_| words.push(self.of(WORDS))),
                "WW+" => (0..2 * (1 + self.below(3))).for_each(|_| words.push(self.of(WORDS))),
                "NW+" => (0..=self.below(3)).for_each(|_| {
                    words.push(self.of(NUMBERS));
                    words.push(self.of(WORDS));
                }),
                other => words.push(other),
            }
        }
        words
    }
}

const GENERIC: &[&str] = &[
    "DEL K",
    "TYPE K",
    "RENAME K K",
    "COPY K K REPLACE",
    "DBSIZE",
    "SET K W",
    "KREON.RANGE K K KEYS",
    "KREON.DELRANGE ab b",
];

/// Runs `steps` commands of `forms` and of all keys, some of them as one, and compares each reply and what is left.
fn compare(seed: u64, steps: usize, forms: &[&'static str]) {
    let mut chance = Chance(seed);
    let mut fixture = Fixture::new();
    let mut model = Model::default();
    let line = |chance: &mut Chance| {
        let form = match chance.below(4) {
            0 => chance.of(GENERIC),
            _ => forms[chance.below(forms.len())],
        };
        chance.fill(form)
    };
    for step in 0..steps {
        let trace = format!("seed {seed}, step {step}");
        match chance.below(100) {
            0 => fixture = fixture.reopen(),
            1 => {
                fixture.ask("FLUSHDB");
                model.run(&["FLUSHDB"]);
            }
            2..12 => {
                let lines: Vec<Vec<&str>> = (0..1 + chance.below(5))
                    .map(|_| line(&mut chance))
                    .collect();
                let joined: Vec<String> = lines.iter().map(|words| words.join(" ")).collect();
                let joined: Vec<&str> = joined.iter().map(String::as_str).collect();
                let expected: Vec<String> = lines.iter().map(|words| model.run(words)).collect();
                let reply = fixture.exec(&joined, &Watching::default());
                assert_eq!(
                    reply,
                    format!("[{}]", expected.join(" ")),
                    "{trace}: {joined:?}"
                );
            }
            12..40 => {
                let lines: Vec<Vec<&str>> = (0..1 + chance.below(8))
                    .map(|_| line(&mut chance))
                    .filter(|words| is_write(words))
                    .collect();
                let joined: Vec<String> = lines.iter().map(|words| words.join(" ")).collect();
                let joined: Vec<&str> = joined.iter().map(String::as_str).collect();
                let expected: Vec<String> = lines.iter().map(|words| model.run(words)).collect();
                assert_eq!(fixture.pipeline(&joined), expected, "{trace}: {joined:?}");
            }
            _ => {
                let words = line(&mut chance);
                let expected = model.run(&words);
                assert_eq!(
                    fixture.ask(&words.join(" ")),
                    expected,
                    "{trace}: {words:?}"
                );
            }
        }
        if step % 50 == 0 {
            check_records(&fixture, &model, &trace);
        }
    }
    check_records(
        &fixture.reopen(),
        &model,
        &format!("seed {seed}, at the end"),
    );
}

/// Whether a pipeline takes it.
pub(super) fn is_write(words: &[&str]) -> bool {
    let (command, args) = parse(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
    Pipeline::takes(command, &args)
}

/// No element is left of what was deleted, and none is missing.
pub(super) fn check_records(fixture: &Fixture, model: &Model, trace: &str) {
    let elements: usize = model
        .entries
        .values()
        .map(super::model::Entry::records)
        .sum();
    assert_eq!(fixture.records(b'e'), elements, "{trace}");
    let collections = model.entries.values().filter(|entry| entry.records() > 0);
    assert_eq!(fixture.records(COLLECTION), collections.count(), "{trace}");
    assert_eq!(fixture.records(EXPIRY), 0, "{trace}");
}

#[test]
fn strings_are_those_of_the_model() {
    let forms = &[
        "GET K",
        "APPEND K W",
        "INCRBY K N",
        "SETRANGE K 1 W",
        "SET K W",
    ];
    (0..4).for_each(|seed| compare(seed, 500, forms));
}

#[test]
fn hashes_are_those_of_the_model() {
    let forms = &[
        "HSET K WW+",
        "HSET K WW+",
        "HDEL K W+",
        "HGET K W",
        "HGETALL K",
        "HINCRBY K W N",
    ];
    (0..4).for_each(|seed| compare(seed, 500, forms));
}

#[test]
fn sets_are_those_of_the_model() {
    let forms = &[
        "SADD K W+",
        "SADD K W+",
        "SREM K W+",
        "SMEMBERS K",
        "SINTER K K",
        "SUNION K K",
        "SDIFF K K",
    ];
    (0..4).for_each(|seed| compare(seed, 500, forms));
}

#[test]
fn sorted_sets_are_those_of_the_model() {
    let forms = &[
        "ZADD K NW+",
        "ZADD K NW+",
        "ZREM K W+",
        "ZRANGE K I I WITHSCORES",
        "ZRANK K W",
        "ZPOPMIN K",
        "ZREMRANGEBYSCORE K N N",
    ];
    (0..4).for_each(|seed| compare(seed, 500, forms));
}

#[test]
fn lists_are_those_of_the_model() {
    let forms = &[
        "LPUSH K W+",
        "RPUSH K W+",
        "LPUSH K W+",
        "RPUSH K W+",
        "LPOP K",
        "RPOP K",
        "LRANGE K I I",
        "LREM K I W",
        "LTRIM K I I",
        "LSET K 1 W",
    ];
    (0..4).for_each(|seed| compare(seed, 500, forms));
}

#[test]
fn all_types_meet_at_the_same_keys() {
    let forms = &[
        "GET K",
        "APPEND K W",
        "HSET K WW+",
        "HDEL K W+",
        "SADD K W+",
        "SREM K W+",
        "ZADD K NW+",
        "ZPOPMIN K",
        "RPUSH K W+",
        "LPOP K",
        "LREM K I W",
        "SINTER K K",
    ];
    (0..6).for_each(|seed| compare(seed, 500, forms));
}
