//! Many threads on one L0.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use kreon_base::{Attributes, LogOffset, Lsn, Payload, Timestamp};
use kreon_l0::{Keep, L0, Version};

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn scaled(count: u64) -> u64 {
    if cfg!(miri) { count / 2000 } else { count }
}

/// Counts a writer as done when dropped, even by a panic, so that readers end.
struct Writing<'a>(&'a AtomicUsize);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

fn key_of(number: u64) -> Vec<u8> {
    format!("user{:019}", mix(number)).into_bytes()
}

/// Inserts a version whose parts all derive from its LSN; half of them inline.
fn insert_at(l0: &L0, key: &[u8], lsn: u64, keep: Keep) {
    with_payload(lsn, |payload| l0.insert(key, Lsn(lsn), payload, keep));
}

fn with_payload(lsn: u64, insert: impl FnOnce(Payload<'_>)) {
    let bytes = mix(lsn).to_le_bytes().repeat(3);
    insert(match lsn % 4 {
        0 | 1 => Payload::Inline {
            value: &bytes,
            attributes: attributes_of(lsn),
        },
        2 => Payload::Logged {
            offset: LogOffset(mix(lsn) >> 4),
            value_bytes: mix(lsn) as u32 >> 2,
            attributes: attributes_of(lsn),
        },
        _ => Payload::Tombstone {
            offset: LogOffset(mix(lsn) >> 4),
        },
    });
}

fn attributes_of(lsn: u64) -> Attributes {
    let expires = mix(lsn).is_multiple_of(3).then(|| Timestamp::of_ms(lsn));
    Attributes::expiring(expires)
}

/// Checks that a version is consistent; returns its LSN.
fn whole(version: Version<'_>) -> u64 {
    let lsn = version.lsn.0;
    match (version.payload, lsn % 4) {
        (Payload::Inline { value, .. }, 0 | 1) => {
            assert_eq!(value, mix(lsn).to_le_bytes().repeat(3));
        }
        (
            Payload::Logged {
                offset,
                value_bytes,
                ..
            },
            2,
        ) => {
            assert_eq!(
                (offset.0, value_bytes),
                (mix(lsn) >> 4, mix(lsn) as u32 >> 2)
            );
        }
        (Payload::Tombstone { offset }, 3) => assert_eq!(offset.0, mix(lsn) >> 4),
        (payload, _) => panic!("version {lsn} has {payload:?}"),
    }
    let has_value = lsn % 4 != 3;
    let attributes = Some(attributes_of(lsn)).filter(|_| has_value);
    assert_eq!(version.payload.attributes(), attributes.unwrap_or_default());
    lsn
}

#[test]
fn racing_writers_leave_the_newest_version_of_each_key() {
    const KEYS: u64 = 300;
    let writes = scaled(300_000);
    let l0 = L0::new();
    let next = AtomicU64::new(1);
    let writing = AtomicUsize::new(3);
    let newest: Vec<_> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        for writer in 0..3 {
            let (l0, next, newest, writing) = (&l0, &next, &newest, &writing);
            scope.spawn(move || {
                let _writing = Writing(writing);
                for i in 0..writes / 3 {
                    let lsn = next.fetch_add(1, Ordering::Relaxed);
                    let number = mix(i * 3 + writer) % KEYS;
                    let keep = Keep {
                        // Some writers retain the versions that they replace, so chains grow and are cut.
                        unit_pending: lsn.is_multiple_of(8),
                        ..Keep::default()
                    };
                    insert_at(l0, &key_of(number), lsn, keep);
                    newest[number as usize].fetch_max(lsn, Ordering::Release);
                }
            });
        }
        scope.spawn(|| {
            let mut i = 0;
            while writing.load(Ordering::Acquire) > 0 {
                i += 1;
                let number = mix(i) % KEYS;
                let least = newest[number as usize].load(Ordering::Acquire);
                let found = l0.get(&key_of(number), Lsn::MAX, |_| true, whole);
                assert!(found.unwrap_or(0) >= least, "{found:?} < {least}");
            }
        });
        scope.spawn(|| {
            let mut cursor = l0.cursor();
            while writing.load(Ordering::Acquire) > 0 {
                let mut more = cursor.first();
                while more {
                    let lsns: Vec<_> = cursor.versions().map(whole).collect();
                    assert!(lsns.is_sorted_by(|a, b| a > b), "{lsns:?}");
                    more = cursor.next();
                }
            }
        });
    });
    for (number, newest) in newest.iter().enumerate() {
        let newest = newest.load(Ordering::Relaxed);
        let found = l0.get(&key_of(number as u64), Lsn::MAX, |_| true, whole);
        assert_eq!(found.unwrap_or(0), newest);
    }
}

#[test]
fn cursors_see_in_order_what_was_there_when_they_started() {
    let keys = scaled(120_000);
    let l0 = L0::new();
    let writing = AtomicUsize::new(2);
    let progress = [AtomicU64::new(0), AtomicU64::new(0)];
    // The LSN tells the writer that inserted a key, and its number among that writer's keys.
    let walk = |rising: bool| {
        let started = [0, 1].map(|w: usize| progress[w].load(Ordering::Acquire));
        let mut cursor = l0.cursor();
        let mut more = if rising {
            cursor.first()
        } else {
            cursor.last()
        };
        let mut before: Option<&[u8]> = None;
        let mut old = 0;
        while more {
            let key = cursor.key();
            assert!(before.is_none_or(|before| if rising { before < key } else { before > key }));
            before = Some(key);
            let lsn = cursor.versions().map(whole).next().unwrap_or(0);
            old += u64::from((lsn / 2) < started[lsn as usize % 2]);
            more = if rising { cursor.next() } else { cursor.prev() };
        }
        assert_eq!(old, started[0] + started[1]);
    };
    thread::scope(|scope| {
        for writer in 0..2 {
            let (l0, writing, progress) = (&l0, &writing, &progress);
            scope.spawn(move || {
                let _writing = Writing(writing);
                for i in 0..keys {
                    let lsn = i * 2 + writer;
                    insert_at(l0, &key_of(lsn), lsn, Keep::default());
                    progress[writer as usize].store(i + 1, Ordering::Release);
                }
            });
        }
        for rising in [true, false] {
            let (walk, writing) = (&walk, &writing);
            scope.spawn(move || {
                while writing.load(Ordering::Acquire) > 0 {
                    walk(rising);
                }
            });
        }
    });
    walk(true);
    walk(false);
    assert_eq!(l0.len() as u64, 2 * keys);
}

#[test]
fn writers_at_the_end_of_the_key_space_lose_nothing() {
    let keys = scaled(100_000);
    let l0 = L0::new();
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= keys {
                        break;
                    }
                    insert_at(&l0, &number.to_be_bytes(), number, Keep::default());
                    let own = l0.get(&number.to_be_bytes(), Lsn::MAX, |_| true, whole);
                    assert_eq!(own, Some(number));
                }
            });
        }
    });
    let mut cursor = l0.cursor();
    for number in 0..keys {
        assert!(cursor.seek(&number.to_be_bytes()));
        assert_eq!(cursor.key(), number.to_be_bytes());
    }
    assert_eq!(l0.len() as u64, keys);
}

#[test]
fn a_snapshot_stays_as_it_was_while_writers_go_on() {
    const KEYS: u64 = 500;
    let writes = scaled(100_000);
    let l0 = L0::new();
    for number in 0..KEYS {
        insert_at(&l0, &key_of(number), number + 1, Keep::default());
    }
    let snapshot = Lsn(KEYS + 1);
    let keep = Keep {
        snapshot_max: Some(snapshot),
        unit_pending: false,
        ..Keep::default()
    };
    let next = AtomicU64::new(snapshot.0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                for number in 0..KEYS {
                    let found = l0.get(&key_of(number), snapshot, |_| true, whole);
                    assert_eq!(found, Some(number + 1));
                }
            }
        });
        let writers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..writes / 2 {
                        let lsn = next.fetch_add(1, Ordering::Relaxed);
                        insert_at(&l0, &key_of(mix(lsn) % KEYS), lsn, keep);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Release);
        assert!(ended.iter().all(Result::is_ok));
    });
}

#[test]
fn racing_writes_of_units_are_all_retained() {
    const KEYS: u64 = 40;
    let writes = scaled(40_000);
    let l0 = L0::new();
    let next = AtomicU64::new(1);
    let unit = Keep {
        snapshot_max: None,
        unit_pending: true,
        ..Keep::default()
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..writes / 3 {
                    let lsn = next.fetch_add(1, Ordering::Relaxed);
                    // All threads use the same few keys at a time, so that they collide, often with late writes.
                    insert_at(&l0, &key_of(lsn / 1000 % KEYS), lsn, unit);
                }
            });
        }
    });
    let mut lsns = Vec::new();
    let mut cursor = l0.cursor();
    let mut more = cursor.first();
    while more {
        lsns.extend(cursor.versions().map(whole));
        more = cursor.next();
    }
    lsns.sort_unstable();
    assert!(lsns.into_iter().eq(1..next.into_inner()));
}

#[test]
fn small_indexes_grow_beside_readers_and_writers() {
    let keys = 400;
    for round in 0..scaled(100).max(1) {
        let l0 = L0::new();
        thread::scope(|scope| {
            for writer in 0..3 {
                let l0 = &l0;
                scope.spawn(move || {
                    for number in (0..keys).filter(|number| number % 3 == writer) {
                        let lsn = round * keys + number;
                        insert_at(l0, &key_of(number), lsn, Keep::default());
                        let own = l0.get(&key_of(number), Lsn::MAX, |_| true, whole);
                        assert_eq!(own, Some(lsn));
                    }
                });
            }
        });
        assert_eq!(l0.len() as u64, keys);
        assert!((0..keys).all(|number| l0.cursor().seek(&key_of(number))));
    }
}

#[test]
fn a_reader_of_an_old_index_never_sees_what_is_written_into_the_memory_of_its_successors() {
    const KEYS: u64 = 200;
    let rounds = scaled(400).max(4);
    // Memory for two: most chunks that a successor takes were used by another index a moment ago.
    let current = Mutex::new(Arc::new(L0::with_budget(4 << 20)));
    let done = AtomicBool::new(false);
    let check = |l0: &L0| {
        let mut cursor = l0.cursor();
        let (mut more, mut lsns) = (cursor.first(), Vec::new());
        while more {
            lsns.extend(cursor.versions().map(whole));
            more = cursor.next();
        }
        let first = lsns.iter().min().map_or(0, |lsn| lsn / KEYS * KEYS);
        assert!(lsns.iter().all(|lsn| (first..first + KEYS).contains(lsn)));
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let l0 = Arc::clone(&current.lock().unwrap());
                    // Concurrently with its writer, and when it is old and its successors are written.
                    check(&l0);
                    thread::yield_now();
                    check(&l0);
                }
            });
        }
        for round in 0..rounds {
            let l0 = Arc::clone(&current.lock().unwrap());
            for number in 0..KEYS {
                let lsn = round * KEYS + number;
                insert_at(&l0, &key_of(mix(lsn) % 1000), lsn, Keep::default());
            }
            *current.lock().unwrap() = Arc::new(l0.successor());
        }
        done.store(true, Ordering::Release);
    });
}

#[test]
fn what_was_approached_is_found_and_inserted_whatever_others_do_meanwhile() {
    let keys = scaled(30_000).max(60);
    let l0 = L0::new();
    thread::scope(|scope| {
        for writer in 0..3 {
            let l0 = &l0;
            scope.spawn(move || {
                let own: Vec<_> = (0..keys).filter(|number| number % 3 == writer).collect();
                for numbers in own.chunks(7) {
                    let all: Vec<_> = numbers.iter().map(|number| key_of(*number)).collect();
                    let spots: Vec<_> = all.iter().map(|key| l0.approach(key)).collect();
                    let gets: Vec<_> = all.iter().map(|key| l0.approach(key)).collect();
                    for (number, spot) in numbers.iter().zip(spots) {
                        let lsn = Lsn(*number);
                        with_payload(lsn.0, |payload| {
                            spot.insert(lsn, payload, Keep::default());
                        });
                    }
                    for (number, get) in numbers.iter().zip(gets) {
                        assert_eq!(get.get(Lsn::MAX, |_| true, whole), Some(*number));
                    }
                }
            });
        }
    });
    assert_eq!(l0.len() as u64, keys);
}
