//! Where the workspace is, and how to call cargo in it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The folder that holds the workspace's `Cargo.toml`.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The cargo that runs this command, to be called in the workspace.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The cargo of the nightly toolchain, through rustup's own: the one that runs this command is of
/// another toolchain.
pub fn nightly_cargo() -> Command {
    let mut command = Command::new("cargo");
    command
        .arg("+nightly")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .current_dir(root());
    command
}

/// Where cargo builds.
pub fn target_directory() -> Result<std::path::PathBuf> {
    Ok(metadata(&["--no-deps"])?.target_directory)
}

/// What `cargo metadata` tells, as far as it is of use here.
#[derive(Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
    pub target_directory: std::path::PathBuf,
}

/// A crate.
#[derive(Default, Deserialize)]
pub struct Package {
    pub name: String,
    pub manifest_path: std::path::PathBuf,
    pub dependencies: Vec<Dependency>,
    pub targets: Vec<Target>,
    /// Registries that it may go to; `None` for any.
    pub publish: Option<Vec<String>>,
    pub description: Option<String>,
    pub keywords: Vec<String>,
    pub categories: Vec<String>,
    pub readme: Option<std::path::PathBuf>,
}

/// An arrow from one crate to another.
#[derive(Deserialize)]
pub struct Dependency {
    pub name: String,
    /// `None` for an ordinary dependency, else "dev" or "build".
    pub kind: Option<String>,
    /// The folder of a crate of this workspace; `None` for one from outside.
    pub path: Option<std::path::PathBuf>,
    /// The platform or `cfg` under which alone it is one.
    #[serde(default)]
    pub target: Option<String>,
    /// Whether it is one only with a feature.
    #[serde(default)]
    pub optional: bool,
}

/// A library, binary, test, bench or example of a crate.
#[derive(Deserialize)]
pub struct Target {
    pub kind: Vec<String>,
    pub src_path: std::path::PathBuf,
}

/// Asks cargo about the workspace; `arguments` narrow or widen the answer.
pub fn metadata(arguments: &[&str]) -> Result<Metadata> {
    let output = cargo()
        .args(["metadata", "--format-version", "1"])
        .args(arguments)
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        output.status
    );
    serde_json::from_slice(&output.stdout).context("cannot read what cargo metadata said")
}
