//! `kreon backup`, `restore` and `verify-backup`.

mod fixture;

use std::fs;

use fixture::{Fixture, bare_command, run};

#[test]
fn a_backup_is_restored_and_a_damaged_one_exits_with_3() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "first", "1"]);
    let (folder, target) = (fixture.path("backups"), fixture.path("restored"));
    let (folder, target) = (folder.to_str().unwrap(), target.to_str().unwrap());
    let told = fixture.ok(&["backup", folder]);
    assert!(told.contains("1 backup"), "{told}");
    fixture.ok(&["put", "second", "2"]);
    let told = fixture.ok(&["backup", folder, "--json", "--rate", "1G"]);
    let made: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (made["number"].as_u64(), made["before"].as_u64()),
        (Some(2), Some(1))
    );
    assert!(
        made["copied_bytes"].as_u64() < made["bytes"].as_u64(),
        "{told}"
    );
    fixture.ok(&["verify-backup", folder]);
    fixture.ok(&["restore", folder, target]);
    let mut get = bare_command();
    get.args(["-s", target, "get", "second"]);
    assert_eq!(run(get, b"").ok().trim(), "2");
    let there = fixture.run(&["restore", folder, target]);
    assert_eq!(there.code, 2, "{there:?}");
    let manifest = fixture.path("backups/manifest-000002");
    let mut bytes = fs::read(&manifest).unwrap();
    bytes[5000] ^= 1;
    fs::write(&manifest, &bytes).unwrap();
    let damaged = fixture.run(&["verify-backup", folder]);
    assert_eq!(damaged.code, 3, "{damaged:?}");
}
