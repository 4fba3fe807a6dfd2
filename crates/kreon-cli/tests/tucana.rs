//! Stores of the engine Tucana.

use fixture::Fixture;

mod fixture;

const CITIES: &str = "name,country\nHeraklion,GR\nParis,FR\nOslo,NO\n";

fn with_cities() -> Fixture {
    let fixture = Fixture::new();
    let cities = fixture.file("cities.csv", CITIES);
    fixture.ok(&["import", "--engine", "tucana", &cities, "--key", "name"]);
    fixture
}

#[test]
fn a_store_of_tucana_is_made_on_demand_and_recognised_afterwards() {
    let fixture = Fixture::new();
    fixture.run(&["get", "a"]).fails(7, &["there is no store"]);
    fixture.ok(&["put", "--engine", "tucana", "a", "1"]);
    fixture.ok(&["put", "b", "2"]);
    fixture.ok(&["put", "--sync", "c", "3"]);
    fixture.ok(&["put", "--engine", "tucana", "c", "4"]);
    fixture.ok(&["delete", "b"]);
    assert_eq!(fixture.ok(&["get", "a"]), "1\n");
    assert_eq!(fixture.ok(&["scan"]), "a\t1\nc\t4\n");
    assert_eq!(fixture.ok(&["scan", "--reverse"]), "c\t4\na\t1\n");
    assert_eq!(fixture.ok(&["count"]), "2\n");
    fixture
        .run(&["get", "b"])
        .fails(1, &["not found: no key `b`"]);
    let verified = fixture.ok(&["verify"]);
    assert!(verified.starts_with("OK\n"), "{verified}");
    assert!(verified.contains(" 2 entries\n"), "{verified}");
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
fn scans_of_many_pairs_come_in_pieces_and_end_at_their_bounds() {
    let fixture = Fixture::new();
    // Three pieces of 256 pairs, and one that is exactly full.
    let keys: Vec<String> = (0..1024).map(|number| format!("key{number:04}")).collect();
    let rows: String = keys.iter().map(|key| format!("{key}\t{key}\n")).collect();
    let file = fixture.file("rows.txt", &rows);
    fixture.ok(&["import", "--engine", "tucana", "--format", "lines", &file]);
    assert_eq!(fixture.ok(&["scan"]), rows);
    let reverse: String = keys
        .iter()
        .rev()
        .map(|key| format!("{key}\t{key}\n"))
        .collect();
    assert_eq!(fixture.ok(&["scan", "--reverse"]), reverse);
    let some = fixture.ok(&["scan", "--from", "key0100", "--to", "key0700"]);
    let expected: String = rows.split_inclusive('\n').skip(100).take(600).collect();
    assert_eq!(some, expected);
    assert_eq!(fixture.ok(&["count", "--prefix", "key03"]), "100\n");
    fixture.ok(&["delete", "--from", "key0100", "--to", "key0900"]);
    assert_eq!(fixture.ok(&["count"]), "224\n");
    assert!(fixture.ok(&["verify"]).contains(" 224 entries\n"));
}

#[test]
fn regions_are_made_used_and_dropped_by_name() {
    let fixture = with_cities();
    assert_eq!(fixture.ok(&["regions"]), "default\n");
    fixture.ok(&["regions", "create", "a b"]);
    fixture.ok(&["put", "-r", "other", "Oslo", "1"]);
    fixture.ok(&["put", "-r", "other", "--sync", "Paris", "2"]);
    assert_eq!(fixture.ok(&["regions"]), "a b\ndefault\nother\n");
    assert_eq!(fixture.ok(&["scan", "-r", "other"]), "Oslo\t1\nParis\t2\n");
    assert_eq!(fixture.ok(&["get", "-r", "other", "Oslo"]), "1\n");
    assert_eq!(fixture.ok(&["get", "Oslo"]), "NO\n");
    assert_eq!(fixture.ok(&["count", "-r", "a b"]), "0\n");
    fixture.ok(&["delete", "-r", "other", "--from", "P"]);
    assert_eq!(fixture.ok(&["count", "-r", "other"]), "1\n");
    assert!(fixture.ok(&["verify"]).contains(" 4 entries\n"));
    fixture
        .run(&["get", "-r", "none", "Oslo"])
        .fails(8, &["not found", "\"none\""]);
    fixture
        .run(&["regions", "drop", "none"])
        .fails(8, &["not found", "\"none\""]);
    let long = "x".repeat(256);
    fixture
        .run(&["put", "-r", &long, "a", "1"])
        .fails(2, &["a region's name has 1 to 255 bytes"]);
    fixture.ok(&["regions", "drop", "other"]);
    assert_eq!(fixture.ok(&["regions"]), "a b\ndefault\n");
    fixture
        .run(&["scan", "-r", "other"])
        .fails(8, &["\"other\""]);
    fixture.ok(&["regions", "create", "other"]);
    assert_eq!(fixture.ok(&["count", "-r", "other"]), "0\n");
    assert_eq!(fixture.ok(&["count"]), "3\n");
    assert!(fixture.ok(&["verify"]).contains(" 3 entries\n"));
}

#[test]
fn figures_are_told_in_lines_as_json_and_as_metrics() {
    let fixture = with_cities();
    let lines = fixture.ok(&["stats"]);
    assert!(lines.contains("engine               tucana\n"), "{lines}");
    let json = fixture.ok(&["stats", "--json"]);
    let figures: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(figures["engine"], "tucana");
    assert_eq!(figures["regions"], serde_json::json!(["default"]));
    assert!(figures["used_bytes"].as_u64().unwrap() > 0, "{json}");
    let metrics = fixture.ok(&["stats", "--prometheus"]);
    assert!(metrics.contains("\ntucana_searches 0\n"), "{metrics}");
    let lines = fixture
        .run_with_input(&["shell"], "put x 1\nsync\nget Oslo\nstats\n")
        .ok();
    let searched = "searches to insert   1, 0 of them read keys\n";
    assert!(lines.contains(searched), "{lines}");
    // The name of the region, and the city.
    let read = "reads by hash        2, 0 of them of another key\n";
    assert!(lines.contains(read), "{lines}");
}

#[test]
fn damage_is_told_with_its_exit_code() {
    let fixture = with_cities();
    let mut bytes = std::fs::read(fixture.store()).unwrap();
    // The record of a city, in the log.
    let at = bytes.windows(4).rposition(|word| word == b"Oslo").unwrap();
    bytes[at] ^= 1;
    std::fs::write(fixture.store(), &bytes).unwrap();
    let verified = fixture.run(&["verify"]);
    assert_eq!(verified.code, 3, "{verified:?}");
    assert!(
        verified.stdout.starts_with("DAMAGED\nproblem: "),
        "{verified:?}"
    );
    assert_eq!(fixture.ok(&["get", "Paris"]), "FR\n");
}

#[test]
fn a_store_is_made_over_something_else_only_with_the_flag() {
    let fixture = Fixture::new();
    fixture.file("store", vec![7; 200 << 10]);
    let put = ["put", "--engine", "tucana", "a", "1"];
    let words = ["not a store of tucana", "shell take --format-store"];
    fixture.run(&put).fails(2, &words);
    fixture.ok(&[&put[..], &["--format-store"]].concat());
    assert_eq!(fixture.ok(&["get", "a"]), "1\n");
}

#[test]
fn what_tucana_lacks_and_the_wrong_engine_are_wrong_use() {
    let fixture = with_cities();
    for args in [
        &["backup", "elsewhere"][..],
        &["compact"],
        &["ttl", "Oslo"],
        &["persist", "Oslo"],
        &["put", "--ttl", "1h", "a", "1"],
        &["changes"],
    ] {
        fixture.run(args).fails(2, &["tucana"]);
    }
    for engine in ["kreon", "kvell"] {
        fixture
            .run(&["put", "--engine", engine, "a", "1"])
            .fails(2, &["the store has the engine tucana"]);
        let other = Fixture::new();
        other.ok(&["put", "--engine", engine, "a", "1"]);
        other
            .run(&["put", "--engine", "tucana", "a", "2"])
            .fails(2, &[&format!("engine {engine}")]);
        assert_eq!(other.ok(&["get", "a"]), "1\n");
    }
    assert_eq!(fixture.ok(&["count"]), "3\n");
}
