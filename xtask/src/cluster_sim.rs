//! `cargo xtask cluster-sim`: `kreon-cluster-sim`, built for speed.

use anyhow::{Context, Result, ensure};

use crate::workspace::cargo;

/// Handed on to `kreon-cluster-sim` as they are.
#[derive(clap::Args)]
pub struct Arguments {
    /// See `kreon-cluster-sim --help`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Explores the protocol of the cluster; with `--bug`, the machines with that bug.
pub fn run(arguments: &Arguments) -> Result<()> {
    let features = match arguments
        .rest
        .iter()
        .any(|argument| argument.starts_with("--bug"))
    {
        true => "planted",
        false => "",
    };
    let status = cargo()
        .args([
            "run",
            "--quiet",
            "--release",
            "--package",
            "kreon-cluster-sim",
        ])
        .args(["--features", features, "--"])
        .args(&arguments.rest)
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "kreon-cluster-sim: {status}");
    Ok(())
}
