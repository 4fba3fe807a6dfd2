//! Everything that must pass before a change lands.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::crash::CrashArguments;
use crate::workspace::cargo;
use crate::{cluster_sim, crash, floors, package, zookeeper};

/// Rounds of the kill -9 loop: enough to notice a broken recovery, few enough to wait for.
const CRASH_ROUNDS: u32 = 10;

/// Random walks of the cluster's protocol: enough that each class of faults happens, which the command checks.
const CLUSTER_WALKS: u32 = 300;

/// Runs the steps in order and stops at the first that fails. The last line sums up the tests.
pub fn run() -> Result<()> {
    let mut tests = Tally::default();
    let outcome = steps(&mut tests);
    if let Err(error) = &outcome {
        println!("\nci: FAILED at {error:#}");
    }
    if tests != Tally::default() {
        println!("{} passed, {} failed", tests.passed, tests.failed);
    }
    if outcome.is_err() {
        // Not by returning the error: nothing may be printed behind the sum.
        std::process::exit(1);
    }
    Ok(())
}

fn steps(tests: &mut Tally) -> Result<()> {
    step("rustfmt", || {
        check(cargo().args(["fmt", "--all", "--", "--check"]))
    })?;
    step("clippy", || {
        let arguments = "clippy --workspace --all-targets -- -D warnings";
        check(cargo().args(arguments.split(' ')))?;
        // What `mapping --demands` wants, and nothing else is built with.
        let arguments = "clippy -p kreon-mapping -p kreon-bench --all-targets --features kreon-bench/lock-times -- -D warnings";
        check(cargo().args(arguments.split(' ')))?;
        // In the workspace `kreon-bench` turns on the feature `comparison` for all: what users build is another build.
        let arguments = "clippy -p kreon-cli -- -D warnings";
        check(cargo().args(arguments.split(' ')))
    })?;
    step("floors", || floors::run(&floors::Arguments::default()))?;
    step("doc", || {
        check(
            cargo()
                .args(["doc", "--workspace", "--no-deps"])
                .env("RUSTDOCFLAGS", "-D warnings"),
        )
    })?;
    step("package", || package::run(&package::Arguments::default()))?;
    let mut has_zookeeper = false;
    step("zookeeper", || {
        has_zookeeper = zookeeper::fetch_for_tests()?;
        Ok(())
    })?;
    step("test", || {
        let mut command = cargo();
        command.args(["test", "--workspace", "--no-fail-fast"]);
        if has_zookeeper {
            // Then none of the tests that want it may skip itself.
            command.env("KREON_ZOOKEEPER_REQUIRED", "1");
        }
        run_tests(&mut command, tests)?;
        let arguments = "test -p kreon-mapping --features lock-times --test lock_times";
        run_tests(cargo().args(arguments.split(' ')), tests)
    })?;
    step("cluster-sim", || {
        let walks = cluster_sim::Arguments::walks(CLUSTER_WALKS);
        cluster_sim::run(&walks, cluster_sim::Profile::OfTests)
    })?;
    step("crash", || crash::run(&CrashArguments::short(CRASH_ROUNDS)))
}

fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("\n== {name}");
    let start = Instant::now();
    let outcome = work().with_context(|| name.to_owned());
    println!("== {name}: {:.1} s", start.elapsed().as_secs_f64());
    outcome
}

fn check(command: &mut Command) -> Result<()> {
    let status = command.status().context("cannot start cargo")?;
    ensure!(status.success(), "cargo ended with {status}");
    Ok(())
}

/// Runs a test command, shows its output as it comes, and adds up its result lines.
fn run_tests(command: &mut Command, tests: &mut Tally) -> Result<()> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    let output = child.stdout.take().context("cargo has no output")?;
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    // Tests may print anything: bytes, not text.
    while output.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        tests.add(&String::from_utf8_lossy(&line));
        line.clear();
    }
    let status = child.wait()?;
    if tests.failed > 0 {
        bail!("{} of the tests failed", tests.failed);
    }
    ensure!(status.success(), "cargo ended with {status}");
    ensure!(tests.passed > 0, "no test ran");
    Ok(())
}

/// How many tests ended how.
#[derive(Default, PartialEq, Debug)]
struct Tally {
    passed: u64,
    failed: u64,
}

impl Tally {
    /// Adds `test result: ok. 3 passed; 0 failed; ...`; any other line counts nothing.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let counts = result.split_once(". ").map_or(result, |(_, counts)| counts);
        for count in counts.split(';') {
            match count.trim().split_once(' ') {
                Some((n, "passed")) => self.passed += n.parse().unwrap_or(0),
                Some((n, "failed")) => self.failed += n.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_add_up() {
        let mut tally = Tally::default();
        tally.add("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n");
        tally.add("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured\n");
        tally.add("test imports::tests::groups ... ok\n");
        let expected = Tally {
            passed: 15,
            failed: 2,
        };
        assert_eq!(tally, expected);
    }
}
