//! Keys that expire: what each call says of them, and what keeps their expiry.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use kreon::{
    Backup, Clock, Durability, ErrorKind, Expiry, Options, Region, Repair, Store, Timestamp, Ttl,
    Update, WriteBatch,
};

const TTL: Duration = Duration::from_secs(10);

/// A clock that goes on when a test says so.
#[derive(Clone)]
struct Hands(Arc<AtomicU64>);

impl Hands {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_700_000_000_000)))
    }

    fn options(&self) -> Options {
        let ms = Arc::clone(&self.0);
        let clock = Clock::of(move || Timestamp::of_ms(ms.load(Ordering::Relaxed)));
        let options = Store::options().memory_bytes(16 << 20).l0_bytes(256 << 10);
        options.background_inline().clock(clock)
    }

    fn wait(&self, time: Duration) {
        let ms = time.as_millis() as u64;
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

struct Bench {
    folder: tempfile::TempDir,
    hands: Hands,
    store: Store,
    region: Region,
}

impl Bench {
    fn new() -> Self {
        let (folder, hands) = (tempfile::tempdir().unwrap(), Hands::new());
        let store = hands.options().open(folder.path().join("store")).unwrap();
        let region = store.region("r").unwrap();
        Self {
            folder,
            hands,
            store,
            region,
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn left(&self, key: &str) -> Option<Ttl> {
        self.region.ttl(key).unwrap()
    }
}

fn left(seconds: u64) -> Option<Ttl> {
    Some(Ttl::Left(Duration::from_secs(seconds)))
}

#[test]
fn ttl_tells_no_key_from_no_expiry_from_what_is_left() {
    let bench = Bench::new();
    let region = &bench.region;
    assert_eq!(bench.left("k"), None);
    region.put("k", "v").unwrap();
    assert_eq!(bench.left("k"), Some(Ttl::Unlimited));
    region.put_with_ttl("k", "v", TTL).unwrap();
    assert_eq!(bench.left("k"), left(10));
    let before = bench.store.snapshot();
    bench.hands.wait(Duration::from_secs(9));
    assert_eq!(bench.left("k"), left(1));
    bench.hands.wait(Duration::from_secs(1));
    assert_eq!((bench.left("k"), region.get("k").unwrap()), (None, None));
    assert_eq!(before.ttl(region, "k").unwrap(), left(10));
    assert_eq!(before.get(region, "k").unwrap().as_deref(), Some(&b"v"[..]));
    let error = region.put_with_ttl("k", "v", Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    region.put_with_ttl("k", "v", Duration::MAX).unwrap();
    bench.hands.wait(Duration::from_secs(1 << 36));
    assert!(region.contains("k").unwrap());
}

#[test]
fn a_put_removes_the_expiry_and_a_counter_keeps_it() {
    let bench = Bench::new();
    let region = &bench.region;
    let fresh = |key: &str, value: &[u8]| region.put_with_ttl(key, value, TTL).unwrap();
    fresh("put", b"v");
    region.put("put", "w").unwrap();
    assert_eq!(bench.left("put"), Some(Ttl::Unlimited));
    fresh("swapped", b"v");
    let swapped = region.compare_and_swap("swapped", Some(b"v"), Some(b"w"));
    assert!(swapped.unwrap());
    assert_eq!(bench.left("swapped"), Some(Ttl::Unlimited));
    fresh("counter", &1_i64.to_le_bytes());
    assert_eq!(region.increment("counter", 1).unwrap(), 2);
    assert_eq!(bench.left("counter"), left(10));
    bench.hands.wait(TTL);
    assert_eq!(region.increment("counter", 1).unwrap(), 1, "it begins anew");
    assert_eq!(bench.left("counter"), Some(Ttl::Unlimited));
    assert!(region.put_if_absent("swapped again", "v").unwrap());
    fresh("absent", b"v");
    bench.hands.wait(TTL);
    assert!(region.put_if_absent("absent", "w").unwrap());
    let seconds = Duration::from_secs(3);
    region
        .update("absent", |old| {
            assert_eq!(old, Some(&b"w"[..]));
            Update::PutWithTtl(b"x".to_vec(), seconds)
        })
        .unwrap();
    assert_eq!(bench.left("absent"), left(3));
}

#[test]
fn persist_and_expire_say_whether_they_did_anything() {
    let bench = Bench::new();
    let region = &bench.region;
    assert!(!region.persist("k").unwrap() && !region.expire("k", TTL).unwrap());
    region.put("k", "v").unwrap();
    assert!(!region.persist("k").unwrap());
    assert!(region.expire("k", TTL).unwrap());
    assert_eq!(bench.left("k"), left(10));
    assert!(region.persist("k").unwrap());
    bench.hands.wait(TTL);
    assert_eq!(bench.left("k"), Some(Ttl::Unlimited));
    assert_eq!(region.get("k").unwrap().as_deref(), Some(&b"v"[..]));
    region.put_with_ttl("k", "v", TTL).unwrap();
    bench.hands.wait(TTL);
    assert!(!region.persist("k").unwrap(), "it has expired");
}

#[test]
fn a_batch_and_a_transaction_put_keys_that_expire() {
    let bench = Bench::new();
    let region = &bench.region;
    let mut batch = WriteBatch::new();
    batch.put_with_ttl(region, "batch", vec![1; 1000], TTL);
    batch.put(region, "stays", "v");
    // The time runs from the write on.
    bench.hands.wait(Duration::from_secs(5));
    bench.store.write(batch, Durability::Buffered).unwrap();
    assert_eq!(
        (bench.left("batch"), bench.left("stays")),
        (left(10), Some(Ttl::Unlimited))
    );
    let mut none = WriteBatch::new();
    none.put_with_ttl(region, "never", "v", Duration::ZERO);
    assert!(bench.store.write(none, Durability::Buffered).is_err());
    let mut transaction = bench.store.transaction();
    transaction.put_with_ttl(region, "t", "v", TTL).unwrap();
    assert_eq!(transaction.ttl(region, "t").unwrap(), left(10));
    assert_eq!(transaction.ttl(region, "batch").unwrap(), left(10));
    assert_eq!(
        transaction.ttl(region, "stays").unwrap(),
        Some(Ttl::Unlimited)
    );
    bench.hands.wait(Duration::from_secs(4));
    assert_eq!(
        transaction.ttl(region, "batch").unwrap(),
        left(10),
        "as it began"
    );
    transaction.commit(Durability::Buffered).unwrap();
    assert_eq!((bench.left("t"), bench.left("batch")), (left(6), left(6)));
    bench.hands.wait(TTL);
    let keys: Vec<_> = region.iter().keys().map(Result::unwrap).collect();
    assert_eq!(keys, [b"stays"]);
}

/// Puts one key of each kind: in a leaf, in the log, with a long key; some in a tree, some in the log alone.
#[test]
fn a_scan_tells_when_values_end_and_what_is_put_until_then_ends_with_them() {
    let bench = Bench::new();
    let (region, copy) = (&bench.region, bench.store.region("copy").unwrap());
    let long = "in the log".repeat(50);
    // In memory and in leaves, inline and in the log.
    for key in ["a", "b", "c", "d"] {
        let value = if key < "c" { "inline" } else { &long };
        match key {
            "a" | "c" => region.put_with_ttl(key, value, TTL).unwrap(),
            _ => region.put(key, value).unwrap(),
        }
    }
    for round in 0..2 {
        let mut scan = region.iter();
        while let Some(expiry) = scan.peek_expiry().unwrap() {
            assert_eq!(scan.peek_expiry().unwrap(), Some(expiry));
            let (key, value) = scan.next().unwrap().unwrap();
            match expiry {
                Expiry::At(moment) => copy.put_until(&key, &value, moment).unwrap(),
                Expiry::Never => copy.put(&key, &value).unwrap(),
            }
            assert_eq!(region.ttl(&key).unwrap(), copy.ttl(&key).unwrap());
            let ends = matches!(&key[..], b"a" | b"c");
            assert_eq!(matches!(expiry, Expiry::At(_)), ends);
        }
        assert_eq!(copy.iter().count(), 4, "round {round}");
        let mut back = region.iter();
        assert_eq!(back.peek_back_expiry().unwrap(), Some(Expiry::Never));
        back.next_back();
        let Some(Expiry::At(_)) = back.peek_back_expiry().unwrap() else {
            panic!("c ends");
        };
        bench.store.checkpoint().unwrap();
    }
    bench.hands.wait(TTL);
    assert_eq!((region.iter().count(), copy.iter().count()), (2, 2));
}

#[test]
fn a_moment_is_taken_to_the_millisecond_above_and_a_passed_one_leaves_no_value() {
    let bench = Bench::new();
    let region = &bench.region;
    let now = UNIX_EPOCH + Duration::from_millis(1_700_000_000_000);
    let moment = now + Duration::from_micros(1500);
    region.put_until("k", "v", moment).unwrap();
    assert_eq!(bench.left("k"), Some(Ttl::Left(Duration::from_millis(2))));
    for passed in [now, UNIX_EPOCH, UNIX_EPOCH - Duration::from_secs(1)] {
        let mut batch = WriteBatch::new();
        batch.put_until(region, "k", "gone", passed);
        batch.put_until(region, "far", "v", passed + Duration::from_secs(1 << 40));
        bench.store.write(batch, Durability::Buffered).unwrap();
        assert_eq!(region.get("k").unwrap(), None);
        assert!(region.contains("far").unwrap());
        region.put("k", "back").unwrap();
    }
    let last = UNIX_EPOCH + Duration::from_millis((1 << 48) - 1);
    let scan = |key: &str| region.range(key..).peek_expiry().unwrap();
    assert_eq!(scan("far"), Some(Expiry::At(last)));
    assert_eq!(scan("zzz"), None);
}

fn fill(bench: &Bench) {
    for place in ["tree", "log"] {
        let long = format!("{place} {}", "l".repeat(1500));
        for (key, value) in [("inline", 10), ("logged", 1000), (&long, 5)] {
            let key = format!("{place} {key}");
            let value = vec![7; value];
            bench.region.put_with_ttl(key, value, TTL).unwrap();
        }
        if place == "tree" {
            bench.store.checkpoint().unwrap();
        }
    }
    bench.region.put("stays", "v").unwrap();
    bench.store.sync().unwrap();
}

/// The store there has all keys for as long as they live, and not longer.
fn holds(hands: &Hands, path: &Path) {
    let store = hands.options().open(path).unwrap();
    let region = store.existing_region("r").unwrap();
    assert_eq!(region.iter().count(), 7);
    let ends = |pair: kreon::Result<_>| {
        let (key, _): (kreon::Value, kreon::Value) = pair.unwrap();
        region.ttl(&key).unwrap() != Some(Ttl::Unlimited)
    };
    assert_eq!(
        region
            .iter()
            .filter_map(|pair| Some(ends(pair)).filter(|ends| *ends))
            .count(),
        6
    );
    hands.wait(TTL);
    assert_eq!(region.iter().count(), 1);
    assert_eq!(store.verify().unwrap().problems, Vec::<String>::new());
    store.compact().unwrap();
    let left = store.stats().log_live_bytes;
    assert_eq!(left, 0, "the space of all that expired is free");
    store.close().unwrap();
}

#[test]
fn a_reopened_store_a_repaired_one_and_a_restored_one_keep_the_expiry() {
    for way in ["reopened", "repaired", "restored"] {
        let bench = Bench::new();
        fill(&bench);
        let (from, to) = (bench.path("store"), bench.path(way));
        let shelf = bench.path("shelf");
        if way == "restored" {
            Backup::at(&shelf).make(&bench.store).unwrap();
        }
        let Bench {
            folder,
            hands,
            store,
            region,
        } = bench;
        drop(region);
        store.close().unwrap();
        drop(store);
        match way {
            "reopened" => std::fs::rename(&from, &to).unwrap(),
            "repaired" => {
                let report = Repair::new().target(hands.options()).run(&from, &to);
                assert!(report.unwrap().is_complete());
            }
            _ => drop(Backup::at(&shelf).restore(&to).unwrap()),
        }
        holds(&hands, &to);
        drop(folder);
    }
}

#[test]
fn a_clock_that_is_set_back_while_the_store_is_open_brings_no_key_back() {
    let bench = Bench::new();
    bench.region.put_with_ttl("k", "v", TTL).unwrap();
    bench.hands.wait(TTL);
    assert_eq!(bench.left("k"), None);
    bench
        .hands
        .0
        .fetch_sub(TTL.as_millis() as u64, Ordering::Relaxed);
    assert_eq!(bench.left("k"), None);
}
