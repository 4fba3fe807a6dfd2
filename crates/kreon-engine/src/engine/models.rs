//! The gate by itself and whole stores in memory, under many schedules. `cargo xtask interleavings
//! shuttle`.
//!
//! - `commits`: transactions

mod commits;

use std::sync::Arc;

use kreon_sim::{SimDevice, SimOptions};
use shuttle::thread;

use super::Engine;
use crate::operation::{Operation, Terms};
use crate::options::{Background, Durability, MEMORY_BYTES_MIN, Options};
use crate::read::prefix_bounds;
use crate::regions::RegionState;
use crate::visibility::Gate;
use crate::write::DeletedRange;
use kreon_sync::{AtomicU32, Ordering, explore, yield_now};

#[test]
fn model_nobody_is_inside_while_the_gate_is_closed() {
    explore("gate: three writers, two who close it", 10_000, || {
        let gate = Arc::new(Gate::default());
        let inside = Arc::new(AtomicU32::new(0));
        let actor = |number| {
            let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
            thread::spawn(move || {
                if number < 3 {
                    let _inside = gate.enter();
                    inside.fetch_add(1, Ordering::SeqCst);
                    yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                } else {
                    let _closed = gate.close();
                    assert_eq!(inside.load(Ordering::SeqCst), 0);
                    yield_now();
                    assert_eq!(inside.load(Ordering::SeqCst), 0);
                }
            })
        };
        let actors: Vec<_> = (0..5).map(actor).collect();
        actors.into_iter().for_each(|actor| actor.join().unwrap());
    });
}

/// A store in memory and a region of it.
#[derive(Clone)]
struct Bench {
    engine: Arc<Engine>,
    region: Arc<RegionState>,
}

impl Bench {
    fn open() -> Self {
        let options = Options {
            memory_bytes: MEMORY_BYTES_MIN,
            background: Background::Inline,
            store_id: Some(7),
            ..Options::default()
        };
        let device = SimDevice::new(SimOptions {
            record: false,
            ..SimOptions::default()
        });
        let engine = Engine::open(Arc::new(device), options).expect("a new store");
        let region = engine.region("r").expect("a new region");
        Self {
            engine: Arc::new(engine),
            region,
        }
    }

    /// Writes the same value under all the keys, as one unit.
    fn write(&self, keys: &[&[u8]], value: u8) {
        let value = [value];
        let operations: Vec<_> = keys
            .iter()
            .map(|key| Operation {
                region: &self.region,
                key,
                value: Some(&value),
                is_range: false,
                terms: Terms::default(),
            })
            .collect();
        self.engine
            .write(&operations, Durability::Buffered)
            .expect("there is room");
    }

    fn get(&self, key: &[u8]) -> Option<u8> {
        let found = self.engine.get(&self.region, key, None, |value| value[0]);
        found.expect("a read of memory")
    }

    /// Deletes all keys.
    fn delete_all(&self) {
        let all = DeletedRange::of(prefix_bounds(b"")).expect("short bounds");
        let operation = all.as_ref().map(|all| all.operation(&self.region));
        self.engine
            .write(operation.as_slice(), Durability::Buffered)
            .expect("there is room");
    }

    fn delete(&self, key: &[u8]) {
        let operation = Operation {
            region: &self.region,
            key,
            value: None,
            is_range: false,
            terms: Terms::default(),
        };
        self.engine
            .write(&[operation], Durability::Buffered)
            .expect("there is room");
    }

    /// The values of all keys at one moment.
    fn scan(&self) -> Vec<u8> {
        let snapshot = self.engine.snapshot();
        yield_now();
        let mut scan = self.engine.scan(&self.region, snapshot, prefix_bounds(b""));
        let mut values = Vec::new();
        while let Some(value) = scan
            .next_with(|_, value| value[0])
            .expect("a read of memory")
        {
            values.push(value);
        }
        values
    }

    fn beside<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let bench = self.clone();
        thread::spawn(move || work(&bench))
    }
}

#[test]
fn model_a_batch_is_seen_whole_or_not_at_all() {
    explore("units: a batch, gets in both orders, a scan", 2000, || {
        let bench = Bench::open();
        bench.write(&[b"a", b"b", b"c"], 1);
        let writer = bench.beside(|bench| bench.write(&[b"a", b"b", b"c"], 2));
        let readers = [[b"a", b"c"], [b"c", b"a"]].map(|keys| {
            bench.beside(move |bench| {
                let seen = keys.map(|key| bench.get(key));
                assert!(seen[0] <= seen[1], "{seen:?}: what was seen is gone");
            })
        });
        let scan = bench.beside(|bench| {
            let seen = bench.scan();
            assert!(seen == [1; 3] || seen == [2; 3], "{seen:?}");
        });
        writer.join().unwrap();
        for reader in readers {
            reader.join().unwrap();
        }
        scan.join().unwrap();
    });
}

#[test]
fn model_a_write_over_a_part_of_a_batch_shows_only_with_the_whole_batch() {
    explore(
        "units: a batch, a write over its last key, gets",
        2000,
        || {
            let bench = Bench::open();
            let batch = bench.beside(|bench| bench.write(&[b"a", b"b"], 1));
            let single = bench.beside(|bench| bench.write(&[b"b"], 2));
            let reader = bench.beside(|bench| [b"b", b"a"].map(|key| bench.get(key)));
            batch.join().unwrap();
            single.join().unwrap();
            let seen = reader.join().unwrap();
            // The log decided which came first; if the batch, then the write is proof of it.
            if bench.get(b"b") == Some(2) && seen[0] == Some(2) {
                assert_eq!(
                    seen[1],
                    Some(1),
                    "a write after the batch, but not the batch"
                );
            }
            if seen[0] == Some(1) {
                assert_eq!(seen[1], Some(1), "a part of the batch");
            }
        },
    );
}

#[test]
fn model_a_put_in_a_deleted_range_shows_only_with_the_whole_deletion() {
    explore(
        "ranges: a deletion, a batch in its way, a put in its range",
        2000,
        || {
            let bench = Bench::open();
            bench.write(&[b"a"], 1);
            bench.write(&[b"b"], 1);
            let deletion = bench.beside(Bench::delete_all);
            // The deletion has its position while it waits for the batch.
            let batch = bench.beside(|bench| bench.write(&[b"c", b"d"], 1));
            let writer = bench.beside(|bench| {
                bench.write(&[b"a"], 2);
                bench.get(b"b")
            });
            deletion.join().unwrap();
            batch.join().unwrap();
            let seen = writer.join().unwrap();
            // The log decided which came first; if the deletion, then the put is proof of it.
            if bench.get(b"a").is_some() {
                assert_eq!(seen, None, "a put after the deletion, but not the deletion");
            }
        },
    );
}

#[test]
fn model_what_was_written_is_found_while_l0_is_frozen_and_spilled() {
    explore("views: puts, gets, a checkpoint", 1500, || {
        let bench = Bench::open();
        bench.write(&[b"a"], 1);
        let spiller = bench.beside(|bench| bench.engine.checkpoint().expect("there is room"));
        let writer = bench.beside(|bench| {
            for value in 2..5 {
                bench.write(&[b"a"], value);
                assert_eq!(bench.get(b"a"), Some(value));
            }
        });
        let reader = bench.beside(|bench| {
            let mut last = 0;
            for _ in 0..4 {
                let value = bench.get(b"a").expect("it was there from the start");
                assert!(value >= last, "{value} after {last}");
                last = value;
                yield_now();
            }
        });
        spiller.join().unwrap();
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(bench.get(b"a"), Some(4));
    });
}

#[test]
fn model_a_snapshot_does_not_change_under_writes() {
    explore(
        "snapshots: a scan beside batches and a checkpoint",
        1500,
        || {
            let bench = Bench::open();
            bench.write(&[b"a", b"b"], 1);
            let writer = bench.beside(|bench| {
                for value in 2..4 {
                    bench.write(&[b"a", b"b"], value);
                }
            });
            let spiller = bench.beside(|bench| bench.engine.checkpoint().expect("there is room"));
            let reader = bench.beside(|bench| {
                let snapshot = bench.engine.snapshot();
                let get = |key: &[u8]| {
                    let found = bench
                        .engine
                        .get(&bench.region, key, Some(&snapshot), |value| value[0]);
                    found.expect("a read of memory")
                };
                let first = [get(b"a"), get(b"b")];
                assert_eq!(first[0], first[1]);
                yield_now();
                assert_eq!([get(b"a"), get(b"b")], first);
            });
            writer.join().unwrap();
            spiller.join().unwrap();
            reader.join().unwrap();
        },
    );
}

#[test]
fn model_snapshots_that_follow_each_other_at_one_position_are_the_same() {
    explore(
        "snapshots: opened again and again beside puts and a checkpoint",
        2000,
        || {
            let bench = Bench::open();
            bench.write(&[b"a"], 1);
            bench.write(&[b"b"], 1);
            let writer = bench.beside(|bench| {
                // `a` is never behind `b`.
                for value in 2..4 {
                    bench.write(&[b"a"], value);
                    bench.write(&[b"b"], value);
                }
            });
            let spiller = bench.beside(|bench| bench.engine.checkpoint().expect("there is room"));
            let reader = |bench: &Bench| {
                for _ in 0..3 {
                    let snapshot = bench.engine.snapshot();
                    let get = |key: &[u8]| {
                        let found =
                            bench
                                .engine
                                .get(&bench.region, key, Some(&snapshot), |value| value[0]);
                        found.expect("a read of memory")
                    };
                    let first = [get(b"b"), get(b"a")];
                    assert!(first[0] <= first[1], "{first:?}: a later write alone");
                    yield_now();
                    assert_eq!([get(b"b"), get(b"a")], first);
                }
            };
            let readers = [bench.beside(reader), bench.beside(reader)];
            writer.join().unwrap();
            spiller.join().unwrap();
            for reader in readers {
                reader.join().unwrap();
            }
        },
    );
}

#[test]
fn model_a_put_among_dead_keys_is_in_every_scan_behind_it() {
    explore("gaps: a put, three scans that find gaps", 1500, || {
        let bench = Bench::open();
        let keys: Vec<[u8; 1]> = (0..8).map(|number| [number]).collect();
        for key in &keys {
            bench.write(&[key], 1);
            bench.delete(key);
        }
        let scanner = |bench: &Bench| {
            for _ in 0..2 {
                let seen = bench.scan();
                assert!(seen.is_empty() || seen == [2], "{seen:?}");
            }
        };
        let scanners = [bench.beside(scanner), bench.beside(scanner)];
        let writer = bench.beside(|bench| {
            bench.write(&[&[4]], 2);
            assert_eq!(bench.scan(), [2]);
        });
        writer.join().unwrap();
        for scanner in scanners {
            scanner.join().unwrap();
        }
        for _ in 0..3 {
            assert_eq!(bench.scan(), [2]);
        }
        bench.delete(&[4]);
        for _ in 0..3 {
            assert!(bench.scan().is_empty());
        }
    });
}
