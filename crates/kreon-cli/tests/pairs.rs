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
    assert_eq!(fixture.ok(&["get", "file"]), "line\n\\x41\n\n");
    let escaped = fixture.ok(&["get", "--escapes", "file"]);
    assert_eq!(escaped, "line\n\\x5cx41\n\n");
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
    let get = ["get", "--escapes", r"\x00\xff"];
    assert_eq!(fixture.ok(&get), "\\x00\\xff\n");
    let raw = fixture.command(&["get", "--key-encoding", "hex", "00ff"]);
    assert_eq!(output(raw), b"\0\xff\n");
    assert_eq!(fixture.ok(&["--encoding", "hex", "scan"]), "00ff\t00ff\n");
    let mixed = fixture.ok(&["--encoding", "hex", "--value-encoding", "base64", "scan"]);
    assert_eq!(mixed, "00ff\tAP8=\n");
    fixture
        .run(&["--encoding", "hex", "get", "0g"])
        .fails(2, &["invalid argument", "not hex"]);
}

fn output(mut command: std::process::Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[test]
fn nothing_is_decoded_that_was_not_asked_for() {
    let fixture = Fixture::new();
    let path = r"C:\x64\new";
    fixture.ok(&["put", path, path]);
    assert_eq!(fixture.ok(&["get", path]), format!("{path}\n"));
    let store = kreon::Store::open(fixture.store()).unwrap();
    let region = store.existing_region("default").unwrap();
    let stored = region.get(path).unwrap().unwrap();
    assert_eq!(&*stored, path.as_bytes());
    drop((store, region, stored));

    assert_eq!(fixture.ok(&["count", "--prefix", r"C:\x64"]), "1\n");
    assert_eq!(
        fixture.ok(&["count", "--from", r"C:\x64", "--to", r"C:\x64\o"]),
        "1\n"
    );
    assert_eq!(
        fixture.ok(&["count", "--escapes", "--prefix", r"C:\x64"]),
        "0\n"
    );
    for (name, line) in [
        ("rows.tsv", r"t	C:\x64\new"),
        ("rows.csv", r"c,C:\x64\new"),
        ("rows.jsonl", r#"{"key":"j","value":"C:\\x64\\new"}"#),
    ] {
        let file = fixture.file(name, line);
        fixture.ok(&["import", &file, "--no-header", "-q"]);
        let key = &name[5..6];
        assert_eq!(fixture.ok(&["get", key]), format!("{path}\n"), "{name}");
        fixture.ok(&["import", "--escapes", &file, "--no-header", "-q"]);
        assert_eq!(fixture.ok(&["get", key]), "C:d\\new\n", "{name}");
    }
    fixture.ok(&["put", "--escapes", r"\x01k", r"\x02"]);
    assert_eq!(
        fixture.ok(&["scan", "--to", "a", "-e"]),
        "\\x01k\t\\x02\nC:\\x5cx64\\new\tC:\\x5cx64\\new\n"
    );
}

#[test]
fn values_and_keys_may_be_negative_numbers() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "key", "-5"]);
    assert_eq!(fixture.ok(&["get", "key"]), "-5\n");
    fixture.ok(&["put", "-7", "--x-y", "--sync"]);
    assert_eq!(fixture.ok(&["get", "-7"]), "--x-y\n");
    assert_eq!(
        fixture.ok(&["scan", "--from", "-7", "--to", "-8"]),
        "-7\t--x-y\n"
    );
    assert_eq!(fixture.ok(&["count", "--prefix", "-7"]), "1\n");
    fixture.ok(&["delete", "-7"]);
    assert_eq!(fixture.ok(&["scan", "-k"]), "key\n");
    // A mistyped option must not become a key.
    assert_eq!(fixture.run(&["delete", "--prefx", "k"]).code, 2);
    fixture.ok(&["put", "--", "--odd", "v"]);
    assert_eq!(fixture.ok(&["get", "--", "--odd"]), "v\n");
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

#[test]
fn a_long_value_is_printed_whole_in_every_encoding() {
    let fixture = Fixture::new();
    let text = "東\\x41\u{1f600}\"\n".repeat(20_000);
    let file = fixture.file("big", &text);
    fixture.ok(&["put", "big", "--file", &file]);
    assert!(fixture.ok(&["get", "big"]) == format!("{text}\n"));
    assert!(fixture.ok(&["get", "big", "--raw"]) == text);
    assert!(fixture.ok(&["get", "big", "--raw", "--encoding", "escapes"]) == text);
    let escaped = text.replace(r"\x41", r"\x5cx41");
    assert!(fixture.ok(&["get", "big", "-e"]) == format!("{escaped}\n"));
    let hex = data_encoding::HEXLOWER.encode(text.as_bytes());
    let got = fixture.ok(&["get", "big", "--value-encoding", "hex"]);
    assert!(got == format!("{hex}\n"));
    let base64 = data_encoding::BASE64.encode(text.as_bytes());
    let got = fixture.ok(&["get", "big", "--value-encoding", "base64"]);
    assert!(got == format!("{base64}\n"));
    let line = format!("big\t{}\n", escaped.replace('\n', r"\x0a"));
    assert!(fixture.ok(&["scan"]) == line);
    assert!(fixture.ok(&["scan", "--reverse"]) == line);
}

#[test]
fn a_pair_with_a_time_to_live_expires_unless_it_is_persisted() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "--ttl", "1h", "session", "anna"]);
    let left = fixture.ok(&["ttl", "session"]);
    assert!(left.starts_with("35") && left.ends_with("s\n"), "{left}");
    fixture.ok(&["persist", "session", "never there"]);
    assert_eq!(fixture.ok(&["ttl", "session"]), "unlimited\n");
    // Another process takes longer than that to begin.
    fixture.ok(&["--sync", "put", "session", "bert", "--ttl", "1ms"]);
    for command in ["get", "ttl"] {
        fixture.run(&[command, "session"]).fails(1, &["`session`"]);
    }
    assert_eq!(fixture.ok(&["count"]), "0\n");
    let refused = fixture.run(&["put", "--ttl", "0s", "k", "v"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("not above 0"), "{refused:?}");
    let shell = fixture.run_with_input(&["shell"], "put --ttl 2h k v\nttl k\npersist k\nttl k\n");
    let told = shell.ok();
    assert!(
        told.starts_with("7") && told.ends_with("s\nunlimited\n"),
        "{told}"
    );
}
