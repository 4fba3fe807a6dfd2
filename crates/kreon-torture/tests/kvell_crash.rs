//! A few rounds of the kill -9 loop of KVell.

use std::process::Command;

#[test]
fn a_killed_process_loses_nothing_that_it_was_told_to_be_durable() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kreon-torture"))
        .args(["kvell", "crash", "--rounds", "3", "--folder"])
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("acknowledged changes"), "{said}");
}
