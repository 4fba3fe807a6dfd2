//! The shell, fed from a pipe.

mod fixture;

use fixture::{Fixture, Run};

fn shell(fixture: &Fixture, lines: &str) -> Run {
    fixture.run_with_input(&["shell"], lines)
}

#[test]
fn lines_from_a_pipe_are_run_without_prompts() {
    let fixture = Fixture::new();
    let run = shell(
        &fixture,
        "put a 1\n\n  put 'b c' \"two words\"\r\nscan\ncount --prefix b\ndelete a\nscan -k\nget 'b c'",
    );
    assert_eq!(run.ok(), "a\t1\nb c\ttwo words\n1\nb c\ntwo words\n");
    assert_eq!(fixture.ok(&["get", "b c"]), "two words\n");
}

#[test]
fn the_region_changes_for_the_lines_that_follow() {
    let fixture = Fixture::new();
    let run = shell(
        &fixture,
        "put k 1\nregion towns\nregion\nput k 2\nregion default\nget k\nregions\n",
    );
    assert_eq!(run.ok(), "towns\n1\ndefault\ntowns\n");
    assert_eq!(fixture.ok(&["-r", "towns", "get", "k"]), "2\n");
}

#[test]
fn a_failed_line_is_told_the_next_runs_and_the_first_failure_is_the_exit_code() {
    let fixture = Fixture::new();
    let run = shell(
        &fixture,
        "put k v\nget nothing\nput \"open\nfrobnicate\nget k\n",
    );
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(run.stdout, "v\n");
    let told: Vec<_> = run.stderr.lines().collect();
    assert_eq!(told.len(), 3, "{run:?}");
    assert!(told[0].contains("not found"), "{run:?}");
    assert!(told[1].contains("quote"), "{run:?}");
    assert!(told[2].contains("frobnicate"), "{run:?}");
}

#[test]
fn quit_leaves_and_help_lists_the_commands() {
    let fixture = Fixture::new();
    let run = shell(&fixture, "help\nquit\nput k v\n");
    let help = run.ok();
    for command in [
        "put", "get", "delete", "scan", "count", "region", "stats", "quit",
    ] {
        assert!(
            help.contains(&format!("  {command} ")),
            "no {command} in {help}"
        );
    }
    fixture.run(&["get", "k"]).fails(1, &[]);
    let run = shell(&fixture, "scan --help\nhelp put\n");
    assert!(run.ok().contains("--reverse"));
}

#[test]
fn bytes_are_written_with_escapes_in_any_encoding() {
    let fixture = Fixture::new();
    let run = shell(
        &fixture,
        "put \\x00a \"\\xff\"\nscan\nstats\nverify\nsync\n",
    );
    let out = run.ok();
    assert!(out.starts_with("\\x00a\t\\xff\n"), "{out}");
    assert!(out.contains(" 0 problems\n"), "{out}");
    let hex = fixture.run_with_input(&["--encoding", "hex", "shell"], "get 0061\n");
    assert_eq!(hex.ok(), "ff\n");
}
