//! Building with counters, running, and collecting what was counted.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::tools::Tools;
use crate::workspace::cargo;

/// Unit tests of libraries and commands, and integration tests. Examples and the code in
/// documentation are not tests.
const TESTS: [&str; 3] = ["test", "--workspace", "--tests"];

/// Counters, and found through an offset, so that they can live in a mapped file.
const FLAGS: &str = "-C instrument-coverage -C llvm-args=-runtime-counter-relocation";

/// The folders of one measurement.
pub struct Measurement {
    /// Target folder of its own: a change of compiler flags would build everything anew each time.
    target: PathBuf,
    counters: PathBuf,
}

impl Measurement {
    pub fn new(target_folder: &Path) -> Self {
        let target = target_folder.join("coverage");
        Self {
            counters: target.join("counters"),
            target,
        }
    }

    /// Builds the tests and the commands that they call; returns the executables.
    pub fn build(&self) -> Result<Vec<PathBuf>> {
        let mut tests = TESTS.to_vec();
        tests.push("--no-run");
        let mut all = self.build_some(&tests)?;
        all.extend(self.build_some(&["build", "--workspace", "--bins"])?);
        // Commands that the tests call were built by both.
        all.sort();
        all.dedup();
        ensure!(!all.is_empty(), "cargo built no tests");
        Ok(all)
    }

    fn build_some(&self, arguments: &[&str]) -> Result<Vec<PathBuf>> {
        let output = self
            .instrumented(&mut cargo(), "build")
            .args(arguments)
            .arg("--message-format=json-render-diagnostics")
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start cargo")?;
        ensure!(
            output.status.success(),
            "cargo ended with {}",
            output.status
        );
        Ok(executables(&String::from_utf8(output.stdout)?))
    }

    /// Runs all tests with fresh counters.
    pub fn run_tests(&self) -> Result<()> {
        if self.counters.exists() {
            std::fs::remove_dir_all(&self.counters).context("removing the old counters")?;
        }
        let status = self
            .instrumented(&mut cargo(), "test")
            .args(TESTS)
            .arg("--no-fail-fast")
            .status()
            .context("cannot start cargo")?;
        ensure!(status.success(), "cargo ended with {status}");
        Ok(())
    }

    /// Runs the kill loop of the instrumented build.
    pub fn run_crash_rounds(&self, rounds: u32) -> Result<()> {
        let status = self
            .instrumented(&mut Command::new(self.target.join("debug/xtask")), "crash")
            .args(["crash", "--rounds", &rounds.to_string()])
            .status()
            .context("cannot start the kill loop")?;
        ensure!(status.success(), "the kill loop ended with {status}");
        Ok(())
    }

    /// Merges the counters and asks for the count of each line, in the format of `lcov`.
    pub fn read(&self, tools: &Tools, executables: &[PathBuf]) -> Result<String> {
        let merged = self.target.join("merged.profdata");
        let status = Command::new(&tools.profdata)
            // A process may be killed before the header of its file is complete.
            .args(["merge", "--sparse", "--failure-mode=all", "-o"])
            .arg(&merged)
            .args(counter_files(&self.counters)?)
            .status()
            .context("cannot start llvm-profdata")?;
        ensure!(status.success(), "llvm-profdata ended with {status}");
        let mut command = Command::new(&tools.cov);
        command
            .args([
                "export",
                "--format=lcov",
                "--ignore-filename-regex=/registry/|/rustc/",
            ])
            .arg(format!("--instr-profile={}", merged.display()));
        for (at, executable) in executables.iter().enumerate() {
            if at > 0 {
                command.arg("--object");
            }
            command.arg(executable);
        }
        // It warns of functions of other crates that each user inlines in a shape of its own.
        let output = command.output().context("cannot start llvm-cov")?;
        ensure!(
            output.status.success(),
            "llvm-cov ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// `command` with the flags of the build and a place for its counters, of which those of the tests
    /// are read.
    fn instrumented<'a>(&self, command: &'a mut Command, phase: &str) -> &'a mut Command {
        let folder = match phase {
            "build" => self.target.join("build-counters"),
            _ => self.counters.clone(),
        };
        command
            .env("CARGO_TARGET_DIR", &self.target)
            .env("RUSTFLAGS", FLAGS)
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            // %c: in a mapped file. %m: one file a program, which all its processes share.
            .env(
                "LLVM_PROFILE_FILE",
                folder.join(format!("{phase}-%m%c.profraw")),
            )
    }
}

/// What cargo tells about something that it built.
#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
}

/// The programs named in cargo's messages, one JSON object a line.
fn executables(messages: &str) -> Vec<PathBuf> {
    let artifacts = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
    artifacts.filter_map(|a| a.executable).collect()
}

fn counter_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("no counters in {}: no test ran", folder.display()))?;
    entries
        .map(|entry| entry.map(|e| e.path()).context("listing the counters"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_cargo_name_the_programs() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
                        {\"reason\":\"compiler-artifact\",\"executable\":\"/t/debug/deps/a-1\"}\n\
                        running 3 tests\n\
                        {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executables(messages), [PathBuf::from("/t/debug/deps/a-1")]);
    }
}
