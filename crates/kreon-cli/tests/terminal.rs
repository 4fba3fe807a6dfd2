//! The shell at a terminal.

mod fixture;

use fixture::Fixture;
use rexpect::process::WaitStatus;
use rexpect::session::{PtySession, spawn_command};

/// Only a test that fails waits so long.
const PATIENCE_MS: u64 = 60_000;

fn shell(fixture: &Fixture) -> PtySession {
    let mut command = fixture.command(&["shell"]);
    command.env("TERM", "xterm");
    let mut session = spawn_command(command, Some(PATIENCE_MS)).unwrap();
    session.exp_string("default> ").unwrap();
    session
}

fn leave(mut session: PtySession) {
    session.send_control('d').unwrap();
    session.exp_eof().unwrap();
    let status = session.process().wait().unwrap();
    assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
}

#[test]
fn tab_completes_commands_regions_and_keys_and_the_history_comes_back() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "gr/chania", "53910"]);
    fixture.ok(&["put", "gr/a b", "two words"]);
    fixture.ok(&["-r", "towns", "put", "k", "elsewhere"]);
    let mut shell = shell(&fixture);
    for (typed, printed, prompt) in [
        ("get gr/ch\t\r", "53910\r\n", "default> "),
        ("get gr/a\t\r", "two words\r\n", "default> "),
        ("coun\t\r", "2\r\n", "default> "),
        ("\u{1b}[A\r", "2\r\n", "default> "),
        ("region to\t\r", "\r\n", "towns> "),
        ("get k\r", "elsewhere\r\n", "towns> "),
    ] {
        shell.send(typed).unwrap();
        shell.flush().unwrap();
        shell.exp_string(printed).unwrap();
        shell.exp_string(prompt).unwrap();
    }
    leave(shell);
}

#[test]
fn ctrl_c_gives_a_fresh_prompt_and_ends_a_running_scan() {
    let fixture = Fixture::new();
    let store = kreon::Store::open(fixture.store()).unwrap();
    let region = store.region("default").unwrap();
    let value = "v".repeat(200);
    let pairs = (0..100_000).map(|i| (format!("key{i:06}"), &value));
    region.ingest(pairs).unwrap();
    store.close().unwrap();
    drop((region, store));

    let mut shell = shell(&fixture);
    shell.send("put half a line").unwrap();
    shell.flush().unwrap();
    shell.exp_string("half a line").unwrap();
    shell.send_control('c').unwrap();
    shell.exp_string("default> ").unwrap();
    shell.send("scan\r").unwrap();
    shell.flush().unwrap();
    shell.exp_string("key000010").unwrap();
    shell.send_control('c').unwrap();
    let printed = shell.exp_string("interrupted by SIGINT").unwrap();
    assert!(!printed.contains("key099999"), "the scan ran to its end");
    shell.exp_string("default> ").unwrap();
    shell.send("count --prefix key09999\r").unwrap();
    shell.flush().unwrap();
    shell.exp_string("10\r\n").unwrap();
    shell.exp_string("default> ").unwrap();
    leave(shell);
}

#[test]
fn a_terminal_is_shown_escapes_for_what_it_cannot_show() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "-e", "k", r"\x1b[2Jred\xff"]);
    fixture.ok(&["put", "path", r"C:\x64"]);
    for (key, shown) in [("k", r"\x1b[2Jred\xff"), ("path", r"C:\x64")] {
        let mut get = spawn_command(fixture.command(&["get", key]), Some(PATIENCE_MS)).unwrap();
        assert_eq!(get.exp_eof().unwrap().trim_end(), shown);
    }
}
