//! A few rounds of the kill -9 loop of Tucana.

use std::process::Command;

#[test]
fn a_killed_process_of_tucana_loses_no_commit_that_returned() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kreon-torture"))
        .args(["tucana", "crash", "--rounds", "3", "--folder"])
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("committed changes"), "{said}");
}
