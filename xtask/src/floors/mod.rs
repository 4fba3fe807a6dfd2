//! Checks that the house stands as `FLOORS.toml` draws it.

mod crates;
mod figures;
mod findings;
mod imports;
mod modules;
mod plan;
mod ratchet;
mod sources;
pub mod tokens;

use anyhow::{Context, Result, ensure};

use crate::workspace;
use findings::Findings;
use plan::Plan;

/// Runs every check, prints what they found, and fails if any of it is an error.
pub fn run() -> Result<()> {
    let plan = Plan::read(&workspace::root().join("FLOORS.toml"))?;
    let metadata = workspace::metadata(&["--no-deps", "--offline"])?;
    let mut findings = Findings::default();
    crates::check(&plan, &metadata.packages, &mut findings);
    let mut files = 0;
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
    }
    figures::check(&plan.figures, workspace::root(), &mut findings)?;
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
