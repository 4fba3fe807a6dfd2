//! Where keys are, as far as this client knows.

use std::collections::BTreeMap;

use kreon_coord::Version;
use kreon_wire::{GroupConfig, GroupId, Member, Term};

/// Where a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) group: GroupId,
    pub(crate) term: Term,
    pub(crate) to: Member,
}

/// The configurations of groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Map {
    groups: BTreeMap<u32, (Version, GroupConfig)>,
}

impl Map {
    /// Takes over what is not older than what is known.
    pub(crate) fn learn(&mut self, version: Version, config: GroupConfig) {
        let held = self.groups.get(&config.group.0);
        // A range that moved may stand in two configurations of different age: the servers know better.
        let is_newer = |(known, held): &(Version, GroupConfig)| {
            // A coordinator that was restored counts anew from an earlier version.
            *known <= version || config.loss_term > held.term
        };
        if held.is_none_or(is_newer) {
            self.groups.insert(config.group.0, (version, config));
        }
    }

    /// The configurations, by group.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &GroupConfig> {
        self.groups.values().map(|(_, config)| config)
    }

    /// The primary of the group that holds a key; none while it has none, or nobody is known to hold the key.
    pub(crate) fn route(&self, table: &str, key: &[u8]) -> Option<Route> {
        let holds = |config: &&GroupConfig| {
            let mut ranges = config.ranges.iter();
            ranges.any(|range| range.table == table && range.holds(key))
        };
        let config = self.groups.values().map(|(_, config)| config).find(holds)?;
        Some(Route {
            group: config.group,
            term: config.term,
            to: config.primary?,
        })
    }
}
