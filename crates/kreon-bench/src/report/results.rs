//! `results.json`: everything that was measured and on what.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::origin::Origin;
use crate::machine::about::About;
use crate::run::parent::Broken;
use crate::run::record::Record;
use crate::run::settings::Settings;

/// The file's content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Of this layout; higher when a field changes its meaning or goes.
    pub schema: u32,
    /// Where the figures come from.
    #[serde(flatten)]
    pub origin: Origin,
    /// The machine.
    pub machine: About,
    /// What was asked for.
    pub settings: Settings,
    /// A record for each phase of each store in each round.
    pub records: Vec<Record>,
    /// Stores that did not come to their end.
    pub broken: Vec<Broken>,
}

/// See [`Results::schema`].
pub const SCHEMA: u32 = 1;

impl Results {
    /// Answers that were not what they must be, in all records.
    pub fn failures(&self) -> u64 {
        self.records.iter().map(|record| record.failures).sum()
    }

    /// Reads `results.json`.
    ///
    /// # Errors
    /// Of reading, or if it is of another layout.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
        serde_json::from_slice(&bytes).with_context(|| format!("understand {}", path.display()))
    }
}
