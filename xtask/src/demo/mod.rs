//! The main job on real data: every populated place that a public list names, loaded and asked for.

mod cities;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::{self, cargo};

/// What is asked, in order, in the folder of the data.
const COMMANDS: &[&[&str]] = &[
    &["import", "cities.csv"],
    &["get", "GR/Crete/Irakleion"],
    &["scan", "--prefix", "IS/Northeast/"],
    &["scan", "--prefix", "GR/Crete/", "--reverse", "--limit", "3"],
    &["scan", "--from", "JP/Tokyo/", "--keys", "--limit", "3"],
    &["count", "--prefix", "CH/"],
    &["count"],
    &["put", "--sync", "GR/Crete/Knossos", "35.29794,25.16310"],
    &["get", "GR/Crete/Knossos"],
    &["stats"],
    &["verify"],
];

const STORE: &str = "cities.kreon";

/// Builds the `kreon` command, writes the list into the target folder, and runs [`COMMANDS`].
pub fn run() -> Result<()> {
    let status = cargo()
        .args(["build", "--release", "--package", "kreon-cli"])
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "the build failed");
    let target = workspace::metadata(&["--no-deps"])?.target_directory;
    let folder = target.join("demo");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let store = folder.join(STORE);
    remove(&store)?;
    let count = cities::write(&folder.join("cities.csv"))?;
    println!("{count} cities of the GeoNames list (geonames.org, CC BY 4.0)");
    println!("$ cd {}", folder.display());
    let program = target.join("release/kreon");
    for command in COMMANDS {
        kreon(&program, &folder, command)?;
    }
    remove(&store)
}

/// Removes the store if there is one: of this run, or of one that was cut short.
fn remove(store: &Path) -> Result<()> {
    if store.exists() {
        std::fs::remove_file(store)
            .with_context(|| format!("cannot remove {}", store.display()))?;
    }
    Ok(())
}

/// Shows a command line as one would type it, and runs it.
fn kreon(program: &Path, folder: &Path, command: &[&str]) -> Result<()> {
    let line: Vec<_> = command.iter().map(|word| quoted(word)).collect();
    println!("\n$ kreon --store {STORE} {}", line.join(" "));
    let status = Command::new(program)
        .current_dir(folder)
        .args(["--store", STORE])
        .args(command)
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(status.success(), "kreon {} ended with {status}", command[0]);
    Ok(())
}

fn quoted(word: &str) -> String {
    match word.contains(' ') {
        true => format!("'{word}'"),
        false => word.to_owned(),
    }
}
