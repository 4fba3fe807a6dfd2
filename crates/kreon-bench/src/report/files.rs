//! The files of a run: `results.json`, `results.md`, `report.html`.

use std::path::Path;

use anyhow::Context;

use super::results::Results;
use super::{html, table};

/// Writes all files of `results` into `dir`.
///
/// # Errors
/// Of writing.
pub fn write(results: &Results, dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
    let json = serde_json::to_string_pretty(results)?;
    let files = [
        ("results.json", json),
        ("results.md", table::markdown(results)),
        ("report.html", html::page(results)?),
    ];
    for (name, content) in files {
        let path = dir.join(name);
        std::fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}
