//! Figures of reorganisation.

/// Values that were laid together for scans, since the store was opened.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ReorganisationStats {
    /// Leaves whose values scans found scattered often enough.
    pub ranges_found: u64,
    /// Runs of leaves whose values were moved: one of those, and what lay scattered beside it.
    pub ranges_moved: u64,
    /// Records that were copied and take the place of the old ones.
    pub records_moved: u64,
    /// Bytes of the log that all copies take.
    pub bytes_copied: u64,
    /// Time that it took.
    pub seconds: f64,
}
