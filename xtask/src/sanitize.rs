//! `cargo xtask sanitize`: tests under the compiler's sanitizers.
//!
//! They are unstable options, which a stable compiler takes with `RUSTC_BOOTSTRAP=1`. The standard
//! library is not rebuilt with them: what happens inside it is not seen.

use std::fs;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::workspace::{cargo, target_directory};

/// Tests that measure the memory of the process: a sanitizer's own memory spoils them.
const MEASURE_MEMORY: [&str; 2] = [
    "dropping_frees_all_memory",
    "a_mapping_stays_within_its_memory_whatever_is_read_and_written",
];

/// The crates of the core, the wells first.
const CORE: [&str; 7] = [
    "kreon-device",
    "kreon-mapping",
    "kreon-l0",
    "kreon-base",
    "kreon-format",
    "kreon-engine",
    "kreon",
];

/// What ThreadSanitizer says falsely. It does not know fences, on which optimistic reads rest (but all
/// that they read is atomic), nor the order that a standard library built without it makes.
const THREAD_SUPPRESSIONS: &str = "\
race:std::
race:core::
race:alloc::
race:test::
race:parking_lot
race:arc_swap
race:tracing
";

/// What to look for.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Sanitizer {
    /// Accesses outside of what is allocated, after it was freed or returned; leaks.
    Address,
    /// Leaks alone, at full speed.
    Leak,
    /// Data races. Not gating: reports from inside the standard library are possible.
    Thread,
}

impl Sanitizer {
    fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Leak => "leak",
            Self::Thread => "thread",
        }
    }
}

/// Which sanitizer, and on what.
#[derive(clap::Args)]
pub struct Arguments {
    sanitizer: Sanitizer,
    /// Crates to test; the whole core if left out.
    #[arg(long = "package", short)]
    packages: Vec<String>,
    /// Handed on to the tests.
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Builds the crates with the sanitizer and runs their tests.
pub fn run(arguments: &Arguments) -> Result<()> {
    let name = arguments.sanitizer.name();
    let target = target_directory()?.join(format!("sanitize-{name}"));
    fs::create_dir_all(&target).context("making the target directory")?;
    let suppressions = target.join("suppressions");
    fs::write(&suppressions, THREAD_SUPPRESSIONS).context("writing the suppressions")?;
    let flags = format!("-Zsanitizer={name}");
    let mut command = cargo();
    command
        .args(["test", "--no-fail-fast", "--tests", "--target"])
        .arg(host()?)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", &flags)
        .env("CARGO_TARGET_DIR", &target)
        .env(
            "ASAN_OPTIONS",
            "detect_stack_use_after_return=1:detect_leaks=1",
        )
        .env(
            "TSAN_OPTIONS",
            format!("suppressions={}", suppressions.display()),
        );
    let asked = arguments.packages.iter().map(String::as_str);
    let packages = match arguments.packages.is_empty() {
        true => CORE.to_vec(),
        false => asked.collect(),
    };
    for package in packages {
        command.args(["--package", package]);
    }
    command.arg("--");
    for test in MEASURE_MEMORY {
        command.args(["--skip", test]);
    }
    let status = command.args(&arguments.rest).status();
    let status = status.context("starting cargo")?;
    if arguments.sanitizer == Sanitizer::Thread && !status.success() {
        println!("sanitize thread: {status}; not gating, read the reports above");
        return Ok(());
    }
    ensure!(status.success(), "sanitize {name}: {status}");
    Ok(())
}

/// The target to name: only then are build scripts and macros built without the sanitizer.
fn host() -> Result<String> {
    let output = std::process::Command::new("rustc")
        .arg("-vV")
        .output()
        .context("starting rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not tell its host")?.to_owned())
}
