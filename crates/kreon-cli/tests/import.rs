//! Importing files of every format.

mod fixture;

use fixture::Fixture;

const CITIES: &str = "id,name,people\r\n1,\"Chaniá, Crete\",53910\r\n2,\"two\nlines\",\r\n";

#[test]
fn csv_columns_are_chosen_by_name_and_the_rest_stays_a_row() {
    let fixture = Fixture::new();
    let file = fixture.file("cities.csv", CITIES);
    let summary = fixture.ok(&["import", &file]);
    assert!(summary.starts_with("imported 2 rows, "), "{summary}");
    assert!(summary.ends_with(" rows/s)\n"), "{summary}");
    assert_eq!(fixture.ok(&["get", "1"]), "\"Chaniá, Crete\",53910\n");
    fixture.ok(&[
        "-r", "named", "import", &file, "--key", "name", "--value", "people", "-q",
    ]);
    let named = fixture.ok(&["-r", "named", "scan"]);
    assert_eq!(named, "Chaniá, Crete\t53910\ntwo\\x0alines\t\n");
}

#[test]
fn tsv_without_header_is_chosen_by_number() {
    let fixture = Fixture::new();
    let file = fixture.file("rows.tsv", "a,b\t1\tx y\nc\t2\t\"q\tr\"\n");
    let args = ["import", &file, "--no-header", "--key", "3", "--value", "1"];
    fixture.ok(&args);
    assert_eq!(fixture.ok(&["scan"]), "q\\x09r\tc\nx y\ta,b\n");
    fixture.ok(&["-r", "rest", "import", &file, "--no-header", "--key", "2"]);
    assert_eq!(fixture.ok(&["-r", "rest", "get", "2"]), "c\t\"q\tr\"\n");
}

#[test]
fn json_lines_give_the_whole_object_or_a_field() {
    let fixture = Fixture::new();
    let lines = "{\"id\":7,\"n\":\"a\\tb\",\"deep\":{\"x\":[1, 2]}}\n\n{\"id\":\"8\",\"n\":null}\n";
    let file = fixture.file("rows.jsonl", lines);
    fixture.ok(&["import", &file, "--key", "id"]);
    let whole = fixture.ok(&["get", "7"]);
    assert_eq!(
        whole,
        "{\"id\":7,\"n\":\"a\\tb\",\"deep\":{\"x\":[1, 2]}}\n"
    );
    fixture.ok(&[
        "-r", "field", "import", &file, "--key", "id", "--value", "n",
    ]);
    assert_eq!(
        fixture.ok(&["-r", "field", "scan"]),
        "7\ta\\x09b\n8\tnull\n"
    );
}

#[test]
fn standard_input_needs_a_format() {
    let fixture = Fixture::new();
    fixture
        .run_with_input(&["import", "-"], "k,v\n")
        .fails(2, &["--format"]);
    let args = ["import", "-", "--format", "jsonl"];
    fixture
        .run_with_input(&args, "{\"key\":\"k\",\"value\":\"v\"}")
        .ok();
    assert_eq!(fixture.ok(&["get", "k"]), "v\n");
}

#[test]
fn of_equal_keys_the_last_row_wins_within_and_across_batches() {
    let fixture = Fixture::new();
    let rows: String = (0..50).map(|i| format!("k{},{i}\n", i % 7)).collect();
    let file = fixture.file("rows.csv", rows);
    for batch in ["1", "3", "1000"] {
        fixture.ok(&["import", &file, "--no-header", "--batch", batch, "--sync"]);
        let expected: String = (0..7)
            .map(|k| format!("k{k}\t{}\n", if k == 0 { 49 } else { 42 + k }))
            .collect();
        assert_eq!(fixture.ok(&["scan"]), expected);
    }
}

#[test]
fn a_bad_row_ends_the_import_with_its_line_and_the_rows_before_it_stay() {
    let fixture = Fixture::new();
    let file = fixture.file("rows.csv", "k,v\na,\"1\n1\"\nb,2,3\nc,3\n");
    fixture
        .run(&["import", &file])
        .fails(2, &["rows.csv line 4: ", "3 fields", "--skip-bad"]);
    assert_eq!(fixture.ok(&["scan", "--keys"]), "a\n");

    let summary = fixture.ok(&["import", &file, "--skip-bad"]);
    assert!(summary.contains("imported 2 rows"), "{summary}");
    assert!(
        summary.contains("; 1 bad rows skipped, the first on line 4: "),
        "{summary}"
    );
    assert_eq!(fixture.ok(&["scan", "--keys"]), "a\nc\n");
}

#[test]
fn rows_that_the_store_could_not_hold_are_bad_rows() {
    let fixture = Fixture::new();
    let key = "k".repeat((64 << 10) + 1);
    let lines =
        format!("{{\"key\":\"{key}\",\"value\":\"\"}}\n{{\"key\":\"a\",\"value\":\"1\"}}\n[]\n");
    let file = fixture.file("rows.jsonl", lines);
    fixture
        .run(&["import", &file])
        .fails(2, &["line 1: the key has 65537 bytes"]);
    let summary = fixture.ok(&["import", &file, "--skip-bad"]);
    assert!(summary.contains("imported 1 rows"), "{summary}");
    assert!(summary.contains("2 bad rows"), "{summary}");
}

#[test]
fn a_row_over_the_limit_is_a_bad_row() {
    let fixture = Fixture::new();
    let file = fixture.file("rows.csv", format!("k,v\na,{}\nb,2\n", "x".repeat(3 << 20)));
    fixture
        .run(&["import", &file, "--row-max", "1m"])
        .fails(2, &["line 2", "--row-max"]);
    fixture.ok(&["import", &file, "--row-max", "1m", "--skip-bad"]);
    assert_eq!(fixture.ok(&["scan", "--keys"]), "b\n");
    fixture.ok(&["import", &file]);
    assert_eq!(fixture.ok(&["get", "a"]).len(), (3 << 20) + 1);
}

#[test]
fn a_whole_row_as_the_value_takes_no_encoding() {
    let fixture = Fixture::new();
    let file = fixture.file("cities.csv", CITIES);
    fixture
        .run(&["--encoding", "hex", "import", &file])
        .fails(2, &["--value", "--value-encoding text"]);
    let file = fixture.file("rows.jsonl", "{\"id\":\"6b\"}");
    let args = ["--encoding", "hex", "import", &file, "--key", "id"];
    fixture.run(&args).fails(2, &["--value-encoding text"]);
    fixture.ok(&[&args[..], &["--value-encoding", "text"]].concat());
    assert_eq!(fixture.ok(&["get", "k"]), "{\"id\":\"6b\"}\n");
}

#[test]
fn quiet_says_nothing_and_without_a_terminal_there_is_no_progress() {
    let fixture = Fixture::new();
    let file = fixture.file("rows.csv", "k,v\na,1\n");
    let quiet = fixture.run(&["import", &file, "--quiet"]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    let told = fixture.run(&["import", &file]);
    assert_eq!(told.stdout.lines().count(), 1);
    assert_eq!(told.stderr, "");
}

#[test]
fn an_empty_file_imports_no_rows() {
    let fixture = Fixture::new();
    for name in ["rows.csv", "rows.tsv", "rows.jsonl"] {
        let file = fixture.file(name, "");
        let summary = fixture.ok(&["import", &file]);
        assert!(summary.starts_with("imported 0 rows, 0 B "), "{summary}");
    }
    assert_eq!(fixture.ok(&["count"]), "0\n");
}

#[test]
fn rows_that_come_sorted_are_loaded_at_once() {
    let fixture = Fixture::new();
    let rows = |range: std::ops::Range<u32>| -> String {
        let row = |n| format!("key-{n:05},value {n}\n");
        range.map(row).collect()
    };
    let whole = fixture.file("whole.csv", format!("k,v\n{}", rows(0..3000)));
    let summary = fixture.ok(&["-r", "whole", "import", &whole]);
    let all = "; they came sorted and were loaded at once\n";
    assert!(summary.starts_with("imported 3000 rows, "), "{summary}");
    assert!(summary.ends_with(all), "{summary}");
    let count = |region| {
        fixture
            .ok(&["-r", region, "scan", "--keys"])
            .lines()
            .count()
    };
    assert_eq!(count("whole"), 3000);
    // Equal neighbours: the last counts. A row out of order: what follows is put.
    let mixed = format!(
        "k,v\n{}key-00020,newer\n{}key-00007,newest\nkey-00002,newest\n",
        rows(0..21),
        rows(21..40)
    );
    let mixed = fixture.file("mixed.csv", &mixed);
    let summary = fixture.ok(&["-r", "mixed", "import", &mixed, "--batch", "4"]);
    assert!(summary.starts_with("imported 43 rows, "), "{summary}");
    assert!(
        summary.ends_with("; the first 41 came sorted and were loaded at once\n"),
        "{summary}"
    );
    assert_eq!(count("mixed"), 40);
    let value = |key| fixture.ok(&["-r", "mixed", "get", key]);
    assert_eq!(value("key-00020"), "newer\n");
    assert_eq!(value("key-00007"), "newest\n");
    assert_eq!(value("key-00039"), "value 39\n");
    // Once more over what is there, and with a bad row behind.
    let bad = fixture.file("bad.jsonl", "{\"key\":\"key-00001\",\"value\":\"a\"}\n{\"key\":\"key-00003\",\"value\":\"b\"}\n{\"key\":\"key-00005\",\"value\":\"c\"}\nbad\n");
    let args = ["-r", "mixed", "import", &bad, "--batch", "2"];
    fixture.run(&args).fails(2, &["bad.jsonl line 4: "]);
    assert_eq!(value("key-00005"), "c\n");
    assert_eq!(value("key-00002"), "newest\n");
    assert_eq!(count("mixed"), 40);
    fixture.ok(&["verify"]);
}

#[test]
fn a_quote_that_is_never_closed_is_named() {
    let fixture = Fixture::new();
    let file = fixture.file("rows.csv", "k,v\na,1\nb,\"2\nc,3\n");
    fixture.run(&["import", &file]).fails(
        2,
        &["rows.csv line 3: a quote that opens in this row is never closed"],
    );
    assert_eq!(fixture.ok(&["scan"]), "a\t1\n");
}

#[test]
fn rows_that_were_stored_can_be_passed_over() {
    let fixture = Fixture::new();
    let file = fixture.file("rows.csv", "k,v\nb,1\nbad\na,3\nc,4\n");
    let summary = fixture.ok(&["import", &file, "--skip-rows", "2"]);
    assert!(summary.starts_with("imported 2 rows, "), "{summary}");
    assert_eq!(fixture.ok(&["scan"]), "a\t3\nc\t4\n");
}
