//! `cargo xtask interleavings`: the models of the concurrent parts, under schedules that a tool chooses.

use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::workspace::{cargo, target_directory};

/// A tool, and the crates whose models it runs.
struct Tool {
    /// Also the name of the `cfg` under which the crates use its primitives.
    name: &'static str,
    crates: &'static [&'static str],
}

const TOOLS: [Tool; 2] = [
    Tool {
        name: "loom",
        crates: &["kreon-device", "kreon-l0", "kreon-mapping"],
    },
    Tool {
        name: "shuttle",
        crates: &["kreon-log", "kreon-engine", "kreon-tucana", "kreon-fabric"],
    },
];

/// Which models.
#[derive(clap::Args)]
pub struct Arguments {
    /// `loom` (every interleaving of small models, weak memory included) or `shuttle` (random ones of
    /// larger parts). Both if left out.
    tool: Option<String>,
    /// Only models whose name contains this.
    #[arg(long, default_value = "model_")]
    only: String,
}

/// Runs the models one after the other. They are tests called `model_...`.
pub fn run(arguments: &Arguments) -> Result<()> {
    let asked = arguments.tool.as_deref();
    let known = |name| TOOLS.iter().any(|tool| tool.name == name);
    ensure!(asked.is_none_or(known), "the tools are loom and shuttle");
    let start = Instant::now();
    for tool in &TOOLS {
        if asked.is_none_or(|asked| asked == tool.name) {
            for name in tool.crates {
                run_crate(tool, name, &arguments.only)?;
            }
        }
    }
    println!("all models hold, {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// One crate at a time: built together, features that only one of them wants would change the others.
fn run_crate(tool: &Tool, name: &str, only: &str) -> Result<()> {
    println!("== {name} under {}", tool.name);
    let status = cargo()
        .args(["test", "--quiet", "--package", name, "--lib"])
        // No ordinary test's name contains this.
        .args(["--", only, "--nocapture", "--test-threads=1"])
        .env("RUSTFLAGS", format!("--cfg {}", tool.name))
        .env("CARGO_TARGET_DIR", target_directory()?.join(tool.name))
        .status()
        .context("starting cargo")?;
    ensure!(
        status.success(),
        "models of {name} under {}: {status}",
        tool.name
    );
    Ok(())
}
