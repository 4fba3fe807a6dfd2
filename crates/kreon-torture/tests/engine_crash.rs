//! A few rounds of the kill -9 loops of KVell and Tucana.

use std::process::Command;

fn crash(engine: &str, seed: &str, wanted: &str) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kreon-torture"))
        .args([engine, "crash", "--rounds", "3", "--seed", seed, "--folder"])
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(wanted), "{said}");
}

#[test]
fn a_killed_process_loses_nothing_that_it_was_told_to_be_durable() {
    crash("kvell", "1", "acknowledged changes");
}

#[test]
fn a_killed_process_of_tucana_loses_no_commit_that_returned() {
    crash("tucana", "1", "committed changes");
}

#[test]
fn a_killed_process_of_tucana_that_is_replayed_loses_nothing_that_was_durable() {
    crash("tucana", "2", "committed changes");
}
