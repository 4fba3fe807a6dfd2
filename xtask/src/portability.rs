//! `cargo xtask portability`: other systems and C libraries, as far as this machine can check them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::cargo;

/// What is tested on another C library.
const CORE: [&str; 10] = [
    "kreon-base",
    "kreon-sync",
    "kreon-device",
    "kreon-format",
    "kreon-mapping",
    "kreon-l0",
    "kreon-volume",
    "kreon-log",
    "kreon-engine",
    "kreon",
];

/// Linux with another C library: its programs run here.
const TESTED: &str = "x86_64-unknown-linux-musl";

/// Compiled and not linked, and what of it.
const CHECKED: [(&str, &str); 4] = [
    ("aarch64-unknown-linux-gnu", "kreon-cli"),
    ("aarch64-apple-darwin", "kreon"),
    ("x86_64-apple-darwin", "kreon"),
    ("x86_64-unknown-freebsd", "kreon"),
];

#[derive(clap::Args, Default)]
pub struct Arguments {
    /// Fail if the standard library of a target is missing.
    #[arg(long)]
    all: bool,
}

/// Runs the tests of what other systems get, here; builds and tests for musl; compiles for the rest.
///
/// # Errors
/// Something does not compile or pass, or with `--all` a target is missing.
pub fn run(arguments: &Arguments) -> Result<()> {
    println!("== portable: what other systems get, on this one");
    for package in ["kreon-device", "kreon"] {
        let features = ["--features", "portable", "--lib", "--tests"];
        succeed(cargo().args(["test", "-p", package]).args(features))?;
    }
    let mut missing = Vec::new();
    if is_installed(TESTED)? {
        println!("== {TESTED}: the command, and the tests of the library");
        // Zstandard needs a compiler for C that knows the target.
        let plain = ["--no-default-features", "--target", TESTED];
        succeed(cargo().args(["build", "-p", "kreon-cli"]).args(plain))?;
        let mut tests = cargo();
        tests.args(["test", "--lib", "--tests", "--target", TESTED]);
        succeed(tests.args(CORE.iter().flat_map(|package| ["-p", package])))?;
    } else {
        missing.push(TESTED);
    }
    for (target, package) in CHECKED {
        if is_installed(target)? {
            println!("== {target}: compiled, nothing is run");
            let plain = ["--no-default-features", "--target", target];
            succeed(cargo().args(["check", "-p", package]).args(plain))?;
        } else {
            missing.push(target);
        }
    }
    for target in &missing {
        println!(
            "{target}: SKIPPED, nothing was checked. It needs\n    rustup target add {target}"
        );
    }
    match arguments.all && !missing.is_empty() {
        true => bail!("targets are missing: {}", missing.join(", ")),
        false => Ok(()),
    }
}

/// Whether the compiler has the standard library of a target.
fn is_installed(target: &str) -> Result<bool> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .context("starting rustc")?;
    let folder = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success() && Path::new(folder.trim()).is_dir())
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().context("starting cargo")?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
