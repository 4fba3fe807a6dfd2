//! Without the feature `lock-times` there is no way to know how long locks are held.

use anyhow::bail;

use super::settings::Settings;

/// Refuses.
///
/// # Errors
/// Always.
pub fn run(_: &Settings) -> anyhow::Result<()> {
    bail!("--demands wants a build with --features lock-times")
}
