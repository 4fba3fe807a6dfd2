//! The command.

use std::path::PathBuf;

use anyhow::Context;

use super::block::block;
use super::marks::rewritten;
use super::sources::Sources;

/// What is written, and from what.
#[derive(clap::Args)]
pub struct Settings {
    /// Folders of runs (`--out` of other commands), all of one commit. Marks know each by its last name.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// The documents. Their tables stand between `<!-- results: TABLES of RUNS; ... -->` and `<!-- end of results -->`.
    #[arg(long = "document", required = true)]
    documents: Vec<PathBuf>,
}

/// Writes all tables of all documents anew.
///
/// # Errors
/// Of reading and writing; of a mark that asks for what is not there; of runs of two commits. No document is changed then.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let sources = Sources::read(&settings.runs)?;
    let mut written = Vec::new();
    for path in &settings.documents {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("read {}", path.display()))?;
        let mut tables = 0;
        let new = rewritten(&text, &mut |wanted| {
            tables += 1;
            block(wanted, &sources)
        });
        written.push((
            path,
            new.with_context(|| path.display().to_string())?,
            tables,
        ));
    }
    for (path, text, tables) in written {
        std::fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
        println!("{}: {tables} tables", path.display());
    }
    Ok(())
}
