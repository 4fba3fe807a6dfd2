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
    /// The same while nobody wrote, whether anybody scanned or not.
    pub idle: IdleStats,
}

/// Values that were laid together while nobody wrote, since the store was opened. Not counted elsewhere in
/// [`ReorganisationStats`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct IdleStats {
    /// Passes over all keys that came to their end.
    pub passes: u64,
    /// Records that were copied and take the place of the old ones.
    pub records_moved: u64,
    /// Bytes of the log that all copies take.
    pub bytes_copied: u64,
    /// Bytes that may still be copied before users give more, as of the last look in idle time.
    pub budget_bytes: u64,
    /// Time that it took.
    pub seconds: f64,
}
