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
    assert!(told[0].contains("not found: no key `nothing`"), "{run:?}");
    assert!(told[1].contains("a quote is not closed"), "{run:?}");
    assert!(told[2].contains("frobnicate"), "{run:?}");
}

#[test]
fn what_is_wrong_with_a_line_is_told_whole() {
    let fixture = Fixture::new();
    let run = shell(&fixture, "ge k\nput\nscan --prefx a\nregions drop x\n");
    assert_eq!(run.code, 2, "{run:?}");
    for part in [
        "similar subcommand exists: 'get'",
        "<KEY>",
        "Usage: put",
        "a similar argument exists: '--prefix'",
        "there is no region \"x\"; check --region",
    ] {
        assert!(run.stderr.contains(part), "no `{part}` in {}", run.stderr);
    }
}

#[test]
fn lines_are_cut_as_in_sh() {
    let fixture = Fixture::new();
    let run = shell(
        &fixture,
        "put 'C:\\x64' \"a b\"  # a comment\nput a\\ b 'say \"hi\"'\nput -- -x -5\nget 'C:\\x64'\nget 'a b'\nget -- -x\n",
    );
    assert_eq!(run.ok(), "a b\nsay \"hi\"\n-5\n");
}

#[test]
fn a_region_that_is_not_there_yet_is_told() {
    let fixture = Fixture::new();
    let run = shell(&fixture, "put k v\nregion nosuch\nregion default\n");
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(
        run.stderr,
        "kreon: region `nosuch` does not exist yet; the first put makes it\n"
    );
}

#[test]
fn a_line_may_have_options_of_its_own() {
    let fixture = Fixture::new();
    let run = shell(
        &fixture,
        "put -r other --sync k 1\nput --escapes '\\x41' 2\nget -r other k\nget A\nregion\n",
    );
    assert_eq!(run.ok(), "1\n2\ndefault\n");
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
    fixture.run(&["get", "k"]).fails(8, &[]);
    let run = shell(&fixture, "scan --help\nhelp put\n");
    assert!(run.ok().contains("--reverse"));
}

#[test]
fn bytes_are_written_with_escapes_in_any_encoding() {
    let fixture = Fixture::new();
    let run = shell(
        &fixture,
        "put -e '\\x00a' \"\\xff\"\nscan\nstats\nverify\nsync\n",
    );
    let out = run.ok();
    assert!(out.starts_with("\\x00a\t\\xff\n"), "{out}");
    assert!(out.contains(" 0 problems\n"), "{out}");
    let hex = fixture.run_with_input(&["--encoding", "hex", "shell"], "get 0061\n");
    assert_eq!(hex.ok(), "ff\n");
}

#[test]
fn a_line_formats_no_store() {
    let fixture = Fixture::new();
    for line in ["put a 1 --format-store", "regions create r --format"] {
        let refused = fixture.run_with_input(&["shell"], line);
        refused.fails(2, &["the store is open"]);
    }
    let help = fixture.run_with_input(&["shell"], "put --help\nregions create --help\n");
    assert!(!help.ok().contains("--format"));
    assert_eq!(fixture.ok(&["regions"]).trim(), "");
}
