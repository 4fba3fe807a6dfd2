//! `kreon version`: which build this is, and which stores it opens.

use std::env::consts::{ARCH, OS};

use clap::Args;
use kreon_format::{FORMAT_VERSION, FORMAT_VERSION_MIN};
use serde_json::json;

use crate::failure::Result;
use crate::sink::Sink;

/// Print the version, the formats of stores that it opens, and what it was built for
#[derive(Debug, Args)]
pub struct Version {
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

impl Version {
    pub fn run(&self, out: &mut Sink) -> Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        let target = format!("{ARCH}-{OS}");
        let profile = match cfg!(debug_assertions) {
            true => "debug",
            false => "release",
        };
        let (oldest, newest) = (FORMAT_VERSION_MIN, FORMAT_VERSION);
        if self.json {
            let object = json!({
                "version": version,
                "format_version": newest,
                "format_version_min": oldest,
                "target": target,
                "profile": profile,
            });
            return Ok(out.line(&object.to_string())?);
        }
        out.line(&format!("kreon {version}"))?;
        out.line(&format!(
            "formats  opens {oldest} to {newest}, writes {newest}"
        ))?;
        out.line(&format!("target   {target}"))?;
        Ok(out.line(&format!("profile  {profile}"))?)
    }
}
