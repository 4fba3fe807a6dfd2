//! Builds the bench with all peers, runs the plan, and has the documents written.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::documents;
use super::plan::{Bench, PLAN};
use crate::workspace::{cargo, root, target_directory};

/// What is run, and what is written.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where the results go, a folder for each run.
    #[arg(long, default_value = "results")]
    out: PathBuf,
    /// Only these runs; what the other folders hold is taken as it is, if it is of this commit.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// A few seconds for each run. The tables go into copies of the documents, in the folder `documents` of the results.
    #[arg(long)]
    tiny: bool,
}

/// Measures all that the documents have tables of, and writes the tables.
pub fn run(arguments: &Arguments) -> Result<()> {
    for name in &arguments.only {
        ensure!(
            PLAN.iter().any(|bench| bench.name == name),
            "no run is called {name}"
        );
    }
    if !arguments.tiny {
        ensure!(
            changed_files()?.is_empty(),
            "files differ from the commit: the tables would be of none"
        );
    }
    let program = build()?;
    std::fs::create_dir_all(&arguments.out)?;
    let out = arguments
        .out
        .canonicalize()
        .context("the folder of the results")?;
    let mut failed = Vec::new();
    for bench in PLAN {
        if !arguments.only.is_empty() && !arguments.only.iter().any(|name| name == bench.name) {
            continue;
        }
        // A store that dies does not take the other runs along; its table tells of it.
        if !measure(&program, bench, arguments, &out)? {
            failed.push(bench.name);
        }
    }
    let documents = match arguments.tiny {
        true => documents::copies(&out.join("documents"))?,
        false => documents::of_the_project()?,
    };
    let mut command = Command::new(&program);
    command
        .arg("readme")
        .args(PLAN.iter().map(|bench| out.join(bench.name)));
    for document in &documents {
        command.arg("--document").arg(document);
    }
    let status = command.status().context("starting kreon-bench")?;
    ensure!(status.success(), "kreon-bench readme: {status}");
    ensure!(
        failed.is_empty(),
        "these runs have failed: {}",
        failed.join(", ")
    );
    Ok(())
}

fn build() -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--release", "--package", "kreon-bench"]);
    command.args(["--features", "peers"]);
    let status = command.status().context("starting cargo")?;
    ensure!(status.success(), "the bench does not build: {status}");
    Ok(target_directory()?.join("release/kreon-bench"))
}

/// Files that git knows and that differ from the commit.
fn changed_files() -> Result<String> {
    let mut command = Command::new("git");
    command.args(["status", "--porcelain", "--untracked-files=no"]);
    let output = command
        .current_dir(root())
        .output()
        .context("starting git")?;
    ensure!(output.status.success(), "git status: {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether the run came to a good end.
fn measure(program: &Path, bench: &Bench, arguments: &Arguments, out: &Path) -> Result<bool> {
    println!("\n== {}", bench.name);
    let place = out.join(bench.name);
    if place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    let mut command = Command::new(program);
    command.args(bench.arguments(arguments.tiny));
    // Stores stand beside the results: the temporary folder may be in memory.
    command.current_dir(out).arg("--out").arg(bench.name);
    let status = command.status().context("starting kreon-bench")?;
    if !status.success() {
        println!("== {}: {status}", bench.name);
    }
    Ok(status.success())
}
