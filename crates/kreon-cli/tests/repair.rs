//! `kreon repair`: a new store, and what is lost on standard output.

mod fixture;

use std::fs;
use std::process::Stdio;

use fixture::Fixture;

#[test]
fn a_healthy_store_is_salvaged_whole_and_a_damaged_one_exits_with_3() {
    let fixture = Fixture::new();
    let value = "v".repeat(300);
    fixture.ok(&["put", "first", &value]);
    fixture.ok(&["put", "second", "whole", "--sync"]);
    let (source, target) = (fixture.store(), fixture.path("target"));
    let (source, target) = (source.to_str().unwrap(), target.to_str().unwrap());
    let told = fixture.ok(&["repair", source, target]);
    assert!(told.contains("2 pairs in region default"), "{told}");
    let there = fixture.run(&["repair", source, target]);
    assert_eq!(there.code, 2, "{there:?}");
    fs::remove_file(target).unwrap();

    let mut bytes = fs::read(source).unwrap();
    let at = bytes
        .windows(300)
        .position(|found| found == value.as_bytes())
        .unwrap();
    bytes[at + 100] ^= 1;
    fs::write(source, &bytes).unwrap();
    let refused = fixture.run(&["get", "second"]);
    assert!(
        refused.code == 3 && refused.stderr.contains("kreon repair"),
        "{refused:?}"
    );
    let run = fixture.run(&["repair", source, target]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stdout.contains("1 pairs in region default"), "{run:?}");
    assert!(run.stdout.contains("lost: writes in"), "{run:?}");
    assert!(fs::read(source).unwrap() == bytes);
}

#[test]
fn a_loss_decides_the_exit_code_also_where_nobody_reads_the_list() {
    let fixture = Fixture::new();
    let value = "v".repeat(300);
    fixture.ok(&["put", "first", &value]);
    fixture.ok(&["put", "second", "whole", "--sync"]);
    let (source, target) = (fixture.store(), fixture.path("target"));
    let (source, target) = (source.to_str().unwrap(), target.to_str().unwrap());
    let mut bytes = fs::read(source).unwrap();
    let at = bytes
        .windows(300)
        .position(|found| found == value.as_bytes())
        .unwrap();
    bytes[at + 100] ^= 1;
    fs::write(source, &bytes).unwrap();
    let mut child = fixture
        .command(&["repair", source, target])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}
