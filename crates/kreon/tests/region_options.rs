//! What a region has of its own: its TTL, its limits, and that they stay.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kreon::{
    Backup, Clock, Compression, Durability, ErrorKind, Options, Region, RegionOptions, Repair,
    Store, Timestamp, Ttl, Update, WriteBatch,
};

const HOUR: Duration = Duration::from_secs(3600);

/// A store on a clock that goes on when a test says so.
struct Bench {
    folder: tempfile::TempDir,
    ms: Arc<AtomicU64>,
}

impl Bench {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            ms: Arc::new(AtomicU64::new(1_700_000_000_000)),
        }
    }

    fn options(&self) -> Options {
        let ms = Arc::clone(&self.ms);
        let clock = Clock::of(move || Timestamp::of_ms(ms.load(Ordering::Relaxed)));
        let options = Store::options().memory_bytes(16 << 20).l0_bytes(256 << 10);
        options.background_inline().clock(clock)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self) -> Store {
        self.options().open(self.path("store")).unwrap()
    }

    fn wait(&self, time: Duration) {
        self.ms
            .fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }
}

fn some() -> RegionOptions {
    RegionOptions::new()
        .compression(Compression::Lz4)
        .ttl(HOUR)
        .inline_value_bytes_max(16)
        .growth_factor(4)
}

fn options_at(path: &Path, name: &str) -> RegionOptions {
    let store = Store::options().memory_bytes(16 << 20).background_inline();
    let store = store.create(false).open(path).unwrap();
    store.existing_region(name).unwrap().options()
}

#[test]
fn options_stay_with_their_region() {
    let bench = Bench::new();
    let store = bench.open();
    let plain = store.region("plain").unwrap();
    assert_eq!(plain.options(), RegionOptions::new());
    let made = store.region_with("made", &some()).unwrap();
    assert_eq!(made.options(), some());
    // One that is there keeps what it has.
    assert_eq!(
        store.region_with("plain", &some()).unwrap().options(),
        RegionOptions::new()
    );
    assert_eq!(store.region("made").unwrap().options(), some());
    let other = some().compression(Compression::None).ttl(None);
    plain.set_options(&other).unwrap();
    assert_eq!(plain.options(), other);
    let (backup, copy) = (bench.path("backup"), bench.path("copy"));
    Backup::at(&backup).make(&store).unwrap();
    drop((plain, made));
    // Without a checkpoint: the log has the making of the region.
    drop(store);
    Backup::at(&backup).restore(&copy).unwrap();
    Repair::new()
        .run(bench.path("store"), bench.path("salvaged"))
        .unwrap();
    for path in [bench.path("store"), copy, bench.path("salvaged")] {
        assert_eq!(options_at(&path, "made"), some(), "{}", path.display());
        assert_eq!(options_at(&path, "plain"), other, "{}", path.display());
    }
}

#[test]
fn options_out_of_their_range_are_refused() {
    let bench = Bench::new();
    let store = bench.open();
    let region = store.region("r").unwrap();
    for wrong in [
        RegionOptions::new().ttl(Duration::ZERO),
        RegionOptions::new().ttl(Duration::from_millis(1 << 48)),
        RegionOptions::new().inline_value_bytes_max(257),
        RegionOptions::new().inline_value_bytes_max(1 << 20),
        RegionOptions::new().growth_factor(1),
        RegionOptions::new().growth_factor(101),
        RegionOptions::new().growth_factor(1000),
    ] {
        for error in [
            store.region_with("new", &wrong).unwrap_err(),
            region.set_options(&wrong).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{wrong:?}");
        }
    }
    assert_eq!(store.region_names(), ["r"]);
    assert_eq!(region.options(), RegionOptions::new());
    store.drop_region("r").unwrap();
    let error = region.set_options(&some()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
}

fn left(region: &Region, key: &str) -> Option<Ttl> {
    region.ttl(key).unwrap()
}

#[test]
fn values_live_as_long_as_their_region_says_unless_their_write_says_something_else() {
    let bench = Bench::new();
    let store = bench.open();
    let region = store
        .region_with("r", &RegionOptions::new().ttl(HOUR))
        .unwrap();
    let hour = Some(Ttl::Left(HOUR));
    let short = Duration::from_secs(1);
    region.put("put", "v").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&region, "batch", "v");
    batch.put_with_ttl(&region, "short", "v", short);
    batch.delete(&region, "none");
    store.write(batch, Durability::Buffered).unwrap();
    let mut transaction = store.transaction();
    transaction.put(&region, "transaction", "v").unwrap();
    let within = transaction.ttl(&region, "transaction").unwrap();
    assert_eq!(within, hour);
    transaction.commit(Durability::Buffered).unwrap();
    region
        .update("updated", |_| Update::Put(b"v".to_vec()))
        .unwrap();
    region
        .update("kept", |_| Update::PutKeepingTtl(b"v".to_vec()))
        .unwrap();
    region.increment("counter", 1).unwrap();
    region.put_if_absent("absent", "v").unwrap();
    let loaded = store
        .region_with("loaded", &RegionOptions::new().ttl(HOUR))
        .unwrap();
    loaded.ingest([("a", "v"), ("b", "w")]).unwrap();
    for key in [
        "put",
        "batch",
        "transaction",
        "updated",
        "kept",
        "counter",
        "absent",
    ] {
        assert_eq!(left(&region, key), hour, "{key}");
    }
    assert_eq!(left(&loaded, "a"), hour);
    assert_eq!(left(&region, "short"), Some(Ttl::Left(short)));
    assert_eq!(left(&region, "none"), None);
    // The counter keeps the expiry that it has; what is persistent stays so.
    bench.wait(Duration::from_secs(600));
    region.increment("counter", 1).unwrap();
    assert_eq!(
        left(&region, "counter"),
        Some(Ttl::Left(HOUR - Duration::from_secs(600)))
    );
    assert!(region.persist("put").unwrap());
    region.increment("eternal", 1).unwrap();
    assert!(region.persist("eternal").unwrap());
    region.increment("eternal", 1).unwrap();
    for key in ["put", "eternal"] {
        assert_eq!(left(&region, key), Some(Ttl::Unlimited), "{key}");
    }
    bench.wait(HOUR);
    store.checkpoint().unwrap();
    let keys: Vec<_> = region
        .iter()
        .keys()
        .map(|key| key.unwrap().to_vec())
        .collect();
    assert_eq!(keys, [&b"eternal"[..], b"put"]);
    assert_eq!(loaded.iter().count(), 0);
    // From now on without.
    region.set_options(&RegionOptions::new()).unwrap();
    region.put("new", "v").unwrap();
    assert_eq!(left(&region, "new"), Some(Ttl::Unlimited));
}

/// Bytes of values in the log, and of leaves.
fn placed(inline_value_bytes_max: Option<usize>) -> u64 {
    let bench = Bench::new();
    let store = bench.open();
    let options = RegionOptions::new().inline_value_bytes_max(inline_value_bytes_max);
    let region = store.region_with("r", &options).unwrap();
    for key in 0..5000u32 {
        region.put(key.to_be_bytes(), [7; 60]).unwrap();
    }
    store.checkpoint().unwrap();
    store
        .stats()
        .levels
        .iter()
        .map(|level| level.leaf_pages)
        .sum()
}

#[test]
fn the_inline_limit_of_a_region_wins_over_that_of_the_store() {
    let (of_store, none, all) = (placed(None), placed(Some(0)), placed(Some(60)));
    assert_eq!(of_store, all);
    assert!(
        none * 2 < all,
        "{none} leaves without values, {all} with them"
    );
}

#[test]
fn a_replay_places_values_as_their_region_says() {
    let bench = Bench::new();
    let leaves = |limit: usize| {
        let name = format!("limit {limit}");
        let store = bench.options().open(bench.path(&name)).unwrap();
        let options = RegionOptions::new().inline_value_bytes_max(limit);
        let region = store.region_with("r", &options).unwrap();
        // A replay hands on values up to the limits of regions in the catalogue.
        store.checkpoint().unwrap();
        for key in 0..1000u32 {
            region.put(key.to_be_bytes(), [7; 200]).unwrap();
        }
        store.sync().unwrap();
        drop((region, store));
        let store = bench.options().open(bench.path(&name)).unwrap();
        store.checkpoint().unwrap();
        let levels = store.stats().levels;
        levels.iter().map(|level| level.leaf_pages).sum::<u64>()
    };
    let (none, all) = (leaves(0), leaves(256));
    assert!(
        none * 5 < all,
        "{none} leaves without values, {all} with them"
    );
}

#[test]
fn a_region_has_levels_by_its_own_growth_factor() {
    let levels = |growth_factor: u32| {
        let bench = Bench::new();
        let store = bench
            .options()
            .growth_factor(100)
            .open(bench.path("store"))
            .unwrap();
        let options = RegionOptions::new().growth_factor(growth_factor);
        let region = store.region_with("r", &options).unwrap();
        let mut key = 1u64;
        for _ in 0..30_000 {
            key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
            region.put(key.to_be_bytes(), [1; 40]).unwrap();
        }
        store.checkpoint().unwrap();
        store.stats().levels.len()
    };
    let (few, many) = (levels(100), levels(2));
    assert!(few < many, "{few} levels by 100, {many} by 2");
}
