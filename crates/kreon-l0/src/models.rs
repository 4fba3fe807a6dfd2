//! Models of the parts of an L0: every interleaving of a few threads. `cargo xtask interleavings loom`.

use std::sync::Arc;

use kreon_base::sync::{AtomicU32, Ordering::Relaxed, explore};
use kreon_base::{Attributes, LogOffset, Lsn, Payload};
use loom::thread;

use crate::latch::Latch;
use crate::{Keep, L0};

/// Two words under a latch: equal while nobody holds it.
struct Pair {
    latch: Latch,
    words: [AtomicU32; 2],
    /// Threads that hold the latch now.
    inside: AtomicU32,
}

impl Pair {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            latch: Latch::new(),
            words: [0, 0].map(AtomicU32::new),
            inside: AtomicU32::new(0),
        })
    }

    /// Adds one to both words, if nothing changed since `stamp` was read.
    fn try_add(&self) -> bool {
        let stamp = self.latch.read();
        let before = self.words[0].load(Relaxed);
        let Some(_held) = self.latch.hold(stamp) else {
            return false;
        };
        assert_eq!(self.inside.fetch_add(1, Relaxed), 0, "one holder at a time");
        self.words[0].store(before + 1, Relaxed);
        self.words[1].store(before + 1, Relaxed);
        self.inside.fetch_sub(1, Relaxed);
        true
    }
}

#[test]
fn model_a_validated_read_is_of_one_moment() {
    explore("latch: a writer, a reader", Some(4), || {
        let pair = Pair::new();
        let writer = beside(&pair, |pair| assert!(pair.try_add()));
        let reader = beside(&pair, |pair| {
            let stamp = pair.latch.read();
            let seen = [1, 0].map(|at| pair.words[at].load(Relaxed));
            if pair.latch.validate(stamp) {
                assert_eq!(seen[0], seen[1]);
            }
        });
        writer.join().unwrap();
        reader.join().unwrap();
        assert!(pair.latch.validate(pair.latch.read()));
    });
}

#[test]
fn model_a_failed_upgrade_neither_takes_nor_releases_the_latch() {
    explore("latch: upgrades, each tried again at once", Some(4), || {
        let pair = Pair::new();
        let tries = |pair: &Pair| (0..2).filter(|_| pair.try_add()).count() as u32;
        let threads = [beside(&pair, tries), beside(&pair, tries)];
        let done = threads.map(|thread| thread.join().unwrap());
        // No addition was lost, and the latch is free.
        assert_eq!(pair.words[0].load(Relaxed), done[0] + done[1]);
        assert!(pair.try_add());
    });
}

/// Runs work on shared data in a thread. The main thread of a model only starts and joins threads.
fn beside<T: 'static, R: 'static>(
    shared: &Arc<T>,
    work: impl FnOnce(&T) -> R + 'static,
) -> thread::JoinHandle<R> {
    let shared = Arc::clone(shared);
    thread::spawn(move || work(&shared))
}

/// A payload derived from the LSN.
fn logged(lsn: u64) -> Payload<'static> {
    Payload::Logged {
        offset: LogOffset(lsn << 20),
        value_bytes: lsn as u32,
        attributes: Attributes::NONE,
    }
}

/// The LSNs of a key's versions, newest first; checks that each version is consistent.
fn versions(l0: &L0, key: &[u8]) -> Vec<u64> {
    let mut cursor = l0.cursor();
    if !cursor.seek(key) || cursor.key() != key {
        return Vec::new();
    }
    let lsns: Vec<u64> = cursor.versions().map(|version| whole(&version)).collect();
    assert!(lsns.windows(2).all(|pair| pair[0] > pair[1]), "{lsns:?}");
    lsns
}

fn whole(version: &crate::Version<'_>) -> u64 {
    let lsn = version.lsn.0;
    match version.payload {
        Payload::Inline { value, .. } => assert_eq!(value, lsn.to_le_bytes()),
        payload => assert_eq!(payload, logged(lsn)),
    }
    lsn
}

fn newest(l0: &L0, key: &[u8]) -> Option<u64> {
    l0.get(key, Lsn::MAX, |_| true, |version| whole(&version))
}

fn put(l0: &L0, key: &[u8], lsn: u64, keep: Keep) {
    l0.insert(key, Lsn(lsn), logged(lsn), keep);
}

fn put_inline(l0: &L0, key: &[u8], lsn: u64, keep: Keep) {
    let value = lsn.to_le_bytes();
    l0.insert(
        key,
        Lsn(lsn),
        Payload::Inline {
            value: &value,
            attributes: Attributes::NONE,
        },
        keep,
    );
}

fn l0_with(keys: &[&[u8]]) -> Arc<L0> {
    let l0 = L0::new();
    for (lsn, key) in (1..).zip(keys) {
        put(&l0, key, lsn, Keep::default());
    }
    Arc::new(l0)
}

/// Runs all works concurrently on `l0`.
fn together<const N: usize>(l0: &Arc<L0>, works: [fn(&L0); N]) {
    for thread in works.map(|work| beside(l0, work)) {
        thread.join().unwrap();
    }
}

#[test]
fn model_two_inserts_of_a_new_key_leave_one_record_with_the_newest() {
    explore("L0: the same new key twice", Some(3), || {
        let l0 = l0_with(&[]);
        let put_old: fn(&L0) = |l0| {
            put(l0, b"k", 10, Keep::default());
            assert!([Some(10), Some(20)].contains(&newest(l0, b"k")));
        };
        together(&l0, [put_old, |l0| put(l0, b"k", 20, Keep::default())]);
        assert_eq!((l0.len(), versions(&l0, b"k")), (1, vec![20]));
    });
}

#[test]
fn model_a_get_beside_an_insert_finds_the_key_whole_or_not_at_all() {
    explore("L0: a new key, a get of it", Some(4), || {
        let l0 = l0_with(&[]);
        let get: fn(&L0) = |l0| assert!([None, Some(20)].contains(&newest(l0, b"k")));
        together(&l0, [get, |l0| put(l0, b"k", 20, Keep::default())]);
    });
}

#[test]
fn model_inserts_of_different_keys_both_stay() {
    explore("L0: two new keys", Some(3), || {
        let l0 = l0_with(&[b"b"]);
        let put_a: fn(&L0) = |l0| put(l0, b"a", 20, Keep::default());
        together(&l0, [put_a, |l0| put(l0, b"c", 30, Keep::default())]);
        let found = [&b"a"[..], b"b", b"c"].map(|key| newest(&l0, key));
        assert_eq!(found, [Some(20), Some(1), Some(30)]);
    });
}

#[test]
fn model_a_cursor_beside_an_insert_yields_keys_in_order() {
    explore("L0: a new key, a cursor", Some(3), || {
        let l0 = l0_with(&[b"b"]);
        let walk: fn(&L0) = |l0| {
            let mut cursor = l0.cursor();
            let mut keys = Vec::new();
            let mut on = cursor.first();
            while on {
                keys.push(cursor.key());
                on = cursor.next();
            }
            let expected: [&[&[u8]]; 2] = [&[b"b"], &[b"a", b"b"]];
            assert!(expected.contains(&keys.as_slice()), "{keys:?}");
        };
        together(&l0, [walk, |l0| put(l0, b"a", 20, Keep::default())]);
    });
}

#[test]
fn model_a_split_hides_no_key_from_a_get() {
    explore("L0: an insert that splits the root, a get", Some(3), || {
        let l0 = l0_with(&[b"a", b"b", b"c", b"d"]);
        let get: fn(&L0) = |l0| assert_eq!(newest(l0, b"d"), Some(4));
        together(&l0, [get, |l0| put(l0, b"bb", 20, Keep::default())]);
        let keys = [&b"a"[..], b"b", b"bb", b"c", b"d"];
        assert!(keys.iter().all(|key| newest(&l0, key).is_some()));
    });
}

#[test]
fn model_two_inserts_into_a_full_leaf_lose_nothing() {
    explore("L0: two inserts that find the leaf full", Some(3), || {
        let l0 = l0_with(&[b"a", b"b", b"c", b"d"]);
        let put_aa: fn(&L0) = |l0| put(l0, b"aa", 20, Keep::default());
        together(&l0, [put_aa, |l0| put(l0, b"cc", 30, Keep::default())]);
        let keys = [&b"a"[..], b"aa", b"b", b"c", b"cc", b"d"];
        assert!(keys.iter().all(|key| newest(&l0, key).is_some()));
        assert_eq!(l0.len(), 6);
    });
}

#[test]
fn model_what_was_approached_is_reached_whatever_is_split_meanwhile() {
    explore(
        "L0: an approached key, a split of its leaf",
        Some(3),
        || {
            // Two leaves, the right one full: the next insert there splits it.
            let l0 = l0_with(&[b"a", b"b", b"c", b"d", b"e", b"f"]);
            let near: fn(&L0) = |l0| {
                let (put, get) = (l0.approach(b"ee"), l0.approach(b"e"));
                put.insert(Lsn(20), logged(20), Keep::default());
                let found = get.get(Lsn::MAX, |_| true, |version| whole(&version));
                assert_eq!(found, Some(5));
            };
            together(&l0, [near, |l0| put(l0, b"cc", 30, Keep::default())]);
            let keys = [&b"a"[..], b"b", b"c", b"cc", b"d", b"e", b"ee", b"f"];
            assert!(keys.iter().all(|key| newest(&l0, key).is_some()));
            assert_eq!(l0.len(), 8);
        },
    );
}

#[test]
fn model_a_reader_finds_what_it_may_see_while_units_replace_each_other() {
    explore("versions: units on a key, a get", Some(4), || {
        let l0 = l0_with(&[b"k"]);
        put(&l0, b"k", 10, PENDING);
        // The unit of 10 became visible during this get, for which it is pending.
        let get: fn(&L0) = |l0| {
            let found = l0.get(b"k", Lsn::MAX, |lsn| lsn.0 < 10, |version| whole(&version));
            let is_replaced = newest_but_pending(l0);
            assert!(found == Some(1) || is_replaced, "{found:?}");
        };
        let replace: fn(&L0) = |l0| {
            let keep = Keep {
                visible_before: Lsn(11),
                ..PENDING
            };
            put(l0, b"k", 20, keep);
        };
        together(&l0, [get, replace]);
        assert_eq!(versions(&l0, b"k"), [20, 10]);
    });
}

/// Whether the key has a version of LSN 20.
fn newest_but_pending(l0: &L0) -> bool {
    newest(l0, b"k") == Some(20)
}

/// Snapshots below 15, pending units.
const OLD_KEPT: Keep = Keep {
    snapshot_max: Some(Lsn(15)),
    unit_pending: false,
    visible_before: Lsn(0),
};
const PENDING: Keep = Keep {
    snapshot_max: None,
    unit_pending: true,
    visible_before: Lsn(0),
};

#[test]
fn model_a_reader_of_a_record_never_mixes_two_versions() {
    explore(
        "versions: a replacement in place, a reader",
        Some(4),
        || {
            let l0 = l0_with(&[b"k"]);
            let get: fn(&L0) = |l0| assert!([Some(1), Some(20)].contains(&newest(l0, b"k")));
            together(&l0, [get, |l0| put(l0, b"k", 20, Keep::default())]);
        },
    );
}

#[test]
fn model_two_replacements_leave_the_newer() {
    explore("versions: two replacements in place", Some(3), || {
        let l0 = l0_with(&[b"k"]);
        let put_20: fn(&L0) = |l0| put(l0, b"k", 20, Keep::default());
        together(&l0, [put_20, |l0| put(l0, b"k", 30, Keep::default())]);
        assert_eq!(versions(&l0, b"k"), [30]);
    });
}

#[test]
fn model_a_walker_of_versions_goes_on_while_they_are_trimmed() {
    explore(
        "versions: inline values trimmed under a walk",
        Some(3),
        || {
            let l0 = l0_with(&[b"k"]);
            put_inline(&l0, b"k", 10, OLD_KEPT);
            put_inline(&l0, b"k", 20, OLD_KEPT);
            assert_eq!(versions(&l0, b"k"), [20, 10, 1]);
            let walk: fn(&L0) = |l0| {
                let seen = versions(l0, b"k");
                assert!(
                    [&[20, 10, 1][..], &[30]].contains(&seen.as_slice()),
                    "{seen:?}"
                );
            };
            // Without a snapshot all versions beneath are dropped.
            together(&l0, [walk, |l0| put_inline(l0, b"k", 30, Keep::default())]);
            assert_eq!(versions(&l0, b"k"), [30]);
        },
    );
}

#[test]
fn model_versions_that_come_in_any_order_are_kept_in_order() {
    explore(
        "versions: two writers out of order, all kept",
        Some(3),
        || {
            let l0 = l0_with(&[]);
            put(&l0, b"k", 10, PENDING);
            let put_late: fn(&L0) = |l0| put(l0, b"k", 5, PENDING);
            together(&l0, [put_late, |l0| put(l0, b"k", 20, PENDING)]);
            assert_eq!(versions(&l0, b"k"), [20, 10, 5]);
        },
    );
}

#[test]
fn model_a_version_put_beneath_shows_whole_to_a_walker() {
    explore("versions: one put beneath, a walk", Some(3), || {
        let l0 = l0_with(&[]);
        put(&l0, b"k", 10, PENDING);
        let walk: fn(&L0) = |l0| {
            let seen = versions(l0, b"k");
            assert!([&[10, 5][..], &[10]].contains(&seen.as_slice()), "{seen:?}");
        };
        together(&l0, [walk, |l0| put_inline(l0, b"k", 5, PENDING)]);
        assert_eq!(versions(&l0, b"k"), [10, 5]);
    });
}
