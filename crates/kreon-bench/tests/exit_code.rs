//! The command fails, and says why, when a store answers wrongly or dies; and what the others did is kept.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(dir: &Path, workloads: &str, plant: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kreon-bench"));
    command.args(["ycsb", "--preset", "quick", "--engines", "kreon"]);
    command.args([
        "--records",
        "2000",
        "--operations",
        "2000",
        "--seconds",
        "1",
    ]);
    command.args(["--memory-mib", "256", "--workloads", workloads]);
    command
        .arg("--dir")
        .arg(dir)
        .arg("--out")
        .arg(dir.join("out"));
    if let Some(plant) = plant {
        command.args(["--plant", plant]);
    }
    command.output().unwrap()
}

fn results(dir: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(dir.join("out/results.json")).unwrap()).unwrap()
}

fn records_of<'a>(results: &'a Value, engine: &str) -> Vec<&'a Value> {
    let records = results["records"].as_array().unwrap().iter();
    records
        .filter(|record| record["engine"] == engine)
        .collect()
}

#[test]
fn a_right_store_ends_the_command_well() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = run(dir.path(), "c,g", None);
    assert!(output.status.success(), "{output:?}");
    let results = results(dir.path());
    assert_eq!(records_of(&results, "kreon").len(), 4);
    assert!(results["broken"].as_array().unwrap().is_empty());
    let read = |name| std::fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    assert!(read("results.md").contains("| Load A | kreon |"));
    let page = read("report.html");
    assert!(page.matches("<svg").count() >= 5, "plots");
    // The name of a notation, which nobody fetches.
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http:", "https:", "src=", "<script", "@import"] {
        assert!(!page.contains(outside), "the page needs {outside}");
    }
}

#[test]
fn the_bare_device_takes_the_loads_only() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kreon-bench"));
    command.args(["ycsb", "--preset", "quick", "--engines", "kreon", "--sync"]);
    command.args([
        "--records",
        "200",
        "--operations",
        "200",
        "--workloads",
        "c",
    ]);
    command.arg("--dir").arg(dir.path());
    command.arg("--out").arg(dir.path().join("out"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let results = results(dir.path());
    for engine in ["device", "unwritten"] {
        let found = records_of(&results, engine);
        assert_eq!(found.len(), 1, "{engine}");
        assert_eq!(found[0]["failures"], 0);
        assert_eq!(found[0]["is_sync"], true);
    }
    assert_eq!(records_of(&results, "kreon").len(), 2);
}

#[test]
fn wrong_answers_make_the_command_fail() {
    for (plant, workloads, kind) in [
        ("value", "c", "wrong"),
        ("lost", "c", "missing"),
        ("unsorted", "g", "unsorted"),
        ("refused", "c", "errors"),
    ] {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let output = run(dir.path(), workloads, Some(plant));
        assert_eq!(output.status.code(), Some(1), "{plant}: {output:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            told.contains("wrong answers") && told.contains("kreon"),
            "{plant}: {told}"
        );
        let results = results(dir.path());
        let found = records_of(&results, "kreon");
        let failed = found
            .iter()
            .map(|record| record["failed"][kind].as_u64().unwrap());
        assert!(failed.sum::<u64>() > 0, "{plant}: {results}");
        let harness = records_of(&results, "nothing");
        assert!(
            harness.iter().all(|record| record["failures"] == 0),
            "{plant}"
        );
    }
}

#[test]
fn a_store_that_dies_makes_the_command_fail_and_keeps_the_others_results() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = run(dir.path(), "c", Some("death"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("kreon did not come to its end in round 1"),
        "{told}"
    );
    let results = results(dir.path());
    assert_eq!(results["broken"][0]["engine"], "kreon");
    assert_eq!(records_of(&results, "nothing").len(), 2);
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the results are left: {left:?}");
}
