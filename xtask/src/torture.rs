//! `cargo xtask sim`, `faults`, `trace`, `history`, `metamorphic`: `kreon-torture`, built for speed.

use anyhow::{Context, Result, ensure};

use crate::workspace::cargo;

/// Handed on to `kreon-torture` as they are.
#[derive(clap::Args)]
pub struct Arguments {
    /// See `kreon-torture sim --help`, and so on.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Runs a subcommand of `kreon-torture`.
pub fn run(subcommand: &str, arguments: &Arguments) -> Result<()> {
    // What the product's build does not have is compiled in only where it is wanted: bugs on command, and settings of
    // designs that answers must not depend on either.
    let features = match subcommand {
        "planted" => "planted,comparison",
        "metamorphic" => "comparison",
        _ => "",
    };
    let status = cargo()
        .args([
            "run",
            "--quiet",
            "--release",
            "--package",
            "kreon-torture",
            "--features",
            features,
            "--",
            subcommand,
        ])
        .args(&arguments.rest)
        // Every state takes and gives back buffers of megabytes: from the kernel, each time, they would
        // cost more than all the rest.
        .env("MALLOC_MMAP_THRESHOLD_", "268435456")
        .env("MALLOC_TRIM_THRESHOLD_", "1073741824")
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "kreon-torture {subcommand}: {status}");
    Ok(())
}
