//! `cargo xtask fuzz`: the fuzz targets, each for a while, and a canary that must be found.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};

use crate::workspace::root;

/// What must be installed, and how.
const MISSING: &str = "cargo-fuzz is not installed: nothing was fuzzed. `cargo install cargo-fuzz --locked` installs \
     it (a C++ compiler is needed, a nightly toolchain is not). The same properties run with random \
     bytes in `cargo test -p kreon-properties`; KREON_FUZZ_CASES=100 runs a hundred times as many.";

/// Longest run of one input. The longest takes a small part of a second.
const INPUT_SECONDS_MAX: u32 = 25;

/// Most memory of a run, AddressSanitizer's included.
const MEMORY_MIB_MAX: u32 = 2560;

/// The property that does not hold.
const CANARY: &str = "canary";

/// Seconds in which the canary must be found.
const CANARY_SECONDS: u32 = 120;

#[derive(clap::Args)]
pub struct Arguments {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// One target instead of all.
    #[arg(long)]
    target: Option<String>,
    /// Only makes sure that a planted fault is found.
    #[arg(long)]
    canary: bool,
    /// Keeps the smallest inputs that cover what is covered now as the corpus of the repository.
    #[arg(long)]
    minimise: bool,
}

/// Targets that open whole stores, over and over: AddressSanitizer and traced comparisons take four fifths of their time
/// and libFuzzer's weights of rare features a quarter of the rest. So they search without, and then run under
/// AddressSanitizer what they found.
const WHOLE_STORES: [&str; 3] = ["commands", "operations", "store_file"];

/// How a target is built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Build {
    /// With AddressSanitizer and traced comparisons.
    Checked,
    /// With neither.
    Fast,
}

impl Build {
    /// The build that `target` searches with.
    fn of(target: &str) -> Self {
        match WHOLE_STORES.contains(&target) {
            true => Self::Fast,
            false => Self::Checked,
        }
    }

    /// What cargo-fuzz is told. Builds take turns, so each has a folder of its own.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Checked => &[],
            Self::Fast => &[
                "--sanitizer=none",
                "--no-trace-compares",
                "--target-dir=fuzz/target/fast",
            ],
        }
    }
}

/// Runs what `arguments` say.
pub fn run(arguments: &Arguments) -> Result<()> {
    if !is_installed() {
        println!("{MISSING}");
        return Ok(());
    }
    if arguments.canary {
        return find_canary();
    }
    let targets = match &arguments.target {
        Some(target) => vec![target.clone()],
        None => targets()?,
    };
    for target in &targets {
        if arguments.minimise {
            minimise(target)?;
        } else {
            fuzz(target, arguments.seconds)?;
        }
    }
    // Last, and after minimising not at all: the canary proves that the runs before could fail.
    if arguments.target.is_none() && !arguments.minimise {
        find_canary()?;
    }
    Ok(())
}

fn is_installed() -> bool {
    let version = cargo_fuzz(&["--version"]).output();
    version.is_ok_and(|output| output.status.success())
}

/// Names of the targets that must hold.
fn targets() -> Result<Vec<String>> {
    let output = cargo_fuzz(&["list"]).output().context("cargo fuzz list")?;
    ensure!(
        output.status.success(),
        "cargo fuzz list: {}",
        output.status
    );
    let names = String::from_utf8_lossy(&output.stdout);
    let names: Vec<String> = names.lines().map(|line| line.trim().to_owned()).collect();
    Ok(names.into_iter().filter(|name| name != CANARY).collect())
}

/// `cargo fuzz`, on the toolchain that runs this: the sanitizers are unlocked in a stable one too.
fn cargo_fuzz(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(root())
        .env("RUSTC_BOOTSTRAP", "1")
        .arg("fuzz")
        .args(arguments);
    command
}

/// Inputs that this machine found, not those of the repository.
fn found_inputs(target: &str) -> Result<PathBuf> {
    let folder = root().join("fuzz/target/corpus").join(target);
    std::fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    Ok(folder)
}

fn stored_inputs(target: &str) -> Result<PathBuf> {
    let folder = root().join("fuzz/corpus").join(target);
    std::fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    Ok(folder)
}

/// Runs a target with options of libFuzzer; new inputs go to the first folder.
fn run_target(build: Build, target: &str, folders: &[&Path], options: &[String]) -> Result<Output> {
    cargo_fuzz(&["run"])
        .args(build.arguments())
        .arg(target)
        .args(folders)
        .arg("--")
        .args(options)
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"))
        .stdout(Stdio::null())
        .output()
        .with_context(|| format!("cargo fuzz run {target}"))
}

fn fuzz(target: &str, seconds: u32) -> Result<()> {
    let (found, stored) = (found_inputs(target)?, stored_inputs(target)?);
    let build = Build::of(target);
    let mut options = vec![
        format!("-max_total_time={seconds}"),
        "-print_final_stats=1".to_owned(),
        "-len_control=0".to_owned(),
        format!("-max_len={}", longest_input(target)),
    ];
    if build == Build::Fast {
        options.push("-entropic=0".to_owned());
    }
    let folders = [found.as_path(), stored.as_path()];
    let output = run_target(build, target, &folders, &options)?;
    println!("{target:<16} {}", summary(&said_if_sound(target, &output)?));
    if build == Build::Fast {
        let output = run_target(Build::Checked, target, &folders, &["-runs=0".to_owned()])?;
        said_if_sound(target, &output)?;
        println!(
            "{:<16} the same inputs under AddressSanitizer: no fault",
            ""
        );
    }
    Ok(())
}

/// What libFuzzer said, unless it found something.
fn said_if_sound(target: &str, output: &Output) -> Result<String> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(
        output.status.success(),
        "{target} found a fault ({}); the input stands in fuzz/artifacts/{target}:\n{}",
        output.status,
        end_of(&said)
    );
    Ok(said)
}

/// Longer ones find nothing that shorter ones do not.
fn longest_input(target: &str) -> u32 {
    match target {
        "superblock" | "bitmap_block" | "segment_header" | "store_file" | "operations" => 512,
        _ => 2048,
    }
}

/// `12345 executions, 205 a second, coverage 678 edges, 901 features, corpus 23/1234b`.
fn summary(said: &str) -> String {
    let stat = |name: &str| {
        let found = said.lines().find_map(|line| line.strip_prefix(name));
        found.map_or("?", str::trim)
    };
    let executions = stat("stat::number_of_executed_units:");
    let rate = stat("stat::average_exec_per_sec:");
    let last = said.lines().rev().find(|line| line.contains(" cov: "));
    let words: Vec<_> = last.unwrap_or_default().split_whitespace().collect();
    let behind = |name: &str| {
        let at = words.iter().position(|word| *word == name);
        at.and_then(|at| words.get(at + 1)).copied().unwrap_or("?")
    };
    format!(
        "{executions} executions, {rate} a second, coverage {} edges, {} features, corpus {}",
        behind("cov:"),
        behind("ft:"),
        behind("corp:")
    )
}

fn end_of(said: &str) -> String {
    let lines: Vec<_> = said.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// The planted fault must be found, or the search proves nothing.
fn find_canary() -> Result<()> {
    let empty = tempfolder()?;
    let options = [format!("-max_total_time={CANARY_SECONDS}")];
    let begun = std::time::Instant::now();
    let output = run_target(Build::Checked, CANARY, &[&empty], &options)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let found = !output.status.success() && said.contains("ERROR: libFuzzer: deadly signal");
    ensure!(
        found,
        "the planted fault was not found in {CANARY_SECONDS} s: {}\n{}",
        output.status,
        end_of(&said)
    );
    println!(
        "{CANARY:<16} found as it must be, in {:.0} s with the build",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// An empty folder, so that the canary is not found by an input of the last time.
fn tempfolder() -> Result<PathBuf> {
    let folder = found_inputs(CANARY)?;
    std::fs::remove_dir_all(&folder)?;
    found_inputs(CANARY)
}

/// Merges what was found into the stored corpus: of what covers the same the smallest.
fn minimise(target: &str) -> Result<()> {
    let (found, stored) = (found_inputs(target)?, stored_inputs(target)?);
    let kept = root().join("fuzz/target/kept").join(target);
    let _ = std::fs::remove_dir_all(&kept);
    std::fs::create_dir_all(&kept)?;
    let options = ["-merge=1".to_owned()];
    let folders = [kept.as_path(), &stored, &found];
    let output = run_target(Build::of(target), target, &folders, &options)?;
    ensure!(output.status.success(), "merging the corpus of {target}");
    std::fs::remove_dir_all(&stored)?;
    std::fs::create_dir_all(&stored)?;
    let (mut files, mut bytes) = (0, 0);
    for input in smallest(&kept)? {
        let len_bytes = std::fs::metadata(&input)?.len();
        if bytes + len_bytes > CORPUS_BYTES_MAX || files == CORPUS_FILES_MAX {
            break;
        }
        if let Some(name) = input.file_name() {
            std::fs::copy(&input, stored.join(name))?;
        }
        (files, bytes) = (files + 1, bytes + len_bytes);
    }
    println!("{target:<16} {files} inputs, {bytes} bytes");
    Ok(())
}

/// What the stored corpus of one target may take.
const CORPUS_BYTES_MAX: u64 = 16 << 10;
const CORPUS_FILES_MAX: u32 = 60;

fn smallest(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.metadata()?.len(), entry.path()));
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read_from_what_libfuzzer_says() {
        let said = "#2\tINITED cov: 1 ft: 2 corp: 1/1b\n#99\tDONE   cov: 364 ft: 638 corp: 77/2986b lim: 191\n\
                    stat::number_of_executed_units: 31870\nstat::average_exec_per_sec:     2897\n";
        assert_eq!(
            summary(said),
            "31870 executions, 2897 a second, coverage 364 edges, 638 features, corpus 77/2986b"
        );
    }
}
