//! `kreon changes`.

mod fixture;

use fixture::Fixture;
use kreon::{Durability, Store, WriteBatch};

/// A store whose program keeps its log: a region, a batch of two puts, a deletion.
fn written(fixture: &Fixture) -> Store {
    let options = Store::options().memory_bytes(16 << 20);
    let store = options
        .changes_kept_bytes(64 << 20)
        .open(fixture.store())
        .unwrap();
    let region = store.region("r").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&region, "one", "1");
    batch.put(&region, "two\t", "2\n");
    store.write(batch, Durability::Buffered).unwrap();
    region.delete("one").unwrap();
    store
}

#[test]
fn changes_are_printed_in_order_and_from_a_position_on() {
    let fixture = Fixture::new();
    let store = written(&fixture);
    fixture.run(&["changes"]).fails(4, &["open"]);
    store.close().unwrap();
    drop(store);
    let told = fixture.ok(&["changes"]);
    let rows: Vec<Vec<_>> = told
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    let shown: Vec<_> = rows.iter().map(|row| row[1..].join(" ")).collect();
    let expected = [
        "r make-region",
        "r put one 1",
        "r put two\\x09 2\\x0a",
        "r delete one",
    ];
    assert_eq!(shown, expected);
    assert_eq!(rows[1][0], rows[2][0], "one batch");
    let rest = fixture.ok(&["changes", "--from", rows[2][0], "--json"]);
    let rest: serde_json::Value = serde_json::from_str(&rest).unwrap();
    assert_eq!(
        (&rest["what"], &rest["key"]),
        (&"delete".into(), &"one".into())
    );
    let counted = fixture.ok(&["changes", "--count"]);
    assert!(
        counted.contains("3 units") && counted.contains("4 changes"),
        "{counted}"
    );
    fixture
        .run(&["changes", "--from", "8"])
        .fails(2, &["8", "oldest"]);
}
