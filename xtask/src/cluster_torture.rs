//! `cargo xtask cluster-torture`: runs `kreon-cluster-torture`, built for speed.

use anyhow::{Context, Result, ensure};

use crate::workspace::cargo;

/// Handed on to `kreon-cluster-torture` as they are.
#[derive(clap::Args)]
pub struct Arguments {
    /// See `kreon-cluster-torture --help`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Tortures real servers; with `--bug` or `--planted`, those with bugs.
pub fn run(arguments: &Arguments) -> Result<()> {
    let is_planted =
        |argument: &String| argument.starts_with("--bug") || argument.starts_with("--planted");
    let features = match arguments.rest.iter().any(is_planted) {
        true => "planted",
        false => "",
    };
    let status = cargo()
        .args(["run", "--quiet", "--release"])
        .args(["--package", "kreon-cluster-torture"])
        .args(["--features", features, "--"])
        .args(&arguments.rest)
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "kreon-cluster-torture: {status}");
    Ok(())
}
