//! What every store of this build must do, to be measured at all.

use std::thread;

use tempfile::TempDir;

use super::tuning::Means;
use super::{Engine, Kind};

/// Calls `check` with each store of this build, new and open, and with what it takes to open it again.
fn each(
    kinds: fn(Kind) -> bool,
    check: impl Fn(Kind, Box<dyn Engine>, &dyn Fn() -> Box<dyn Engine>),
) {
    for kind in <Kind as clap::ValueEnum>::value_variants() {
        if !kind.is_store() || !kind.is_built() || !kinds(*kind) {
            continue;
        }
        let dir = TempDir::new().unwrap();
        let means = Means {
            memory_bytes: 256 << 20,
            data_bytes: 4 << 20,
            is_sync: kind.is_durable(),
            is_warmed: true,
            ..Means::default()
        };
        let open = || kind.open(dir.path(), &means).unwrap();
        check(*kind, open(), &open);
    }
}

fn key(number: u32) -> Vec<u8> {
    format!("user{number:08}").into_bytes()
}

/// Of some length between 20 and 2000 bytes, told by both numbers.
fn value(number: u32, version: u32) -> Vec<u8> {
    let bytes = 20 + (number.wrapping_mul(2_654_435_761) >> 8) as usize % 1980;
    let text = format!("{number} {version} ");
    text.bytes().cycle().take(bytes).collect()
}

fn got(engine: &dyn Engine, key: &[u8]) -> Option<Vec<u8>> {
    let mut got = None;
    let is_found = engine.get(key, &mut |value| got = Some(value.to_vec()));
    assert_eq!(is_found.unwrap(), got.is_some());
    got
}

fn scanned(engine: &dyn Engine, start: &[u8], count: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pairs = Vec::new();
    let shown = engine.scan(start, count, &mut |key, value| {
        pairs.push((key.to_vec(), value.to_vec()));
    });
    assert_eq!(shown.unwrap(), pairs.len());
    pairs
}

#[test]
fn every_store_gets_the_newest_of_what_was_put() {
    each(
        |_| true,
        |kind, engine, _| {
            for number in 0..200 {
                engine.put(&key(number), &value(number, 0)).unwrap();
            }
            for number in (0..200).step_by(3) {
                engine.put(&key(number), &value(number + 7, 1)).unwrap();
            }
            engine.settle().unwrap();
            for number in 0..200 {
                let newest = match number % 3 {
                    0 => value(number + 7, 1),
                    _ => value(number, 0),
                };
                assert_eq!(got(engine.as_ref(), &key(number)), Some(newest), "{kind:?}");
            }
            assert_eq!(got(engine.as_ref(), &key(200)), None, "{kind:?}");
            assert_eq!(got(engine.as_ref(), b"user"), None, "{kind:?}");
        },
    );
}

#[test]
fn every_store_scans_in_the_order_of_keys_from_the_first_that_is_not_below_the_start() {
    each(
        |_| true,
        |kind, engine, _| {
            // Even numbers only, the last first.
            for number in (0..200).rev().step_by(2).map(|number| number - 1) {
                engine.put(&key(number), &value(number, 0)).unwrap();
            }
            let pairs = |numbers: &[u32]| -> Vec<_> {
                numbers.iter().map(|n| (key(*n), value(*n, 0))).collect()
            };
            let engine = engine.as_ref();
            assert_eq!(
                scanned(engine, &key(20), 3),
                pairs(&[20, 22, 24]),
                "{kind:?}"
            );
            assert_eq!(
                scanned(engine, &key(21), 3),
                pairs(&[22, 24, 26]),
                "{kind:?}"
            );
            assert_eq!(scanned(engine, b"a", 1), pairs(&[0]), "{kind:?}");
            assert_eq!(
                scanned(engine, &key(195), 9),
                pairs(&[196, 198]),
                "{kind:?}"
            );
            assert_eq!(scanned(engine, b"v", 9), [], "{kind:?}");
            assert_eq!(scanned(engine, &key(0), 1000).len(), 100, "{kind:?}");
        },
    );
}

#[test]
fn every_store_serves_clients_on_many_threads() {
    const CLIENTS: u32 = 8;
    const EACH: u32 = 50;
    each(
        |_| true,
        |kind, engine, _| {
            let engine = engine.as_ref();
            thread::scope(|scope| {
                for client in 0..CLIENTS {
                    scope.spawn(move || {
                        for number in (0..EACH).map(|n| n * CLIENTS + client) {
                            engine.put(&key(number), &value(number, client)).unwrap();
                            let newest = Some(value(number, client));
                            assert_eq!(got(engine, &key(number)), newest, "{kind:?}");
                            // Everybody's, so that writes meet.
                            engine.put(b"shared", &value(client, number)).unwrap();
                        }
                    });
                }
            });
            for number in 0..CLIENTS * EACH {
                let newest = Some(value(number, number % CLIENTS));
                assert_eq!(got(engine, &key(number)), newest, "{kind:?}");
            }
        },
    );
}

#[test]
fn every_durable_store_has_what_was_put_when_it_is_opened_again() {
    each(Kind::is_durable, |kind, engine, open| {
        for number in 0..100 {
            engine.put(&key(number), &value(number, 0)).unwrap();
        }
        engine.persist().unwrap();
        engine.put(&key(100), &value(100, 0)).unwrap();
        drop(engine);
        let engine = open();
        for number in 0..=100 {
            let put = Some(value(number, 0));
            assert_eq!(got(engine.as_ref(), &key(number)), put, "{kind:?}");
        }
    });
}
