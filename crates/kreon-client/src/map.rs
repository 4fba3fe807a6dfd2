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

    /// Whether another primary is named in a later term. Of the same one again nothing is concluded: it has the request, and
    /// answers it in its new term.
    pub(crate) fn has_replaced(&self, route: &Route) -> bool {
        let known = self.groups.get(&route.group.0);
        known.is_some_and(|(_, config)| {
            config.term > route.term && config.primary.is_some_and(|primary| primary != route.to)
        })
    }

    /// Whether a term after this one has begun in a group.
    pub(crate) fn is_over(&self, group: GroupId, term: Term) -> bool {
        let known = self.groups.get(&group.0);
        known.is_some_and(|(_, config)| config.term > term)
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
