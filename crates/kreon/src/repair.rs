//! Repair: what can still be read of a damaged store, into a new one.

use std::path::Path;
use std::sync::Arc;

use kreon_device::{FileDevice, FileOptions};
use kreon_engine::{SalvageOptions, SalvageProgress, SalvageReport, Survey};

use crate::{Error, Options, Result};

/// Salvages what is readable of a damaged store into a new one, and tells what is lost.
///
/// The source is opened for reading only: no byte of it changes, and nobody else can open it for writing
/// meanwhile. It may be damaged in any way: superblocks, catalogue, bitmap, tree pages, log, its end cut
/// off. What is salvaged has passed its checksums. Where the current value of a key cannot be read, the
/// key is left out and told, also if an older value is still there. One thing cannot be told key by key:
/// a hole in the log behind the last checkpoint hides which keys were written in it. They keep the values
/// that they had before, and the report tells the hole.
///
/// Memory is bounded by the target's settings and tens of MiB, plus about 16 bytes for each leaf, and the
/// longest value or the longest batch of the log. Time is that of reading the source two or three times and of writing the
/// target.
///
/// ```
/// # fn main() -> kreon::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let (damaged, repaired) = (folder.path().join("damaged"), folder.path().join("repaired"));
/// # let store = kreon::Store::open(&damaged)?;
/// # store.region("cities")?.put("chania", "53910")?;
/// # store.close()?;
/// let report = kreon::Repair::new().run(&damaged, &repaired)?;
/// assert!(report.is_complete());
/// for region in &report.regions {
///     println!("{}: {} pairs", region.name, region.pairs);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use = "a repair does nothing until `run`"]
pub struct Repair {
    target: Options,
    salvage: SalvageOptions,
    #[allow(clippy::type_complexity, reason = "a callback")]
    progress: Option<Box<dyn FnMut(SalvageProgress)>>,
}

impl Repair {
    /// A repair that takes nothing but what is current.
    pub fn new() -> Self {
        Self::default()
    }

    /// Settings of the new store.
    pub fn target(mut self, options: Options) -> Self {
        self.target = options;
        self
    }

    /// Where the current value of a key is lost, take an older one if there is one. Default no.
    pub fn stale_values(mut self, stale: bool) -> Self {
        self.salvage.stale_values = stale;
        self
    }

    /// Is called now and then while the repair goes on.
    pub fn progress(mut self, tell: impl FnMut(SalvageProgress) + 'static) -> Self {
        self.progress = Some(Box::new(tell));
        self
    }

    /// Salvages the store at `source` into a new one at `target`, where nothing may be yet.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `Io`: the source cannot be opened. `InvalidArgument`: nothing in it verifies as
    /// part of a store, it is of a newer format, or there is something at `target`. `OutOfSpace`, `Io`:
    /// the target cannot be written; what was made of it is removed. Damage of the source is no error but
    /// told in the report.
    pub fn run(self, source: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<SalvageReport> {
        let (source, target) = (source.as_ref(), target.as_ref());
        if std::fs::symlink_metadata(target).is_ok() {
            return Err(Error::invalid(format!(
                "{} is there already; a repair writes into a new store",
                target.display()
            )));
        }
        let survey = survey(source).map_err(|error| error.within(source.display()))?;
        let mut progress = self.progress.unwrap_or_else(|| Box::new(|_| ()));
        let outcome = || {
            let store = self.target.create(true).open(target)?;
            let report = survey.salvage(&store.engine, self.salvage, &mut *progress)?;
            store.close()?;
            Ok(report)
        };
        let outcome = outcome();
        if outcome.is_err() {
            // Half a store would be taken for a whole one. That it cannot be removed changes nothing.
            let _ = std::fs::remove_file(target);
        }
        outcome
    }
}

fn survey(source: &Path) -> Result<Survey> {
    let file = FileOptions {
        read_only: true,
        ..FileOptions::default()
    };
    let (device, _) = FileDevice::open(source, &file)?;
    Survey::take(Arc::new(device))
}
