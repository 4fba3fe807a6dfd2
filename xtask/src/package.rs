//! Packs the crates that are published, as a registry would get them.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::{Package, cargo, metadata, root};

#[derive(clap::Args, Default)]
pub struct Arguments {
    /// Build each crate from its package, too: some minutes.
    #[arg(long)]
    verify: bool,
}

/// Packs all crates without `publish = false`, without the network: each has what a registry wants, and what it needs is
/// in its package.
///
/// # Errors
/// A crate cannot be packed, or lacks a description, keywords, a category, a readme or the texts of its licences.
pub fn run(arguments: &Arguments) -> Result<()> {
    let packages = metadata(&["--no-deps"])?.packages;
    let published: Vec<_> = packages.iter().filter(|one| is_published(one)).collect();
    ensure!(!published.is_empty(), "no crate is published");
    for package in &published {
        check(package)?;
    }
    let mut pack = cargo();
    pack.args(["package", "--offline", "--allow-dirty"]);
    if !arguments.verify {
        pack.arg("--no-verify");
    }
    for package in &published {
        pack.args(["-p", &package.name]);
    }
    succeed(&mut pack)?;
    println!("{} crates packed", published.len());
    Ok(())
}

/// Cargo says of `publish = false` that there is no registry for the crate.
fn is_published(package: &Package) -> bool {
    package.publish.as_ref().is_none_or(|to| !to.is_empty())
}

fn check(package: &Package) -> Result<()> {
    let name = &package.name;
    let told = package.description.as_deref().unwrap_or_default();
    ensure!(told.len() > 20, "{name} has no description");
    ensure!(!package.keywords.is_empty(), "{name} has no keywords");
    ensure!(!package.categories.is_empty(), "{name} has no categories");
    ensure!(package.readme.is_some(), "{name} has no readme");
    let folder = package.manifest_path.parent().unwrap_or(root());
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let has = folder.join(licence).is_file();
        ensure!(has, "{name} has no {licence}: link that of the workspace");
    }
    Ok(())
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output().context("cannot start cargo")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo package failed:\n{said}");
    Ok(())
}
