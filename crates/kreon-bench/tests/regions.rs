//! The bench of many regions runs through.

use std::process::Command;

#[test]
fn a_few_hundred_regions_go_through_every_phase() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kreon-bench"));
    command.args(["regions", "--regions", "300", "--memory-mib", "16"]);
    command.args(["--puts", "500", "--rounds", "1"]);
    let output = command.arg("--dir").arg(dir.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for row in [
        "| make, buffered |",
        "| checkpoint |",
        "| open |",
        "| all regions |",
    ] {
        assert!(text.contains(row), "{text}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
