//! `overwrite` measures space and writes, checks every record in the end, and fails when one is not what was written
//! last.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(dir: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kreon-bench"));
    command.args(["overwrite", "--data-mib", "4", "--memory-mib", "64"]);
    command.args(["--times", "2", "--interval-seconds", "0.02"]);
    command.args(more);
    command
        .arg("--dir")
        .arg(dir)
        .arg("--out")
        .arg(dir.join("out"));
    command.output().unwrap()
}

fn results(dir: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(dir.join("out/overwrite.json")).unwrap()).unwrap()
}

#[test]
fn a_right_store_ends_the_command_well_and_all_figures_are_there() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = run(
        dir.path(),
        &["--distributions", "uniform,zipfian,true-zipfian"],
    );
    assert!(output.status.success(), "{output:?}");
    let results = results(dir.path());
    let runs = results["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    for run in runs {
        let number = |name: &str| {
            run[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name}: {run}"))
        };
        let records = number("records");
        assert_eq!(number("live_bytes"), records * 1030.0);
        assert_eq!(number("operations"), records * 2.0);
        assert_eq!(number("given_bytes"), records * 2060.0);
        assert_eq!(number("failures"), 0.0);
        // The log alone has every byte that was given, and this much data fits into memory.
        assert!(number("written_per_byte") >= 1.0, "{run}");
        assert!(number("space_amplification_max") >= 1.0, "{run}");
        assert!(number("space_amplification_max") >= number("space_amplification_median"));
        assert!(number("cpu_us_per_op") > 0.0 && number("p9999_us") > 0.0);
        let inside = &run["samples"].as_array().unwrap().last().unwrap()["inside"];
        assert!(inside["write_bytes"].as_f64().unwrap() >= number("given_bytes"));
        assert!(inside["log_bytes"].as_u64() >= inside["log_live_bytes"].as_u64());
        let tenths = run["tenths"].as_array().unwrap();
        assert!(tenths.len() == 10 && tenths.iter().all(|rate| rate.as_f64().unwrap() > 0.0));
    }
    let read = |name| std::fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    let text = read("overwrite.md");
    assert!(text.contains("YCSB's scrambled Zipfian") && text.contains("a true Zipfian"));
    let page = read("overwrite.html");
    assert_eq!(page.matches("<svg").count(), 6, "two plots each");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the results are left: {left:?}");
}

#[test]
fn targets_stand_beside_what_analysis_says() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = run(
        dir.path(),
        &["--distributions", "uniform", "--targets", "1.3,2"],
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(results(dir.path())["runs"].as_array().unwrap().len(), 2);
    let text = std::fs::read_to_string(dir.path().join("out/overwrite.md")).unwrap();
    let row = |start| text.lines().find(|line| line.starts_with(start));
    assert!(
        row("| 1.3 |").is_some_and(|row| row.contains("| 2.36 | 2.39 |")),
        "{text}"
    );
    assert!(
        row("| 2 |").is_some_and(|row| row.contains("| 1.26 | 1.26 |")),
        "{text}"
    );
}

#[test]
fn the_time_ends_a_run() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let more = [
        "--distributions",
        "uniform",
        "--times",
        "100000",
        "--seconds",
        "0.3",
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_kreon-bench"));
    command.args(["overwrite", "--data-mib", "1", "--memory-mib", "64"]);
    command.args(more).arg("--dir").arg(dir.path());
    command.arg("--out").arg(dir.path().join("out"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(results(dir.path())["runs"][0]["is_cut"], true);
}

#[test]
fn records_that_are_not_what_was_written_last_make_the_command_fail() {
    for (plant, kind) in [
        ("lost", "wrong"),
        ("value", "wrong"),
        ("unsorted", "unsorted"),
    ] {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let output = run(
            dir.path(),
            &["--distributions", "uniform", "--plant", plant],
        );
        assert_eq!(output.status.code(), Some(1), "{plant}: {output:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("wrong answers"), "{plant}: {told}");
        let run = &results(dir.path())["runs"][0];
        assert!(run["failed"][kind].as_u64().unwrap() > 0, "{plant}: {run}");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = run(
        dir.path(),
        &["--distributions", "uniform", "--plant", "death"],
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(results(dir.path())["broken"][0]["engine"], "kreon");
}
