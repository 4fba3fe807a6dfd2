//! Expiries go out with `export` and come in with `import`.

mod fixture;

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fixture::{Fixture, run};
use kreon::{Expiry, Region, Store, WriteBatch};

/// In the year 2100.
const LATE_MS: u64 = 4_102_444_800_123;

fn moment(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

fn open(path: &Path) -> (Store, Region) {
    let store = Store::options().memory_bytes(16 << 20).open(path).unwrap();
    let region = store.region("default").unwrap();
    (store, region)
}

type Row = (Vec<u8>, Vec<u8>, Option<u64>);

/// Pairs that stay and pairs that expire, in key order: short and long, text and other bytes.
fn rows() -> Vec<Row> {
    let row = |key: &[u8], value: &[u8], expires| (key.to_vec(), value.to_vec(), expires);
    vec![
        row(b"a", b"stays", None),
        row(b"b", b"short", Some(LATE_MS)),
        row(b"c", b"", Some(LATE_MS + 1)),
        row(b"d", b"a,b\n\"c\"", Some((1 << 48) - 1)),
        row(b"e", &[b'v'; 500_000], Some(LATE_MS)),
        row(b"f\xff", b"\0\xfe", Some(LATE_MS)),
        row(b"g", b"stays", None),
    ]
}

/// A store with [`rows`], and with one pair that has expired.
fn fill(path: &Path) {
    let (store, region) = open(path);
    let mut batch = WriteBatch::new();
    for (key, value, expires) in rows() {
        match expires {
            Some(ms) => batch.put_until(&region, key, value, moment(ms)),
            None => batch.put(&region, key, value),
        }
    }
    batch.put_until(&region, "gone", "v", moment(1_000_000));
    store.write(batch, kreon::Durability::Buffered).unwrap();
    store.close().unwrap();
}

fn held(path: &Path) -> Vec<Row> {
    let (_store, region) = open(path);
    let (mut scan, mut held) = (region.iter(), Vec::new());
    while let Some(expiry) = scan.peek_expiry().unwrap() {
        let (key, value) = scan.next().unwrap().unwrap();
        let expires = match expiry {
            Expiry::At(moment) => moment.duration_since(UNIX_EPOCH).ok(),
            Expiry::Never => None,
        };
        let expires = expires.map(|since| since.as_millis() as u64);
        held.push((key.to_vec(), value.to_vec(), expires));
    }
    held
}

/// What a store holds that imports what this one exports.
fn copied(fixture: &Fixture, name: &str, export: &[&str], import: &[&str]) -> Vec<Row> {
    let (file, copy) = (fixture.path(&format!("{name}.out")), fixture.path(name));
    let file = file.to_str().unwrap();
    fixture.ok(&[&["export", file, "-q"][..], export].concat());
    let import = [&["import", file, "-q"][..], import].concat();
    run(fixture.command_on(&copy, &import), b"").ok();
    held(&copy)
}

#[test]
fn json_lines_keep_expiries_and_have_nothing_that_has_expired() {
    let fixture = Fixture::new();
    fill(&fixture.store());
    let jsonl = ["--format", "jsonl"];
    for encoding in ["text", "base64"] {
        let options = [&jsonl[..], &["--encoding", encoding]].concat();
        let copy = copied(&fixture, encoding, &options, &options);
        assert!(copy == rows(), "{encoding}");
    }
    let lines = fixture.ok(&["export", "-q"]);
    let second = format!("{{\"key\":\"b\",\"value\":\"short\",\"expires\":{LATE_MS}}}");
    assert_eq!(lines.lines().nth(1), Some(second.as_str()));
    assert_eq!(
        lines.lines().next(),
        Some("{\"key\":\"a\",\"value\":\"stays\"}")
    );
    // Who wants pairs that stay says so.
    let no_expires = [&jsonl[..], &["--no-expires"]].concat();
    let stay = copied(&fixture, "stay", &jsonl, &no_expires);
    assert!(stay.iter().all(|row| row.2.is_none()) && stay.len() == rows().len());
}

#[test]
fn csv_and_tsv_keep_expiries_in_a_column_that_both_sides_name() {
    let fixture = Fixture::new();
    fill(&fixture.store());
    for format in ["csv", "tsv"] {
        let format = ["--format", format];
        let with = |more: &[&'static str]| [&format[..], more].concat();
        let name = |name: &str| format!("{name}-{}", format[1]);
        let (export, import) = (with(&["--expires"]), with(&["--expires", "expires"]));
        assert!(copied(&fixture, &name("named"), &export, &import) == rows());
        let export = with(&["--expires", "--no-header"]);
        let import = with(&["--expires", "3", "--no-header"]);
        assert!(copied(&fixture, &name("bare"), &export, &import) == rows());
        let without = copied(&fixture, &name("without"), &with(&[]), &with(&[]));
        assert!(without.iter().all(|row| row.2.is_none()) && without.len() == rows().len());
    }
    let text = fixture.ok(&["export", "-qe", "--format", "csv", "--expires"]);
    let first = format!("key,value,expires\na,stays,\nb,short,{LATE_MS}\n");
    assert!(text.starts_with(&first));
    let lines = ["export", "--format", "lines", "--expires"];
    fixture.run(&lines).fails(2, &["--expires", "CSV"]);
}

#[test]
fn rows_that_have_expired_are_left_out_and_counted() {
    let fixture = Fixture::new();
    let row = |key: &str, expires: u64| {
        format!("{{\"key\":\"{key}\",\"value\":\"new\",\"expires\":{expires}}}\n")
    };
    let text = [row("late", LATE_MS), row("old", 1), row("kept", 0)].concat();
    let file = fixture.file("rows.jsonl", &text);
    fixture.ok(&["put", "kept", "before"]);
    let told = fixture.ok(&["import", &file]);
    assert!(told.starts_with("imported 1 rows, "), "{told}");
    let words = "; 2 rows left out that have expired\n";
    assert!(told.ends_with(words), "{told}");
    let (late, kept) = (b"late".to_vec(), b"kept".to_vec());
    let expected = [
        (kept, b"before".to_vec(), None),
        (late, b"new".to_vec(), Some(LATE_MS)),
    ];
    assert_eq!(held(&fixture.store()), expected);
    let ttl = fixture.ok(&["ttl", "late"]);
    assert!(ttl.ends_with("s\n") && ttl.len() > 8, "{ttl}");
}

#[test]
fn an_expiry_that_is_no_number_is_a_bad_row() {
    let fixture = Fixture::new();
    let line = "{\"key\":\"a\",\"value\":\"1\",\"expires\":\"2100-01-01\"}\n";
    let file = fixture.file("rows.jsonl", line);
    let words = ["rows.jsonl line 1: the expiry is no number"];
    fixture.run(&["import", &file]).fails(2, &words);
    // Where fields are named, this one means nothing unless it is named, too.
    let named = ["import", &file, "-q", "--key", "key", "--value", "value"];
    fixture.ok(&named);
    fixture
        .run(&[&named[..], &["--expires", "expires"]].concat())
        .fails(2, &words);
    assert_eq!(fixture.ok(&["scan"]), "a\t1\n");
}

#[test]
fn rows_that_come_sorted_are_loaded_at_once_up_to_the_first_that_expires() {
    let fixture = Fixture::new();
    let row = |number: u32, expires: &str| format!("key{number:04},value{number},{expires}\n");
    let late = LATE_MS.to_string();
    let rows = |expiring: std::ops::Range<u32>| -> String {
        let expires = |number| match expiring.contains(&number) {
            true => late.as_str(),
            false => "",
        };
        (0..200).map(|n| row(n, expires(n))).collect()
    };
    for (expiring, loaded) in [
        (
            150..200,
            "; the first 150 came sorted and were loaded at once\n",
        ),
        (3..5, " rows/s)\n"),
        (0..0, "; they came sorted and were loaded at once\n"),
    ] {
        let file = fixture.file("rows.csv", rows(expiring.clone()));
        let store = fixture.path(&format!("store-{}", expiring.start));
        let import = [
            "import",
            &file,
            "--no-header",
            "--expires",
            "3",
            "--batch",
            "10",
        ];
        let told = run(fixture.command_on(&store, &import), b"").ok();
        assert!(told.starts_with("imported 200 rows, "), "{told}");
        assert!(told.ends_with(loaded), "{told}");
        for (number, (key, value, expires)) in (0..).zip(held(&store)) {
            assert_eq!(key, format!("key{number:04}").into_bytes());
            assert_eq!(value, format!("value{number}").into_bytes());
            assert_eq!(expires.is_some(), expiring.contains(&number), "{number}");
        }
    }
}
