//! The ablations of the mapping run through, and their results are written.

use std::process::Command;

use serde_json::Value;

#[test]
fn pool_and_mmap_go_through_every_workload() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let out = dir.path().join("out");
    for variant in ["fifo", "willneed"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kreon-bench"));
        command.args(["mapping", "--records", "4000", "--inserts", "4000"]);
        command.args([
            "--seconds",
            "0.05",
            "--memory-mib",
            "160",
            "--only",
            variant,
        ]);
        command.arg("--dir").arg(dir.path()).arg("--out").arg(&out);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = std::fs::read(out.join("mapping.json")).unwrap();
        let results: Value = serde_json::from_slice(&text).unwrap();
        let rows = results["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 5);
        for row in rows {
            assert!(row["variant"].as_str().unwrap().contains(variant));
            assert!(row["requests"].as_u64().unwrap() > 0, "{row}");
            assert!(row["peak_rss_bytes"].as_u64().unwrap() > 0, "{row}");
            assert_eq!(row["is_mapped"], variant == "willneed");
        }
        let table = std::fs::read_to_string(out.join("mapping.md")).unwrap();
        assert!(table.contains("| C uniform |"), "{table}");
    }
    let left = std::fs::read_dir(dir.path()).unwrap();
    assert_eq!(left.count(), 1, "the stores are deleted");
}
