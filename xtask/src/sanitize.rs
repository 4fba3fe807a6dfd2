//! `cargo xtask sanitize`: tests under the compiler's sanitizers.
//!
//! They are unstable options, which a stable compiler takes with `RUSTC_BOOTSTRAP=1`; the standard
//! library is not rebuilt with them then, so what happens inside it is not seen. For data races that
//! will not do: a lock that is not seen looks like none. There the nightly toolchain rebuilds it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::workspace::{cargo, nightly_cargo, target_directory};

/// Tests that measure the memory of the process: a sanitizer's own memory spoils them.
const MEASURE_MEMORY: [&str; 2] = [
    "dropping_frees_all_memory",
    "a_mapping_stays_within_its_memory_whatever_is_read_and_written",
];

/// The crates of the core, the wells first.
const CORE: &[&str] = &[
    "kreon-device",
    "kreon-mapping",
    "kreon-l0",
    "kreon-base",
    "kreon-sync",
    "kreon-format",
    "kreon-volume",
    "kreon-log",
    "kreon-engine",
    "kreon",
];

/// What the data race sanitizer is for: the wells. All else is safe code.
const WELLS: &[&str] = &["kreon-device", "kreon-mapping", "kreon-l0"];

/// What to look for.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Sanitizer {
    /// Accesses outside of what is allocated, after it was freed or returned; leaks.
    Address,
    /// Leaks alone, at full speed.
    Leak,
    /// Data races. Needs the nightly toolchain with `rust-src`.
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
    /// Crates to test; if left out, the whole core (for data races: the wells).
    #[arg(long = "package", short)]
    packages: Vec<String>,
    /// Handed on to the tests.
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Builds the crates with the sanitizer and runs their tests.
pub fn run(arguments: &Arguments) -> Result<()> {
    let name = arguments.sanitizer.name();
    let is_thread = arguments.sanitizer == Sanitizer::Thread;
    if is_thread && !has_std_source()? {
        println!(
            "sanitize thread: SKIPPED, nothing was checked. It needs\n    \
             rustup toolchain install nightly --component rust-src"
        );
        return Ok(());
    }
    let mut command = if is_thread { nightly_cargo() } else { cargo() };
    command
        .args(["test", "--no-fail-fast", "--tests", "--target"])
        .arg(host()?)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", format!("-Zsanitizer={name}"))
        .env(
            "CARGO_TARGET_DIR",
            target_directory()?.join(format!("sanitize-{name}")),
        )
        .env(
            "ASAN_OPTIONS",
            "detect_stack_use_after_return=1:detect_leaks=1",
        );
    if is_thread {
        command.arg("-Zbuild-std");
    }
    let asked: Vec<_> = arguments.packages.iter().map(String::as_str).collect();
    let packages = match (asked.is_empty(), is_thread) {
        (false, _) => &asked,
        (true, true) => WELLS,
        (true, false) => CORE,
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
    ensure!(status.success(), "sanitize {name}: {status}");
    Ok(())
}

/// Whether the nightly toolchain can build the standard library.
fn has_std_source() -> Result<bool> {
    let output = Command::new("rustc")
        .args(["+nightly", "--print", "sysroot"])
        .env_remove("RUSTUP_TOOLCHAIN")
        .output()
        .context("starting rustc")?;
    let sysroot = String::from_utf8_lossy(&output.stdout);
    let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/std");
    Ok(output.status.success() && source.is_dir())
}

/// The target to name: only then are build scripts and macros built without the sanitizer.
fn host() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .context("starting rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not tell its host")?.to_owned())
}
