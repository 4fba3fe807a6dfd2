//! Exit codes and messages of failures, and what failures leave behind.

mod fixture;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use fixture::{Fixture, bare_command, run};

fn open_store(fixture: &Fixture) -> kreon::Store {
    kreon::Store::options()
        .memory_bytes(16 << 20)
        .open(fixture.store())
        .unwrap()
}

#[test]
fn reading_commands_do_not_make_a_store() {
    let fixture = Fixture::new();
    for args in [
        &["get", "k"][..],
        &["delete", "k"],
        &["scan"],
        &["count"],
        &["export"],
        &["stats"],
        &["verify"],
        &["regions"],
        &["regions", "drop", "x"],
    ] {
        let store = fixture.store();
        let named = store.to_str().unwrap();
        fixture.run(args).fails(7, &["there is no store", named]);
        assert!(!fixture.store().exists(), "{args:?}");
    }
}

#[test]
fn what_is_missing_is_told_by_the_exit_code() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "k", "v"]);
    fixture
        .run(&["get", "nothing"])
        .fails(1, &["no key `nothing`"]);
    let on = |store: &str, args: &[&str]| run(fixture.command_on(&fixture.path(store), args), b"");
    on("nowhere", &["get", "k"]).fails(7, &["there is no store", "nowhere"]);
    fixture
        .run(&["-r", "towns", "get", "k"])
        .fails(8, &["towns", "--region"]);
    fixture
        .run(&["regions", "drop", "towns"])
        .fails(8, &["towns"]);
    for args in [
        &["get", "k"][..],
        &["put", "k", "v"],
        &["regions", "create", "x"],
    ] {
        on("no/folder", args).fails(9, &["the folder", "/no of the store", "does not exist"]);
        on("store/folder", args).fails(9, &["store of the store", "is not a folder"]);
    }
    for args in [
        &["import", "/nonexistent/rows.csv"][..],
        &["put", "k", "--file", "/nonexistent/value"],
        &["export", "/nonexistent/rows.csv"],
    ] {
        fixture.run(args).fails(9, &["/nonexistent/"]);
    }
    let (source, target) = (fixture.path("nowhere"), fixture.path("target"));
    let repair = ["repair", source.to_str().unwrap(), target.to_str().unwrap()];
    fixture.run(&repair).fails(7, &["there is no store"]);
}

#[test]
fn a_region_that_is_not_there_is_not_found_and_not_made() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "k", "v"]);
    for args in [
        &["get", "k"][..],
        &["delete", "k"],
        &["scan"],
        &["count"],
        &["export"],
    ] {
        let args = [args, &["--region", "towns"]].concat();
        fixture.run(&args).fails(8, &["not found", "towns"]);
    }
    assert_eq!(fixture.ok(&["regions"]), "default\n");
}

#[test]
fn wrong_use_exits_with_2() {
    let fixture = Fixture::new();
    run_bare(&["get", "k"]).fails(2, &["--store", "KREON_STORE"]);
    for args in [
        &["put", "k"][..],
        &["get"],
        &["scan", "--prefix", "a", "--from", "b"],
        &["--memory", "much", "scan"],
        &["--encoding", "rot13", "scan"],
        &["import", "x.csv", "--batch", "0"],
        &["frobnicate"],
        &[],
    ] {
        assert_eq!(fixture.run(args).code, 2, "{args:?}");
    }
    let folder = fixture.path("");
    run(fixture.command_on(&folder, &["put", "k", "v"]), b"").fails(2, &["invalid argument"]);
    let key = "k".repeat((64 << 10) + 1);
    fixture
        .run(&["put", &key, "v"])
        .fails(2, &["invalid argument"]);
}

fn run_bare(args: &[&str]) -> fixture::Run {
    let mut command = bare_command();
    command.args(args);
    run(command, b"")
}

#[test]
fn the_store_can_be_named_by_the_environment() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "k", "v"]);
    let mut command = bare_command();
    command
        .env("KREON_STORE", fixture.store())
        .args(["get", "k"]);
    assert_eq!(run(command, b"").ok(), "v\n");
}

#[test]
fn help_and_version_succeed() {
    let help = run_bare(&["--help"]).ok();
    assert!(help.contains("Exit codes"), "{help}");
    assert!(help.contains("    7  no such store\n"), "{help}");
    assert!(run_bare(&["import", "--help"]).ok().contains("--skip-bad"));
    assert!(run_bare(&["--version"]).ok().starts_with("kreon "));
}

#[test]
fn a_store_that_is_open_elsewhere_is_busy() {
    let fixture = Fixture::new();
    let store = open_store(&fixture);
    fixture
        .run(&["put", "k", "v"])
        .fails(4, &["busy", "try again later"]);
    store.close().unwrap();
    drop(store);
    fixture.ok(&["put", "k", "v"]);
}

#[test]
fn commands_that_read_run_beside_each_other_and_write_nothing() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "k", "v"]);
    let before = fs::read(fixture.store()).unwrap();
    let reader = kreon::Store::options()
        .memory_bytes(8 << 20)
        .read_only(true);
    let reader = reader.open(fixture.store()).unwrap();
    for command in [
        vec!["get", "k"],
        vec!["scan"],
        vec!["count"],
        vec!["export", "-"],
        vec!["stats"],
        vec!["verify"],
        vec!["regions"],
        vec!["ttl", "k"],
    ] {
        fixture.ok(&command);
    }
    let named = format!("in process {}", std::process::id());
    fixture.run(&["put", "k", "w"]).fails(4, &["busy", &named]);
    fixture.run(&["delete", "k"]).fails(4, &["busy", &named]);
    let backups = fixture.path("backups");
    let backup = ["backup", backups.to_str().unwrap()];
    fixture.run(&backup).fails(4, &["busy", &named]);
    drop(reader);
    assert!(fs::read(fixture.store()).unwrap() == before);
    assert_eq!(fixture.ok(&["get", "k"]), "v\n");
}

#[test]
fn a_folder_as_input_is_an_io_failure() {
    let fixture = Fixture::new();
    let folder = fixture.path("");
    let folder = folder.to_str().unwrap();
    fixture
        .run(&["import", folder, "--format", "csv"])
        .fails(6, &["i/o error", folder]);
}

#[test]
fn full_output_is_told_as_such_and_not_as_a_full_store() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "k", "v"]);
    let mut scan = fixture.command(&["scan"]);
    scan.stdout(File::options().write(true).open("/dev/full").unwrap());
    let output = scan.output().unwrap();
    assert_eq!(output.status.code(), Some(10), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    let expected = "kreon: writing to standard output failed: No space left on device";
    assert!(told.starts_with(expected), "{told}");
    assert!(!told.contains("delete something"), "{told}");
    fixture
        .run(&["export", "/dev/full", "--format", "csv"])
        .fails(10, &["writing to /dev/full failed: No space left"]);
}

#[test]
fn a_full_volume_is_out_of_space_and_the_store_survives() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "before", "v"]);
    let rows = fixture.file("rows.csv", "k,v\n".to_owned() + &big_rows(80, 1 << 20));
    let limited = ["--volume-max", "64MiB", "import", &rows, "-q"];
    fixture
        .run(&limited)
        .fails(5, &["out of space", "add space"]);
    assert_eq!(fixture.ok(&["get", "before"]), "v\n");
    fixture.ok(&["verify"]);
    fixture.ok(&["import", &rows, "-q"]);
    assert_eq!(fixture.ok(&["count"]), "81\n");
}

fn big_rows(rows: usize, value_bytes: usize) -> String {
    let value = "x".repeat(value_bytes);
    (0..rows).map(|i| format!("big{i},{value}\n")).collect()
}

#[test]
fn a_damaged_value_is_corruption_and_other_pairs_stay_readable() {
    let fixture = Fixture::new();
    let value = "treasure".repeat(100);
    let store = open_store(&fixture);
    let region = store.region("default").unwrap();
    region.put("a", &value).unwrap();
    region.put("b", "fine").unwrap();
    // So that the log is not read when the store is opened.
    store.checkpoint().unwrap();
    store.close().unwrap();
    drop((store, region));
    assert!(fixture.ok(&["verify"]).contains(" 0 problems\n"));

    let mut bytes = fs::read(fixture.store()).unwrap();
    let at = bytes
        .windows(value.len())
        .position(|window| window == value.as_bytes())
        .unwrap();
    bytes[at + 400] ^= 1;
    fs::write(fixture.store(), bytes).unwrap();

    let verify = fixture.run(&["verify"]);
    assert_eq!(verify.code, 3, "{verify:?}");
    assert!(verify.stdout.starts_with("DAMAGED\n"), "{verify:?}");
    assert!(verify.stdout.contains("problem: "), "{verify:?}");
    assert!(verify.stdout.contains(" 1 problems\n"), "{verify:?}");
    assert_eq!(verify.stderr.lines().count(), 1, "{verify:?}");
    fixture
        .run(&["get", "a"])
        .fails(3, &["corruption", "backup"]);
    assert_eq!(fixture.ok(&["get", "b"]), "fine\n");
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let fixture = Fixture::new();
    let text = "something else\n".repeat(10_000);
    fixture.file("store", &text);
    let run = fixture.run(&["put", "k", "v"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    assert_eq!(fs::read_to_string(fixture.store()).unwrap(), text);
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let fixture = Fixture::new();
    let rows: String = (0..20_000).map(|i| format!("key{i:05},value\n")).collect();
    let rows = fixture.file("rows.csv", rows);
    fixture.ok(&["import", &rows, "--no-header", "-q"]);
    for args in [
        &["scan"][..],
        &["scan", "--keys", "--reverse"],
        &["export", "-q"],
    ] {
        let mut child = fixture
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut line).unwrap();
        assert!(line.contains("key"), "{line}");
        drop(reader);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?} {output:?}");
        assert!(output.stderr.is_empty(), "{args:?} {output:?}");
    }
}
