//! Stores of the engine KVell.

use fixture::Fixture;

mod fixture;

const CITIES: &str = "name,country\nHeraklion,GR\nParis,FR\nOslo,NO\n";

fn with_cities() -> Fixture {
    let fixture = Fixture::new();
    let cities = fixture.file("cities.csv", CITIES);
    fixture.ok(&["import", "--engine", "kvell", &cities, "--key", "name"]);
    fixture
}

#[test]
fn a_store_of_kvell_is_made_on_demand_and_recognised_afterwards() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "--engine", "kvell", "a", "1"]);
    fixture.ok(&["put", "b", "2"]);
    fixture.ok(&["put", "--sync", "c", "3"]);
    fixture.ok(&["delete", "b"]);
    assert_eq!(fixture.ok(&["get", "a"]), "1\n");
    assert_eq!(fixture.ok(&["scan"]), "a\t1\nc\t3\n");
    assert_eq!(fixture.ok(&["scan", "--reverse"]), "c\t3\na\t1\n");
    assert_eq!(fixture.ok(&["count"]), "2\n");
    fixture
        .run(&["get", "b"])
        .fails(1, &["not found: no key `b`"]);
    let verified = fixture.ok(&["verify"]);
    assert!(verified.starts_with("OK\n"), "{verified}");
}

#[test]
fn rows_are_imported_and_exported() {
    let fixture = with_cities();
    assert_eq!(fixture.ok(&["count"]), "3\n");
    let exported = fixture.path("out.jsonl");
    fixture.ok(&["export", exported.to_str().unwrap()]);
    let other = Fixture::new();
    other.ok(&["import", exported.to_str().unwrap()]);
    assert_eq!(other.ok(&["scan"]), fixture.ok(&["scan"]));
}

#[test]
fn a_range_is_deleted_and_regions_come_and_go() {
    let fixture = with_cities();
    fixture.ok(&["delete", "--from", "O"]);
    assert_eq!(fixture.ok(&["count"]), "1\n");
    fixture.ok(&["regions", "create", "other"]);
    fixture.ok(&["put", "-r", "other", "k", "v"]);
    assert_eq!(fixture.ok(&["regions"]), "default\nother\n");
    fixture.ok(&["regions", "drop", "other"]);
    assert_eq!(fixture.ok(&["regions"]), "default\n");
    fixture
        .run(&["get", "-r", "other", "k"])
        .fails(8, &["other"]);
    fixture.ok(&["put", "-r", "other", "x", "y"]);
    assert_eq!(fixture.ok(&["scan", "-r", "other"]), "x\ty\n");
}

#[test]
fn figures_are_told_in_lines_as_json_and_as_metrics() {
    let fixture = with_cities();
    let lines = fixture.ok(&["stats"]);
    assert!(lines.contains("engine               kvell\n"), "{lines}");
    let json = fixture.ok(&["stats", "--json"]);
    let figures: serde_json::Value = serde_json::from_str(&json).unwrap();
    // Three cities, the region's name and the count of regions.
    assert_eq!(figures["keys"], 5);
    assert_eq!(figures["regions"], serde_json::json!(["default"]));
    let metrics = fixture.ok(&["stats", "--prometheus"]);
    assert!(metrics.contains("\nkvell_keys 5\n"), "{metrics}");
}

#[test]
fn what_kvell_lacks_and_the_wrong_engine_are_wrong_use() {
    let fixture = with_cities();
    for args in [
        &["backup", "elsewhere"][..],
        &["compact"],
        &["ttl", "Oslo"],
        &["persist", "Oslo"],
        &["put", "--ttl", "1h", "a", "1"],
        &["changes"],
    ] {
        fixture.run(args).fails(2, &["kvell"]);
    }
    fixture
        .run(&["put", "--engine", "kreon", "a", "1"])
        .fails(2, &["the store has the engine kvell"]);
    let other = Fixture::new();
    other.ok(&["put", "a", "1"]);
    other
        .run(&["put", "--engine", "kvell", "a", "1"])
        .fails(2, &["a volume of Kreon, not of KVell"]);
    assert_eq!(other.ok(&["get", "a"]), "1\n");
}
