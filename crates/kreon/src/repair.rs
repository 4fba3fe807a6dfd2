//! Repair: copies the readable data of a damaged store into a new store.

use std::path::Path;
use std::sync::Arc;

use kreon_device::{FileDevice, FileOptions};
use kreon_engine::{SalvageOptions, SalvageProgress, SalvageReport, Survey};

use crate::{Error, Options, Result};

/// Copies all readable data of a damaged store into a new store and reports what is lost.
///
/// The source is opened for reading only: none of its bytes change, and no process can open it for writing meanwhile.
/// Any part of it may be damaged: superblocks, catalogue, bitmap, tree pages, log; it may be truncated. Only data with
/// valid checksums is copied. If the current value of a key cannot be read, the key is left out and reported, even if
/// an older value is readable. One loss cannot be reported by key: a hole in the log behind the last checkpoint hides
/// which keys were written there. These keys keep their older values, and the report lists the hole.
///
/// It takes the memory of the target's settings and tens of MiB, about 16 bytes for each leaf, and the length of the
/// longest value or batch in the log. It takes the time to read the source two or three times and to write the target.
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
    /// A repair that copies only current values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Settings of the new store.
    pub fn target(mut self, options: Options) -> Self {
        self.target = options;
        self
    }

    /// Whether a key whose current value is lost gets an older readable value. Default `false`.
    pub fn stale_values(mut self, stale: bool) -> Self {
        self.salvage.stale_values = stale;
        self
    }

    /// Sets a callback that is called from time to time during the repair.
    pub fn progress(mut self, tell: impl FnMut(SalvageProgress) + 'static) -> Self {
        self.progress = Some(Box::new(tell));
        self
    }

    /// Copies the store at `source` into a new store at `target`; nothing may exist at `target` yet.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `Io`: the source cannot be opened. `InvalidArgument`: no part of the source verifies as a
    /// store, its format is newer, or `target` exists. `OutOfSpace`, `Io`: the target cannot be written; the incomplete
    /// target is removed. Damage of the source is reported in the result, not as an error.
    pub fn run(self, source: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<SalvageReport> {
        let (source, target) = (source.as_ref(), target.as_ref());
        if std::fs::symlink_metadata(target).is_ok() {
            return Err(Error::invalid(format!(
                "{} exists already; a repair writes into a new store",
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
            // A partial target would be mistaken for a whole store. If the removal fails, the first error is still the
            // one to return.
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
