//! regions, stats and verify.

mod fixture;

use fixture::Fixture;

#[test]
fn regions_are_listed_made_and_dropped() {
    let fixture = Fixture::new();
    fixture.ok(&["regions", "create", "towns"]);
    fixture.ok(&["-r", "cities", "put", "k", "v"]);
    assert_eq!(fixture.ok(&["regions"]), "cities\ntowns\n");
    assert_eq!(fixture.ok(&["regions", "list"]), "cities\ntowns\n");
    assert_eq!(fixture.ok(&["-r", "towns", "count"]), "0\n");
    fixture.ok(&["regions", "drop", "cities"]);
    assert_eq!(fixture.ok(&["regions"]), "towns\n");
    fixture
        .run(&["regions", "drop", "cities"])
        .fails(8, &["not found", "cities"]);
    fixture
        .run(&["regions", "create", ""])
        .fails(2, &["invalid argument"]);
}

#[test]
fn options_of_a_region_are_given_printed_and_changed() {
    let fixture = Fixture::new();
    let options = [
        "--compression",
        "lz4",
        "--ttl",
        "90m",
        "--growth-factor",
        "4",
    ];
    fixture.ok(&[&["regions", "create", "towns"], &options[..]].concat());
    let of_towns = || fixture.ok(&["regions", "options", "towns"]);
    let told = |ttl: &str| {
        format!("compression lz4\nttl {ttl}\ninline-value-bytes-max store\ngrowth-factor 4\n")
    };
    assert_eq!(of_towns(), told("5400s"));
    // The same again is no failure, others are.
    fixture.ok(&[&["regions", "create", "towns"], &options[..]].concat());
    fixture
        .run(&["regions", "create", "towns", "--ttl", "1s"])
        .fails(2, &["other options"]);
    fixture.ok(&["regions", "create", "towns"]);
    fixture.ok(&["regions", "options", "towns", "--ttl", "none"]);
    assert_eq!(of_towns(), told("none"));
    let value = "the same again and again ".repeat(100);
    fixture.ok(&["-r", "towns", "put", "k", &value]);
    assert_eq!(fixture.ok(&["-r", "towns", "get", "k"]), value + "\n");
    fixture
        .run(&["regions", "options", "towns", "--growth-factor", "1"])
        .fails(2, &["growth_factor"]);
    fixture
        .run(&["regions", "options", "nowhere"])
        .fails(8, &["nowhere"]);
}

#[test]
fn regions_keep_their_keys_apart() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "k", "1"]);
    fixture.ok(&["--region", "other", "put", "k", "2"]);
    assert_eq!(fixture.ok(&["get", "k"]), "1\n");
    assert_eq!(fixture.ok(&["get", "k", "-r", "other"]), "2\n");
}

#[test]
fn verify_prints_counts() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "k", "v"]);
    let report = fixture.ok(&["verify"]);
    assert!(report.starts_with("OK\n"), "{report}");
    for what in [
        " 1 regions\n",
        " tree pages\n",
        " 1 entries\n",
        " log records\n",
        " bytes of their values\n",
        " 0 problems\n",
    ] {
        assert!(report.contains(what), "{report}");
    }
}

#[test]
fn compact_leaves_one_level_without_what_was_deleted() {
    let fixture = Fixture::new();
    for key in ["a", "b", "c"] {
        fixture.ok(&["put", key, "v"]);
    }
    fixture.ok(&["delete", "b"]);
    assert_eq!(fixture.ok(&["compact"]), "");
    let json = fixture.ok(&["stats", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&json).unwrap();
    let levels = object["levels"].as_array().unwrap();
    assert_eq!((levels.len(), &levels[0]["entries"]), (1, &2.into()));
    assert!(levels[0]["target_bytes"].as_u64() > levels[0]["bytes"].as_u64());
    fixture
        .run(&["compact", "-r", "none"])
        .fails(8, &["not found"]);
}

#[test]
fn delete_takes_keys_a_prefix_or_a_range_and_never_all_by_mistake() {
    let fixture = Fixture::new();
    for key in ["a1", "a2", "b1", "b2", "c1"] {
        fixture.ok(&["put", key, "v"]);
    }
    fixture.ok(&["delete", "--prefix", "a"]);
    assert_eq!(fixture.ok(&["count"]).trim(), "3");
    fixture.ok(&["delete", "--from", "b2", "--to", "c1"]);
    assert_eq!(fixture.ok(&["count"]).trim(), "2");
    fixture.ok(&["delete", "b1"]);
    fixture.ok(&["get", "c1"]);
    fixture.ok(&["delete", "--from", "b"]);
    assert_eq!(fixture.ok(&["count"]).trim(), "0");
}
