//! `cargo xtask cluster-sim`: runs `kreon-cluster-sim`.

use anyhow::{Context, Result, ensure};

use crate::workspace::cargo;

/// How it is built.
#[derive(Clone, Copy)]
pub enum Profile {
    /// As for tests, of which it has been built already.
    OfTests,
    /// For long runs.
    ForSpeed,
}

/// Handed on to `kreon-cluster-sim` as they are.
#[derive(clap::Args)]
pub struct Arguments {
    /// See `kreon-cluster-sim --help`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

impl Arguments {
    /// Random walks with so many seeds.
    pub fn walks(seeds: u32) -> Self {
        let rest = ["--seeds".to_owned(), seeds.to_string()];
        Self { rest: rest.into() }
    }
}

/// Explores the protocol of the cluster; with `--bug`, the machines with that bug.
pub fn run(arguments: &Arguments, profile: Profile) -> Result<()> {
    let features = match arguments
        .rest
        .iter()
        .any(|argument| argument.starts_with("--bug"))
    {
        true => "planted",
        false => "",
    };
    let profile = match profile {
        Profile::OfTests => "dev",
        Profile::ForSpeed => "release",
    };
    let status = cargo()
        .args(["run", "--quiet", "--profile", profile])
        .args(["--package", "kreon-cluster-sim"])
        .args(["--features", features, "--"])
        .args(&arguments.rest)
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "kreon-cluster-sim: {status}");
    Ok(())
}
