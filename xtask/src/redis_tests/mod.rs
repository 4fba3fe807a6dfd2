//! Runs the tests that Redis has of itself against `kreon serve`.
//!
//! The source package of the distribution brings them; [`source`] fetches it, `adapter.tcl` is read by them, and
//! [`reasons`] tells apart failures that are no fault. Any other failure makes the command fail.

mod outcome;
mod reasons;
mod served;
mod source;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{self, cargo};
use outcome::Outcome;
use served::Served;

/// How this command ends where the tests are not to be had.
const CODE_NOT_FOUND: i32 = 3;

/// A unit ends if none of its tests ended for so long; those that add many elements take long on a busy machine.
const STILL_S_MAX: &str = "900";

/// The password of the second run of `auth`, which the unit gives.
const PASSWORD: &str = "foobar";

/// Units in the order of the table.
const UNITS: &[&str] = &[
    "type/string",
    "type/incr",
    "keyspace",
    "expire",
    "type/hash",
    "type/set",
    "type/zset",
    "type/list",
    "type/list-2",
    "type/list-3",
    "multi",
    "scan",
    "protocol",
    "auth",
];

/// `cargo xtask redis-tests`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Units to run, as `type/zset`; without: all that concern what is there.
    units: Vec<String>,
    /// With an optimised server.
    #[arg(long)]
    release: bool,
    /// Prints each failure as the tests tell it.
    #[arg(long)]
    failures: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = workspace::target_directory()?.join("redis-tests");
    let source = match source::fetch(&folder) {
        Ok(source) => source,
        Err(error) => {
            eprintln!("no tests of Redis on this machine: {error:#}");
            std::process::exit(CODE_NOT_FOUND)
        }
    };
    let kreon = build(arguments.release)?;
    let store = folder.join("store");
    let open = Served::start(&kreon, &store, None)?;
    let units: Vec<_> = match arguments.units.is_empty() {
        true => UNITS.to_vec(),
        false => arguments.units.iter().map(String::as_str).collect(),
    };
    let mut outcomes = Vec::with_capacity(units.len());
    for unit in units {
        eprintln!("{unit} ...");
        let mut outcome = run_unit(&source, unit, &open, None)?;
        if unit == "auth" {
            let closed = Served::start(&kreon, &store.with_extension("closed"), Some(PASSWORD))?;
            outcome.add(run_unit(&source, unit, &closed, Some(PASSWORD))?);
        }
        ensure!(
            outcome.passed > 0,
            "no test of {unit} passed:\n{}",
            outcome.output
        );
        if arguments.failures {
            for failure in &outcome.failures {
                println!("{unit}: {}\n    {}", failure.test, failure.message);
            }
        }
        outcomes.push((unit, outcome));
    }
    let unexplained = table::print(&outcomes);
    if unexplained > 0 {
        bail!("{unexplained} failures without a known reason");
    }
    Ok(())
}

fn build(is_release: bool) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--package", "kreon-cli"]);
    if is_release {
        command.arg("--release");
    }
    let status = command.status().context("cannot start cargo")?;
    ensure!(status.success(), "the build failed");
    let profile = if is_release { "release" } else { "debug" };
    Ok(workspace::target_directory()?.join(profile).join("kreon"))
}

/// Runs one unit by Redis' own command.
fn run_unit(source: &Path, unit: &str, served: &Served, password: Option<&str>) -> Result<Outcome> {
    let mut command = Command::new("tclsh");
    command
        .current_dir(source)
        .args(["tests/test_helper.tcl", "--host", "127.0.0.1", "--port"])
        .arg(served.port.to_string())
        // A command that is not there is one failure, not the end. There are no encodings and digests of values, no
        // replicas, and no limit beyond which keys are thrown out.
        .args(["--durable", "--ignore-encoding", "--ignore-digest"])
        .args(["--tags", "-needs:repl -needs:config-maxmemory"])
        .args(["--timeout", STILL_S_MAX])
        .arg("--single")
        .arg(format!("unit/{unit}"))
        .env("TERM", "dumb")
        .env_remove("KREON_PASSWORD")
        .stdin(Stdio::null());
    if let Some(password) = password {
        command.env("KREON_PASSWORD", password);
    }
    let output = command.output().context("cannot start tclsh")?;
    Ok(Outcome::read(&String::from_utf8_lossy(&output.stdout)))
}
