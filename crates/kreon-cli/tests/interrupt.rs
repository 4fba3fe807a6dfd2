//! SIGINT and SIGTERM during an import.

mod fixture;

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fixture::Fixture;

const ROWS: u64 = 60_000;

fn send(signal: &str, child: &Child) {
    let kill = format!("kill -{signal} {}", child.id());
    assert!(
        Command::new("sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
}

/// Gives `rows` to an import through a pipe that stays open, then the signal. Returns the exit code and what was told.
fn interrupt(fixture: &Fixture, rows: &str, signal: &str) -> (i32, String) {
    let args = ["import", "-", "--format", "csv", "--no-header"];
    let mut child = fixture
        .command(&args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // What is not in the pipe any more, or read ahead, is in the import: it listens to signals since it began.
    stdin.write_all(rows.as_bytes()).unwrap();
    send(signal, &child);
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("the import waits for its input");
        }
        sleep(Duration::from_millis(5));
    };
    drop(stdin);
    let mut told = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    (status.code().expect("ended by itself"), told)
}

/// The number before `word`.
fn number_before(told: &str, word: &str) -> u64 {
    let before = told.split(word).next().unwrap();
    before.split_whitespace().last().unwrap().parse().unwrap()
}

fn count(fixture: &Fixture) -> u64 {
    fixture.ok(&["count"]).trim().parse().unwrap()
}

#[test]
fn an_interrupted_import_says_what_is_stored_and_goes_on_from_there() {
    let fixture = Fixture::new();
    let rows: String = (0..ROWS)
        .map(|i| format!("key{:06},value number {i:06} of many\n", i * 7919 % ROWS))
        .collect();
    let (code, told) = interrupt(&fixture, &rows, "INT");
    assert_eq!(code, 130, "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    let read = number_before(&told, " rows read");
    assert!((1..=ROWS).contains(&read), "{told}");
    assert_eq!(
        number_before(&told, " of them are in the store and durable"),
        read
    );
    assert_eq!(count(&fixture), read, "{told}");
    let skip = format!("--skip-rows {read}");
    assert!(told.trim_end().ends_with(&skip), "{told}");

    let file = fixture.file("rows.csv", &rows);
    let skipped = read.to_string();
    fixture.ok(&[
        "import",
        &file,
        "--no-header",
        "-q",
        "--skip-rows",
        &skipped,
    ]);
    assert_eq!(count(&fixture), ROWS);
}

#[test]
fn an_interrupted_load_of_sorted_rows_leaves_none_and_says_so() {
    let fixture = Fixture::new();
    let rows: String = (0..ROWS)
        .map(|i| format!("key{i:06},value number {i:06} of many\n"))
        .collect();
    let (code, told) = interrupt(&fixture, &rows, "TERM");
    assert_eq!(code, 143, "{told}");
    assert!(
        told.starts_with("kreon: interrupted by SIGTERM: "),
        "{told}"
    );
    assert!(
        number_before(&told, " rows read, none of them stored") > 1000,
        "{told}"
    );
    assert!(
        told.contains("all or nothing; import the file again"),
        "{told}"
    );
    assert_eq!(count(&fixture), 0);
    fixture.ok(&["verify"]);
}
