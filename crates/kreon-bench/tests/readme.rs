//! `readme` writes the tables of a document from the folders of runs.

use std::path::Path;
use std::process::{Command, Output};

fn bench(dir: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kreon-bench"));
    let output = command
        .args(arguments.split_whitespace())
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {output:?}");
    output
}

const DOCUMENT: &str = "# Results\n\n\
    <!-- results: rates, loads of quick; workloads load_a,c -->\nold\n<!-- end of results -->\n\n\
    <!-- results: overwrite of over -->\nold\n<!-- end of results -->\n\n\
    <!-- results: recovery of open -->\nold\n<!-- end of results -->\n\n\
    <!-- results: engine of engine -->\nold\n<!-- end of results -->\n\nEnd.\n";

#[test]
fn the_tables_of_a_document_come_from_the_runs_that_it_names() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let dir = dir.path();
    for arguments in [
        "ycsb --records 2000 --operations 2000 --seconds 1 --memory-mib 256 --workloads c,g --out runs/quick",
        "overwrite --data-mib 4 --memory-mib 64 --times 2 --distributions uniform --out runs/over",
        "recovery --data-mib 4 --memory-mib 64 --rounds 1 --out runs/open",
        "figures --records 2000 --memory-mib 64 --dir . --out runs/engine",
    ] {
        bench(dir, arguments);
    }
    std::fs::write(dir.join("document.md"), DOCUMENT).unwrap();
    let readme = "readme runs/quick runs/over runs/open runs/engine --document document.md";
    bench(dir, readme);
    let text = std::fs::read_to_string(dir.join("document.md")).unwrap();
    for told in [
        "# Results\n\n<!-- results: rates, loads of quick; workloads load_a,c -->\n\n20",
        "| k ops/s, CPU us/op, p99.9 us | kreon |",
        "| Load A, kreon |",
        "| kreon, uniform | 3 |",
        "| kreon | 4 |",
        "| multi_get of 64, uniform |",
        "Settings: kreon: its defaults in",
        "<!-- end of results -->\n\nEnd.\n",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(!text.contains("old\n") && !text.contains("| G |"), "{text}");
    assert_eq!(text.matches("commit ").count(), 4, "{text}");
    bench(dir, readme);
    assert_eq!(
        std::fs::read_to_string(dir.join("document.md")).unwrap(),
        text
    );
}

#[test]
fn a_document_that_asks_for_a_run_that_is_not_there_stays_as_it_is() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    bench(
        dir.path(),
        "figures --records 2000 --memory-mib 64 --dir . --out engine",
    );
    std::fs::write(dir.path().join("document.md"), DOCUMENT).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kreon-bench"));
    command.args(["readme", "engine", "--document", "document.md"]);
    let output = command.current_dir(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("document.md: line 3: no folder quick was given"),
        "{told}"
    );
    let text = std::fs::read_to_string(dir.path().join("document.md")).unwrap();
    assert_eq!(text, DOCUMENT);
}
