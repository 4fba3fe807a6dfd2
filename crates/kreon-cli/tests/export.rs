//! What `export` writes, `import` reads back to the same pairs.

mod fixture;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fixture::{Fixture, run};

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Everything that a format or an encoding could stumble over, and bytes without any order.
fn awkward_pairs() -> Pairs {
    let awkward: [&[u8]; 20] = [
        b"",
        b" ",
        b"plain",
        b"a,b",
        b"a\tb",
        b"\"",
        b"say \"hi\"",
        b"\r\n",
        b"line\nline",
        b"\r",
        br"\x41",
        br"\\x41",
        br"\",
        br#"{"a":"\n"}"#,
        b"\0",
        b"\xff",
        b"\xef\xbb\xbfmark",
        b"\xed\xa0\x80",
        "東京 é".as_bytes(),
        b"\\\xff",
    ];
    let mut pairs = Pairs::new();
    for (i, key) in awkward.iter().enumerate() {
        pairs.insert(key.to_vec(), awkward[awkward.len() - 1 - i].to_vec());
    }
    let mut state = 1u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    for _ in 0..100 {
        let key = (0..byte() % 40).map(|_| byte()).collect();
        pairs.insert(key, (0..byte()).map(|_| byte()).collect());
    }
    pairs.insert(b"long".to_vec(), vec![b'"'; 300_000]);
    // Longer than what is encoded at once: characters and escapes lie across every border.
    for (key, part) in [
        (&b"long text"[..], "東\\x41\u{1f600}\"\n,\t".as_bytes()),
        (b"long bytes", b"\\x41\xf0\x9f\x98\xff\"\n\r,\0"),
        (b"long mark", "\u{feff}".as_bytes()),
    ] {
        pairs.insert(key.to_vec(), part.repeat(200_000 / part.len()));
    }
    pairs
}

fn open(path: &Path) -> kreon::Region {
    kreon::Store::options()
        .memory_bytes(16 << 20)
        .open(path)
        .unwrap()
        .region("default")
        .unwrap()
}

fn write_pairs(path: &Path, pairs: &Pairs) {
    let region = open(path);
    for (key, value) in pairs {
        region
            .put_with(key, value, kreon::Durability::Buffered)
            .unwrap();
    }
}

fn read_pairs(path: &Path) -> Pairs {
    let region = open(path);
    let pairs = region.iter().map(|pair| {
        let (key, value) = pair.unwrap();
        (key.to_vec(), value.to_vec())
    });
    pairs.collect()
}

#[test]
fn every_format_and_encoding_reads_back_to_the_same_pairs() {
    let fixture = Fixture::new();
    let pairs = awkward_pairs();
    write_pairs(&fixture.store(), &pairs);
    for format in ["csv", "tsv", "jsonl", "lines"] {
        for encoding in ["text", "escapes", "hex", "base64"] {
            for header in [&[][..], &["--no-header"]] {
                let case = format!("{format}-{encoding}-{}", header.len());
                let file = fixture.path(&format!("{case}.{format}"));
                let file = file.to_str().unwrap();
                let format = ["--format", format, "--encoding", encoding];
                let options = [&format[..], header].concat();
                fixture.ok(&[&["export", file][..], &options].concat());
                let copy = fixture.path(&case);
                let import = [&["import", file][..], &options].concat();
                run(fixture.command_on(&copy, &import), b"").ok();
                assert!(read_pairs(&copy) == pairs, "{case}");
                fs::remove_file(copy).unwrap();
            }
        }
    }
}

#[test]
fn lines_of_a_scan_are_imported_to_the_same_pairs() {
    let fixture = Fixture::new();
    let pairs = awkward_pairs();
    write_pairs(&fixture.store(), &pairs);
    let lines = fixture.ok(&["scan"]);
    assert_eq!(lines.lines().count(), pairs.len());
    let copy = fixture.path("copy");
    let import = ["import", "-", "--format", "lines"];
    run(fixture.command_on(&copy, &import), lines.as_bytes()).ok();
    assert!(read_pairs(&copy) == pairs);
}

#[test]
fn exported_text_is_readable() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "-e", "k\"é", r"a,\xff\x0ab"]);
    let csv = fixture.ok(&["export", "-e", "--format", "csv"]);
    assert_eq!(csv, "key,value\n\"k\"\"é\",\"a,\\xff\nb\"\n");
    let tsv = fixture.ok(&["export", "-e", "--format", "tsv", "--no-header", "-"]);
    assert_eq!(tsv, "\"k\"\"é\"\t\"a,\\xff\nb\"\n");
    let jsonl = fixture.ok(&["export", "--escapes"]);
    assert_eq!(jsonl, "{\"key\":\"k\\\"é\",\"value\":\"a,\\\\xff\\nb\"}\n");
    let plain = fixture.ok(&["export"]);
    assert_eq!(
        plain,
        "{\"key\":\"k\\\"é\",\"value_base64\":\"YSz/CmI=\"}\n"
    );
    let mixed = fixture.ok(&["export", "--value-encoding", "hex"]);
    assert_eq!(mixed, "{\"key\":\"k\\\"é\",\"value\":\"612cff0a62\"}\n");
}

#[test]
fn the_summary_goes_to_standard_error() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "k", "v"]);
    let told = fixture.run(&["export"]);
    assert!(
        told.stderr.starts_with("exported 1 rows, 24 B in "),
        "{told:?}"
    );
    assert_eq!(fixture.run(&["export", "--quiet"]).stderr, "");
}

#[test]
fn an_export_that_cannot_start_leaves_the_file_alone() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "k", "v"]);
    let file = fixture.file("old.csv", "precious");
    fixture
        .run(&["-r", "nowhere", "export", &file])
        .fails(8, &["nowhere"]);
    fixture
        .run(&["export", &fixture.file("old.txt", "")])
        .fails(2, &["--format"]);
    assert_eq!(fs::read_to_string(file).unwrap(), "precious");
}
