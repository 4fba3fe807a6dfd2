//! `cargo xtask miri`: the tests of the unsafe code that need no system call, in an interpreter that
//! notices undefined behaviour.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::workspace::{nightly_cargo, target_directory};

/// Crates, and which of their tests.
const RUNS: [&[&str]; 4] = [
    &["-p", "kreon-l0"],
    &["-p", "kreon-mapping", "--lib", "--", "well"],
    &[
        "-p",
        "kreon-device",
        "--lib",
        "--",
        "append",
        "aligned",
        "batch",
        "bounds",
    ],
    &["-p", "kreon-device", "--test", "append_buffer"],
];

/// Runs what Miri can run; says so where there is no Miri.
pub fn run() -> Result<()> {
    if !is_there()? {
        println!(
            "miri: SKIPPED, nothing was checked. It comes with the nightly toolchain only:\n    \
             rustup toolchain install nightly --component miri,rust-src"
        );
        return Ok(());
    }
    for arguments in RUNS {
        println!("== miri test {}", arguments.join(" "));
        let status = miri()
            .arg("test")
            .args(arguments)
            .env("CARGO_TARGET_DIR", target_directory()?.join("miri"))
            // Proofs speak of addresses as numbers nowhere; files and clocks are the tests' own.
            .env(
                "MIRIFLAGS",
                "-Zmiri-strict-provenance -Zmiri-disable-isolation",
            )
            .status()
            .context("starting cargo miri")?;
        ensure!(
            status.success(),
            "miri test {}: {status}",
            arguments.join(" ")
        );
    }
    Ok(())
}

fn is_there() -> Result<bool> {
    let answer = miri()
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match answer {
        Ok(status) => Ok(status.success()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).context("starting cargo"),
    }
}

fn miri() -> Command {
    let mut command = nightly_cargo();
    command.arg("miri");
    command
}
