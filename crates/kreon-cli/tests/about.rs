//! version, completions and man: commands that need no store.

mod fixture;

use fixture::{Fixture, bare_command, run};

fn ok(args: &[&str]) -> String {
    let mut command = bare_command();
    command.args(args);
    run(command, b"").ok()
}

#[test]
fn the_version_tells_which_stores_it_opens() {
    let told = ok(&["version"]);
    let first = format!("kreon {}\n", env!("CARGO_PKG_VERSION"));
    assert!(told.starts_with(&first), "{told}");
    assert!(told.contains("opens 1 to "), "{told}");
    let object: serde_json::Value = serde_json::from_str(&ok(&["version", "--json"])).unwrap();
    let object = object.as_object().unwrap();
    let names: Vec<_> = object.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "format_version",
            "format_version_min",
            "profile",
            "target",
            "version"
        ]
    );
}

#[test]
fn completions_of_each_shell_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = ok(&["completions", shell]);
        for word in ["import", "regions", "skip-bad", "completions"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let fixture = Fixture::new();
    let folder = fixture.path("man/man1");
    assert_eq!(ok(&["man", "--out", folder.to_str().unwrap()]), "");
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    for command in [
        "put",
        "get",
        "import",
        "shell",
        "stats",
        "repair",
        "regions-drop",
        "regions-options",
    ] {
        let page = page(&format!("kreon-{command}.1"));
        assert!(page.contains(".SH NAME"), "{command}");
    }
    assert!(page("kreon.1").contains("no such store"));
    assert!(page("kreon-get.1").contains("Print the value of a key"));
    assert!(ok(&["man"]).contains("no such store"));
    run_on_file(&fixture);
}

fn run_on_file(fixture: &Fixture) {
    let file = fixture.file("file", "");
    let mut command = bare_command();
    command.args(["man", "--out", &file]);
    run(command, b"").fails(6, &[&file]);
}
