//! put, get, delete, scan and count.

mod fixture;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use fixture::Fixture;

#[test]
fn a_value_that_was_put_is_printed_until_it_is_deleted() {
    let fixture = Fixture::new();
    assert_eq!(fixture.ok(&["put", "city", "Chaniá"]), "");
    assert_eq!(fixture.ok(&["get", "city"]), "Chaniá\n");
    fixture.ok(&["--sync", "put", "city", "Iráklio"]);
    assert_eq!(fixture.ok(&["get", "city"]), "Iráklio\n");
    fixture.ok(&["delete", "city", "never there"]);
    fixture
        .run(&["get", "city"])
        .fails(1, &["not found", "`city`", "`default`"]);
}

#[test]
fn a_value_comes_from_a_file_and_goes_out_byte_for_byte() {
    let fixture = Fixture::new();
    let file = fixture.file("value", "line\n\\x41\n");
    fixture.ok(&["put", "file", "--file", &file]);
    assert_eq!(fixture.ok(&["get", "file", "--raw"]), "line\n\\x41\n");
    assert_eq!(fixture.ok(&["get", "file"]), "line\n\\x5cx41\n\n");
    fixture
        .run_with_input(&["put", "stdin", "--file", "-"], "from a pipe")
        .ok();
    assert_eq!(fixture.ok(&["get", "stdin"]), "from a pipe\n");
}

#[test]
fn encodings_apply_to_keys_and_values_apart() {
    let fixture = Fixture::new();
    let hex_key = ["--key-encoding", "hex"];
    let base64 = ["--value-encoding", "base64"];
    fixture.ok(&[&["put", "00ff", "AP8="][..], &hex_key, &base64].concat());
    assert_eq!(fixture.ok(&["get", r"\x00\xff"]), "\0\\xff\n");
    assert_eq!(fixture.ok(&["--encoding", "hex", "scan"]), "00ff\t00ff\n");
    let mixed = fixture.ok(&["--encoding", "hex", "--value-encoding", "base64", "scan"]);
    assert_eq!(mixed, "00ff\tAP8=\n");
    fixture
        .run(&["--encoding", "hex", "get", "0g"])
        .fails(2, &["invalid argument", "not hex"]);
}

#[test]
fn arguments_that_are_not_utf8_are_bytes() {
    let fixture = Fixture::new();
    let mut put = fixture.command(&["put"]);
    put.args([OsStr::from_bytes(b"k\xff"), OsStr::from_bytes(b"\xfe")]);
    fixture::run(put, b"").ok();
    assert_eq!(fixture.ok(&["scan"]), "k\\xff\t\\xfe\n");
}

fn alphabet() -> Fixture {
    let fixture = Fixture::new();
    let rows: String = ('a'..='j')
        .map(|c| format!("{c}/1,one\n{c}/2,\n"))
        .collect();
    let args = ["import", "-", "--format", "csv", "--no-header", "-q"];
    fixture.run_with_input(&args, rows).ok();
    fixture
}

#[test]
fn a_scan_goes_through_what_was_chosen_in_either_direction() {
    let fixture = alphabet();
    let scan = |args: &[&str]| fixture.ok(&[&["scan"], args].concat());
    assert_eq!(scan(&["--prefix", "c"]), "c/1\tone\nc/2\t\n");
    assert_eq!(scan(&["--prefix", "c", "--reverse"]), "c/2\t\nc/1\tone\n");
    assert_eq!(scan(&["--from", "b/2", "--to", "c/2"]), "b/2\t\nc/1\tone\n");
    assert_eq!(scan(&["--from", "j/2"]), "j/2\t\n");
    assert_eq!(scan(&["--to", "a/2", "--keys"]), "a/1\n");
    assert_eq!(scan(&["--limit", "3", "--keys"]), "a/1\na/2\nb/1\n");
    assert_eq!(scan(&["--limit", "2", "--keys", "--reverse"]), "j/2\nj/1\n");
    assert_eq!(scan(&["--limit", "0"]), "");
    assert_eq!(scan(&["--from", "x", "--to", "b"]), "");
    assert_eq!(scan(&[]).lines().count(), 20);
}

#[test]
fn a_count_counts_what_a_scan_would_print() {
    let fixture = alphabet();
    for args in [
        &[][..],
        &["--prefix", "c"],
        &["--from", "b", "--to", "d/2"],
        &["-p", "x"],
    ] {
        let scanned = fixture.ok(&[&["scan"], args].concat()).lines().count();
        let counted = fixture.ok(&[&["count"], args].concat());
        assert_eq!(counted, format!("{scanned}\n"), "{args:?}");
    }
}

#[test]
fn one_pair_stays_on_one_line() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "a\tb\nc", "v\nw"]);
    assert_eq!(fixture.ok(&["scan"]), "a\\x09b\\x0ac\tv\\x0aw\n");
}
