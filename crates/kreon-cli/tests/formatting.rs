//! Commands that make a store do so on nothing, and over something only with a flag.

mod fixture;

use std::fs;

use fixture::Fixture;

#[test]
fn no_command_makes_a_store_over_something_else_without_the_flag() {
    let fixture = Fixture::new();
    let rows = fixture.file("rows.csv", "key,value\na,1\n");
    let commands: [&[&str]; 4] = [
        &["put", "a", "1"],
        &["import", &rows],
        &["regions", "create", "r"],
        &["shell"],
    ];
    let mut text = vec![0; 200 << 10];
    text.extend_from_slice(b"a text behind zeroes");
    for content in [text, vec![0; 1 << 20]] {
        for command in commands {
            fs::write(fixture.store(), &content).unwrap();
            let words = ["not a Kreon store", "shell take --format-store"];
            fixture.run(command).fails(2, &words);
            assert!(fs::read(fixture.store()).unwrap() == content, "{command:?}");
            let command = [command, &["--format-store"]].concat();
            fixture.ok(&command);
            fixture.ok(&["verify"]);
        }
    }
    fs::write(fixture.store(), "text").unwrap();
    fixture.ok(&["put", "a", "1", "--format"]);
    fixture.run(&["get", "a", "--format"]).fails_wrongly_used();
}

impl fixture::Run {
    fn fails_wrongly_used(&self) {
        assert_eq!(self.code, 2, "{self:?}");
    }
}

#[test]
fn a_damaged_store_is_to_be_repaired_and_is_formatted_on_demand_only() {
    let fixture = Fixture::new();
    let rows: String = (0..5000).map(|row| format!("key{row},{row}\n")).collect();
    let rows = fixture.file("rows.csv", rows);
    fixture.ok(&["import", &rows, "--no-header", "--quiet"]);
    let mut bytes = fs::read(fixture.store()).unwrap();
    for wiped in [128 << 10, 256 << 10, 1 << 20] {
        bytes[..wiped].fill(0);
        fs::write(fixture.store(), &bytes).unwrap();
        for command in [&["put", "k", "v"][..], &["get", "k"], &["import", &rows]] {
            fixture.run(command).fails(3, &["kreon repair"]);
        }
        let target = fixture.path("repaired");
        let path = target.to_str().unwrap();
        // With the first MiB the catalogue went, and with it the name of the region.
        let repaired = fixture.run(&["repair", fixture.store().to_str().unwrap(), path]);
        assert!(matches!(repaired.code, 0 | 3), "{repaired:?}");
        let of_target = |args: &[&str]| fixture::run(fixture.command_on(&target, args), b"").ok();
        let region = of_target(&["regions"]);
        let counted = of_target(&["count", "--region", region.trim()]);
        assert_eq!(counted.trim(), "5000", "after {wiped} zeroes");
        fs::remove_file(&target).unwrap();
    }
    fixture.ok(&["put", "k", "v", "--format-store"]);
    assert_eq!(fixture.ok(&["count"]).trim(), "1");
    // A store that opens is never formatted.
    fixture.ok(&["put", "l", "v", "--format-store"]);
    assert_eq!(fixture.ok(&["count"]).trim(), "2");
}
