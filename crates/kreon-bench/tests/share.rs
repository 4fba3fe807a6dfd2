//! The share of the device's rate is measured at every depth, and told with a verdict.

use std::process::{Command, Output};

fn share(more: &[&str]) -> (Output, usize) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kreon-bench"));
    command.args(["share", "--data-mib", "12", "--seconds", "0.1"]);
    command.args(["--warm-seconds", "0.05", "--slice-ms", "20"]);
    command.args(more).arg("--dir").arg(dir.path());
    let output = command.output().unwrap();
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    (output, left)
}

#[test]
fn each_workload_is_measured_at_each_depth_beside_the_bare_device() {
    let (output, left) = share(&["--workloads", "f,c", "--depths", "4,16", "--sync"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(left, 0, "the store is deleted");
    let text = String::from_utf8_lossy(&output.stdout);
    for keys in ["uniform", "zipfian"] {
        for workload in ["F", "C"] {
            for depth in [4, 16] {
                let line = format!("| {workload} | {keys} | {depth} | ");
                assert!(text.contains(&line), "{line}: {text}");
            }
        }
    }
    let lines: Vec<_> = text.lines().filter(|it| it.contains("reached")).collect();
    assert_eq!(lines.len(), 8, "{text}");
    assert!(text.contains("bytes a key"), "{text}");
}

#[test]
fn other_stores_and_workloads_that_insert_or_scan_are_refused() {
    for (more, why) in [
        (["--engine", "kreon"], "no share of kreon"),
        (["--workloads", "a,e"], "E does not only read and update"),
    ] {
        let (output, left) = share(&more);
        assert_eq!((output.status.code(), left), (Some(1), 0));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(why), "{told}");
    }
}
