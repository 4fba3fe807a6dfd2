//! How far a store had come when the power was cut.

/// What must have survived, and what may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Units that were acknowledged as durable, those before them included.
    pub durable_units: usize,
    /// Units that were begun.
    pub begun_units: usize,
    /// Changes of regions that were acknowledged.
    pub durable_region_changes: usize,
    /// Changes of regions that were begun.
    pub begun_region_changes: usize,
}

/// What a power cut after `events` events must have left, and what it may have: the bounds of both
/// prefixes.
pub fn progress_at(timeline: &[(usize, Progress)], events: usize) -> Progress {
    let acknowledged = timeline.iter().rev().find(|(at, _)| *at <= events);
    let begun = timeline.iter().rev().find(|(at, _)| *at < events);
    let acknowledged = acknowledged.map(|(_, p)| *p).unwrap_or_default();
    let begun = begun.map(|(_, p)| *p).unwrap_or_default();
    Progress {
        durable_units: acknowledged.durable_units,
        begun_units: begun.begun_units.max(acknowledged.durable_units),
        durable_region_changes: acknowledged.durable_region_changes,
        begun_region_changes: begun
            .begun_region_changes
            .max(acknowledged.durable_region_changes),
    }
}
