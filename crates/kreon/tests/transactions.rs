//! Transactions: what they see, which changes by others are conflicts, and which are not.

use kreon::{
    Durability, ErrorKind, Isolation, Region, Result, Store, Transaction, TransactionOptions,
};

use Durability::Buffered;

struct Bench {
    _folder: tempfile::TempDir,
    store: Store,
    region: Region,
}

impl Bench {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Store::options().memory_bytes(16 << 20).l0_bytes(64 << 10);
        let store = options.open(folder.path().join("store")).unwrap();
        let region = store.region("r").unwrap();
        Self {
            _folder: folder,
            store,
            region,
        }
    }

    fn with(pairs: &[(&str, &str)]) -> Self {
        let bench = Self::open();
        for (key, value) in pairs {
            bench.region.put(key, value).unwrap();
        }
        bench
    }

    fn begin(&self, isolation: Isolation) -> Transaction {
        self.store
            .transaction_with(TransactionOptions::default().isolation(isolation))
    }

    fn get(&self, key: &str) -> Option<String> {
        let value = self.region.get(key).unwrap()?;
        Some(String::from_utf8(value.into()).unwrap())
    }
}

const BOTH: [Isolation; 2] = [Isolation::Snapshot, Isolation::Serializable];

fn read(transaction: &mut Transaction, region: &Region, key: &str) -> Option<String> {
    let value = transaction.get(region, key).unwrap()?;
    Some(String::from_utf8(value.into()).unwrap())
}

fn is_conflict(outcome: Result<()>) -> bool {
    match outcome {
        Ok(()) => false,
        Err(error) if error.kind() == ErrorKind::Conflict => true,
        Err(error) => panic!("{error}"),
    }
}

fn keys(
    transaction: &mut Transaction,
    region: &Region,
    range: std::ops::RangeFrom<&str>,
) -> String {
    let forward: Vec<_> = transaction
        .range(region, range.clone())
        .unwrap()
        .map(|pair| pair.unwrap())
        .collect();
    let mut backward: Vec<_> = transaction
        .range(region, range.clone())
        .unwrap()
        .rev()
        .map(|pair| pair.unwrap())
        .collect();
    backward.reverse();
    assert_eq!(forward, backward);
    let mut both = (Vec::new(), Vec::new());
    let mut scan = transaction.range(region, range).unwrap();
    while let Some(pair) = scan.next() {
        both.0.push(pair.unwrap());
        both.1.extend(scan.next_back().map(|pair| pair.unwrap()));
    }
    both.1.reverse();
    assert_eq!([both.0, both.1].concat(), forward);
    let shown = forward
        .iter()
        .map(|(key, value)| format!("{}={}", key.escape_ascii(), value.escape_ascii()));
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_lost_update_is_a_conflict() {
    for isolation in BOTH {
        let bench = Bench::with(&[("n", "1")]);
        let mut transaction = bench.begin(isolation);
        assert_eq!(read(&mut transaction, &bench.region, "n").unwrap(), "1");
        transaction.put(&bench.region, "n", "2").unwrap();
        bench.region.put("n", "5").unwrap();
        assert!(is_conflict(transaction.commit(Buffered)));
        assert_eq!(bench.get("n").unwrap(), "5");
    }
}

#[test]
fn the_first_of_two_transactions_that_write_a_key_wins() {
    for isolation in BOTH {
        let bench = Bench::open();
        let (mut first, mut second) = (bench.begin(isolation), bench.begin(isolation));
        first.put(&bench.region, "k", "1").unwrap();
        second.put(&bench.region, "k", "2").unwrap();
        second.put(&bench.region, "other", "2").unwrap();
        first.commit(Durability::Sync).unwrap();
        assert!(is_conflict(second.commit(Buffered)));
        assert_eq!(
            (bench.get("k").unwrap(), bench.get("other")),
            ("1".into(), None)
        );
    }
}

#[test]
fn write_skew_is_a_conflict_of_serializable_transactions_only() {
    for (isolation, expected) in [
        (Isolation::Snapshot, false),
        (Isolation::Serializable, true),
    ] {
        let bench = Bench::with(&[("x", "1"), ("y", "1")]);
        let (mut first, mut second) = (bench.begin(isolation), bench.begin(isolation));
        read(&mut first, &bench.region, "x");
        read(&mut second, &bench.region, "y");
        first.put(&bench.region, "y", "0").unwrap();
        second.put(&bench.region, "x", "0").unwrap();
        first.commit(Buffered).unwrap();
        assert_eq!(is_conflict(second.commit(Buffered)), expected);
    }
}

#[test]
fn get_for_update_prevents_write_skew_under_snapshot_isolation() {
    let bench = Bench::with(&[("x", "1"), ("y", "1")]);
    let (mut first, mut second) = (
        bench.begin(Isolation::Snapshot),
        bench.begin(Isolation::Snapshot),
    );
    first.get_for_update(&bench.region, "x").unwrap();
    second.get_for_update(&bench.region, "y").unwrap();
    first.put(&bench.region, "y", "0").unwrap();
    second.put(&bench.region, "x", "0").unwrap();
    first.commit(Buffered).unwrap();
    assert!(is_conflict(second.commit(Buffered)));
}

#[test]
fn a_phantom_is_a_conflict_of_serializable_transactions_only() {
    for (isolation, expected) in [
        (Isolation::Snapshot, false),
        (Isolation::Serializable, true),
    ] {
        let bench = Bench::with(&[("a1", ""), ("b1", "")]);
        let mut transaction = bench.begin(isolation);
        assert_eq!(transaction.prefix(&bench.region, "a").unwrap().count(), 1);
        transaction.put(&bench.region, "count", "1").unwrap();
        bench.region.put("a2", "").unwrap();
        assert_eq!(is_conflict(transaction.commit(Buffered)), expected);
    }
}

#[test]
fn a_deleted_range_over_a_read_range_is_a_conflict() {
    let bench = Bench::with(&[("a1", ""), ("b1", "")]);
    let mut transaction = bench.store.transaction();
    assert_eq!(transaction.prefix(&bench.region, "b").unwrap().count(), 1);
    transaction.put(&bench.region, "count", "1").unwrap();
    bench.region.delete_range("a".."b11").unwrap();
    assert!(is_conflict(transaction.commit(Buffered)));
}

#[test]
fn a_change_behind_what_a_scan_has_passed_is_no_conflict() {
    for (changed, expected) in [("b", true), ("aa", true), ("c", false), ("0", false)] {
        let bench = Bench::with(&[("a", ""), ("b", ""), ("c", "")]);
        let mut transaction = bench.store.transaction();
        let taken = transaction.range(&bench.region, "a"..).unwrap().take(2);
        assert_eq!(taken.count(), 2);
        transaction.put(&bench.region, "z", "").unwrap();
        bench.region.put(changed, "new").unwrap();
        assert_eq!(
            is_conflict(transaction.commit(Buffered)),
            expected,
            "{changed}"
        );
    }
    for (changed, expected) in [("c", true), ("a", false)] {
        let bench = Bench::with(&[("a", ""), ("b", ""), ("c", "")]);
        let mut transaction = bench.store.transaction();
        assert!(
            transaction
                .range(&bench.region, "a"..)
                .unwrap()
                .next_back()
                .is_some()
        );
        transaction.put(&bench.region, "0", "").unwrap();
        bench.region.put(changed, "new").unwrap();
        assert_eq!(
            is_conflict(transaction.commit(Buffered)),
            expected,
            "{changed}"
        );
    }
}

#[test]
fn plain_puts_batches_and_deleted_ranges_conflict_with_written_keys() {
    type Change = fn(&Bench);
    let changes: [Change; 4] = [
        |bench| bench.region.put("k", "x").unwrap(),
        |bench| bench.region.delete("k").unwrap(),
        |bench| bench.region.delete_prefix("k").unwrap(),
        |bench| {
            let mut batch = kreon::WriteBatch::new();
            batch.put(&bench.region, "j", "x");
            batch.put(&bench.region, "k", "x");
            bench.store.write(batch, Buffered).unwrap();
        },
    ];
    for (change, is_spilled) in changes
        .iter()
        .flat_map(|change| [(change, false), (change, true)])
    {
        let bench = Bench::with(&[("k", "old")]);
        bench.store.checkpoint().unwrap();
        let mut transaction = bench.begin(Isolation::Snapshot);
        transaction.put(&bench.region, "k", "mine").unwrap();
        change(&bench);
        if is_spilled {
            bench.store.checkpoint().unwrap();
        }
        assert!(is_conflict(transaction.commit(Buffered)));
    }
}

#[test]
fn a_load_conflicts_with_what_was_read_before_it() {
    for is_range in [false, true] {
        let bench = Bench::with(&[("a", "old")]);
        let begin = |bench: &Bench| {
            let mut transaction = bench.store.transaction();
            match is_range {
                true => assert_eq!(transaction.prefix(&bench.region, "k").unwrap().count(), 0),
                false => assert!(transaction.get(&bench.region, "k").unwrap().is_none()),
            }
            transaction.put(&bench.region, "z", "").unwrap();
            transaction
        };
        let early = begin(&bench);
        bench.region.ingest([("k", "loaded")]).unwrap();
        assert!(is_conflict(early.commit(Buffered)));
        let mut late = bench.store.transaction();
        assert_eq!(read(&mut late, &bench.region, "k").unwrap(), "loaded");
        late.put(&bench.region, "k", "mine").unwrap();
        late.commit(Buffered).unwrap();
    }
}

#[test]
fn own_writes_are_seen_by_gets_and_by_scans_in_both_directions() {
    let bench = Bench::with(&[("a", "1"), ("c", "3"), ("e", "5"), ("g", "7")]);
    let region = &bench.region;
    let mut t = bench.store.transaction();
    t.put(region, "b", "own").unwrap();
    t.put(region, "c", "own").unwrap();
    t.delete(region, "e").unwrap();
    t.put(region, "h", "own").unwrap();
    assert_eq!(read(&mut t, region, "b").unwrap(), "own");
    assert_eq!(read(&mut t, region, "e"), None);
    assert_eq!(keys(&mut t, region, ""..), "a=1 b=own c=own g=7 h=own");
    assert_eq!(keys(&mut t, region, "c"..), "c=own g=7 h=own");
}

#[test]
fn savepoints_bring_back_what_was_written_before_them() {
    let bench = Bench::with(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let region = &bench.region;
    let mut t = bench.store.transaction();
    t.put(region, "a", "own").unwrap();
    let first = t.set_savepoint();
    t.delete(region, "a").unwrap();
    t.put(region, "d", "4").unwrap();
    let second = t.set_savepoint();
    t.delete_range(region, "a".."c").unwrap();
    t.put(region, "b", "again").unwrap();
    assert_eq!(keys(&mut t, region, "a"..), "b=again c=3 d=4");
    t.roll_back_to(second).unwrap();
    assert_eq!(keys(&mut t, region, "a"..), "b=2 c=3 d=4");
    t.roll_back_to(first).unwrap();
    assert_eq!(keys(&mut t, region, "a"..), "a=own b=2 c=3");
    assert_eq!(
        t.roll_back_to(second).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    t.roll_back_to(first).unwrap();
    t.commit(Buffered).unwrap();
    assert_eq!(
        (bench.get("a").unwrap(), bench.get("d")),
        ("own".into(), None)
    );
}

#[test]
fn a_deleted_range_hides_older_pairs_and_takes_later_puts() {
    let bench = Bench::with(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let region = &bench.region;
    let mut t = bench.store.transaction();
    t.put(region, "aa", "own").unwrap();
    t.delete_range(region, "a".."c").unwrap();
    assert_eq!(read(&mut t, region, "aa"), None);
    t.put(region, "b", "new").unwrap();
    assert_eq!(keys(&mut t, region, ""..), "b=new c=3");
    t.commit(Buffered).unwrap();
    let mut after = bench.store.transaction();
    assert_eq!(keys(&mut after, region, ""..), "b=new c=3");
}

#[test]
fn spills_and_collection_are_no_conflicts() {
    let bench = Bench::with(&[("k", "old")]);
    let mut transaction = bench.store.transaction();
    read(&mut transaction, &bench.region, "k");
    assert!(transaction.prefix(&bench.region, "k").unwrap().count() == 1);
    transaction.put(&bench.region, "k", "new").unwrap();
    let filler = bench.store.region("filler").unwrap();
    for number in 0..20_000_u32 {
        filler.put((number % 500).to_be_bytes(), [7; 900]).unwrap();
    }
    bench.store.compact().unwrap();
    transaction.commit(Buffered).unwrap();
    assert_eq!(bench.get("k").unwrap(), "new");
}

#[test]
fn a_commit_after_its_region_was_dropped_fails_as_closed() {
    let bench = Bench::open();
    let other = bench.store.region("other").unwrap();
    other.put("k", "1").unwrap();
    let (mut reading, mut writing) = (bench.store.transaction(), bench.store.transaction());
    read(&mut reading, &other, "k");
    reading.put(&bench.region, "k", "1").unwrap();
    writing.put(&other, "k", "2").unwrap();
    bench.store.drop_region("other").unwrap();
    for transaction in [reading, writing] {
        assert_eq!(
            transaction.commit(Buffered).unwrap_err().kind(),
            ErrorKind::Closed
        );
    }
    assert_eq!(bench.get("k"), None);
}

#[test]
fn a_transaction_writes_to_several_regions_or_to_none() {
    let bench = Bench::open();
    let other = bench.store.region("other").unwrap();
    let mut transaction = bench.store.transaction();
    transaction.put(&bench.region, "k", "1").unwrap();
    transaction.put(&other, "k", "2").unwrap();
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(other.get("k").unwrap().as_deref(), Some(b"2".as_slice()));
    let mut dropped = bench.store.transaction();
    dropped.put(&other, "k", "3").unwrap();
    drop(dropped);
    assert_eq!(other.get("k").unwrap().as_deref(), Some(b"2".as_slice()));
}

#[test]
fn a_transaction_without_memory_left_refuses_and_stays_as_it_was() {
    let bench = Bench::open();
    let options = TransactionOptions::default().bytes_max(10_000);
    let mut transaction = bench.store.transaction_with(options);
    transaction.put(&bench.region, "k", [1; 9000]).unwrap();
    let error = transaction.put(&bench.region, "l", [1; 1000]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let mut reads = 0;
    while transaction
        .get(&bench.region, format!("key {reads}"))
        .is_ok()
    {
        reads += 1;
        assert!(reads < 1000, "what is read takes memory, too");
    }
    transaction.commit(Buffered).unwrap();
    assert_eq!(bench.region.get("k").unwrap().unwrap().len(), 9000);
}

#[test]
fn concurrent_transfers_keep_the_sum() {
    let bench = Bench::open();
    for account in 0..5_u32 {
        bench
            .region
            .put(account.to_be_bytes(), 100_i64.to_le_bytes())
            .unwrap();
    }
    let amount =
        |value: Option<kreon::Value>| i64::from_le_bytes(value.unwrap()[..].try_into().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let (store, region) = (&bench.store, &bench.region);
            scope.spawn(move || {
                for turn in 0..200_u32 {
                    let account = |number: u32| (number % 5).to_be_bytes();
                    let (from, to) = (account(thread + turn), account(thread + 3 * turn + 1));
                    if from == to {
                        continue;
                    }
                    let moved = store.transact(|t| {
                        let (a, b) = (amount(t.get(region, from)?), amount(t.get(region, to)?));
                        t.put(region, from, (a - 1).to_le_bytes())?;
                        t.put(region, to, (b + 1).to_le_bytes())
                    });
                    moved.unwrap();
                }
            });
        }
    });
    let sum: i64 = bench
        .region
        .iter()
        .map(|pair| amount(Some(pair.unwrap().1)))
        .sum();
    assert_eq!(sum, 500);
}

#[test]
fn transact_gives_up_after_its_tries() {
    let bench = Bench::open();
    let options = TransactionOptions::default().tries_max(3);
    let mut tries = 0;
    let outcome = bench.store.transact_with(options, Buffered, |t| {
        tries += 1;
        t.get(&bench.region, "k")?;
        bench.region.put("k", "").unwrap();
        t.put(&bench.region, "l", "")
    });
    assert!(is_conflict(outcome) && tries == 3);
}
