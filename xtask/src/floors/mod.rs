//! Checks that the house stands as `FLOORS.toml` draws it.

mod crates;
mod cycles;
mod figures;
mod findings;
mod graph;
mod imports;
mod modules;
mod plan;
mod ratchet;
mod report;
mod sources;
pub mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::workspace::{self, Package};
use findings::Findings;
use plan::Plan;

/// What `cargo xtask floors` is told.
#[derive(Args, Default)]
pub struct Arguments {
    /// Prints what no limit judges: cycles, sliced types, public fields of shared state, lengths, asserts, constants.
    #[arg(long)]
    report: bool,
    /// Prints the lines that tie the largest cycle of this crate together.
    #[arg(long)]
    cycle: Option<String>,
}

/// Runs every check, prints what they found, and fails if any of it is an error.
pub fn run(arguments: &Arguments) -> Result<()> {
    let plan = Plan::read(&workspace::root().join("FLOORS.toml"))?;
    let metadata = workspace::metadata(&["--no-deps", "--offline"])?;
    let mut findings = Findings::default();
    crates::check(&plan, &metadata.packages, &mut findings);
    let mut files = 0;
    let mut crates = Vec::new();
    for package in &metadata.packages {
        sources::check_forbid(&plan, package, &mut findings)?;
        let folder = package
            .manifest_path
            .parent()
            .context("a manifest has no folder")?;
        files += sources::check_lengths(&plan, folder, &mut findings)?;
        if let Some(floors) = plan.modules.get(&package.name) {
            modules::check(&package.name, floors, &folder.join("src"), &mut findings)?;
        }
        let sources = graph::files::files_below(&folder.join("src"))?;
        crates.push(graph::Source::new(&package.name, sources));
    }
    tell_of_dependencies(&mut crates, &metadata.packages);
    cycles::check(&plan.cycles, &crates, &mut findings);
    figures::check(&plan.figures, workspace::root(), &mut findings)?;
    if arguments.report {
        report::print(&plan, &crates, workspace::root())?;
    }
    for source in &crates {
        if arguments.cycle.as_ref() == Some(&source.name) {
            source.print_largest_cycle();
        }
    }
    // Paths as one would open them from here.
    let root = format!("{}/", workspace::root().display());
    for warning in &findings.warnings {
        println!("warning: {}", warning.replace(&root, ""));
    }
    for error in &findings.errors {
        println!("error: {}", error.replace(&root, ""));
    }
    println!(
        "floors: {} crates, {files} files, {} warnings, {} errors",
        metadata.packages.len(),
        findings.warnings.len(),
        findings.errors.len()
    );
    ensure!(findings.errors.is_empty(), "the floors do not hold");
    Ok(())
}

/// A call in a crate may mean a method of a crate that it depends on.
fn tell_of_dependencies(crates: &mut [graph::Source], packages: &[Package]) {
    let exported: BTreeMap<String, BTreeSet<String>> = crates
        .iter()
        .map(|source| {
            (
                source.name.clone(),
                source.methods.exported().cloned().collect(),
            )
        })
        .collect();
    for source in crates {
        let package = packages.iter().find(|package| package.name == source.name);
        for dependency in package
            .into_iter()
            .flat_map(|package| &package.dependencies)
        {
            if let Some(names) = exported.get(&dependency.name) {
                source.methods.know_others(names);
            }
        }
    }
}
