//! `FLOORS.toml` as a value.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The house as it should be.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub crates: Crates,
    /// By the name of the crate.
    #[serde(default)]
    pub modules: BTreeMap<String, Floors>,
    pub limits: Limits,
    #[serde(default)]
    pub cycles: Cycles,
    /// By the name of a document: how many figures it holds.
    #[serde(default)]
    pub figures: BTreeMap<String, usize>,
}

/// Names by floor, from the ground up.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floors {
    pub floors: Vec<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crates {
    pub floors: Vec<Vec<String>>,
    pub side: Vec<String>,
    pub wells: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub core_floor_max: usize,
    pub core_dependencies_max: usize,
    pub file_lines_max: usize,
    pub function_lines_max: usize,
}

/// How many files may all depend on each other.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Cycles {
    pub files_max: usize,
    /// By the name of a crate that has more: exactly how many.
    #[serde(default)]
    pub exceptions: BTreeMap<String, usize>,
}

impl Plan {
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("cannot understand {}", path.display()))
    }
}

/// The floor that `name` stands on.
pub fn floor_of(floors: &[Vec<String>], name: &str) -> Option<usize> {
    floors
        .iter()
        .position(|floor| floor.iter().any(|n| n == name))
}
