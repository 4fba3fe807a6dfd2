//! A short run on this machine, as anybody: no network namespaces, no disks.

use std::io::Write;
use std::process::Command;

use kreon_zookeeper::Jars;

#[test]
fn killed_and_frozen_servers_lose_nothing_that_was_acknowledged() {
    if let Err(error) = Jars::find(&Jars::cache()) {
        // The test harness would swallow it.
        let _ = writeln!(std::io::stderr(), "SKIPPED, no ZooKeeper: {error}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("figures");
    let mut torture = Command::new(env!("CARGO_BIN_EXE_kreon-cluster-torture"));
    torture.args([
        "--plain",
        "--zookeepers",
        "1",
        "--groups",
        "2",
        "--clients",
        "3",
    ]);
    torture.args(["--minutes", "0.2", "--only", "kill -9", "--only", "frozen"]);
    torture.arg("--data").arg(folder.path().join("data"));
    torture.arg("--json").arg(&json);
    let output = torture.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{wrong}");
    let figures: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(figures["violations"], 0);
    assert!(figures["judged"].as_u64().unwrap() > 500, "{said}");
    assert!(
        figures["classes"]["kill -9"]["faults"].as_u64() >= Some(1),
        "{said}"
    );
    // Nobody waits so long for writes without a change that the servers log.
    let longest = figures["longest"].as_array().unwrap().iter();
    let late = longest.filter(|course| course["ms"].as_f64() > Some(1000.0));
    for course in late {
        let mut steps = course["steps"].as_array().unwrap().iter();
        assert!(steps.any(|step| step["server"].is_u64()), "{said}");
    }
}
