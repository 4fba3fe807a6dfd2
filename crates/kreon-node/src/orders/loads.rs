//! Who is the primary of how many groups, and of how many it may be.

use std::collections::BTreeMap;

use kreon_wire::{GroupConfig, GroupId, LimitsNode, ServerId};

use super::Outcome;
use super::configs::Office;
use crate::settings::PRIMARIES_MAX;

/// Who is the primary of how many groups, and of how many it may be. A server that says nothing takes the usual.
#[derive(Clone, Debug, Default)]
pub struct Loads {
    led: BTreeMap<ServerId, u32>,
    most: BTreeMap<ServerId, u32>,
}

impl Loads {
    pub fn new(configs: &[GroupConfig], most: BTreeMap<ServerId, u32>) -> Self {
        let mut loads = Self {
            led: BTreeMap::new(),
            most,
        };
        for primary in configs.iter().filter_map(|config| config.primary) {
            loads.add(primary.server);
        }
        loads
    }

    /// It is the primary of one group more.
    pub fn add(&mut self, server: ServerId) {
        *self.led.entry(server).or_default() += 1;
    }

    fn led(&self, server: ServerId) -> u32 {
        self.led.get(&server).copied().unwrap_or(0)
    }

    fn most(&self, server: ServerId) -> u32 {
        self.most.get(&server).copied().unwrap_or(PRIMARIES_MAX)
    }

    /// Whether it takes no group more where another one can.
    fn is_full(&self, server: ServerId) -> bool {
        self.led(server) >= self.most(server)
    }

    /// The members of a set that could take over, whoever has least first, and those that are full last.
    pub fn heirs(&self, config: &GroupConfig) -> Vec<ServerId> {
        let primary = config.primary.map(|primary| primary.server);
        let members = config.in_sync.iter().map(|member| member.server);
        let mut heirs: Vec<_> = members.filter(|server| Some(*server) != primary).collect();
        heirs.sort_by_key(|server| (self.is_full(*server), self.led(*server), *server));
        heirs
    }

    /// Whether `to` is not to be the primary of a group, as it is full and another one that could be is not.
    pub fn refuses(&self, config: &GroupConfig, to: ServerId) -> bool {
        let heirs = self.heirs(config);
        self.is_full(to) && heirs.iter().any(|server| !self.is_full(*server))
    }

    /// What a server is to give up that has too much, and to whom.
    pub fn relief(&self, configs: &[GroupConfig]) -> Option<(GroupId, ServerId)> {
        let of = |config: &GroupConfig| {
            let primary = config.primary?.server;
            let heir = self.heirs(config).first().copied()?;
            let is_due = self.led(primary) > self.most(primary) && !self.is_full(heir);
            is_due.then_some((config.group, heir))
        };
        configs.iter().find_map(of)
    }
}

impl Office<'_> {
    /// All groups, and who leads how many.
    pub fn loads(&mut self) -> Outcome<(Vec<GroupConfig>, Loads)> {
        let mut configs = Vec::new();
        for group in self.groups()? {
            configs.push(self.config(group)?.0);
        }
        let mut most = BTreeMap::new();
        let servers = self.talk.children(&self.paths.servers(), false)?;
        let numbers = servers.unwrap_or_default();
        for number in numbers.iter().filter_map(|name| name.parse::<u32>().ok()) {
            let path = limits_path(self.paths, ServerId(number));
            if let Some(node) = self.talk.read(&path, false)? {
                let limits = LimitsNode::decode(&node.data)?;
                most.insert(ServerId(number), limits.primaries_max);
            }
        }
        let loads = Loads::new(&configs, most);
        Ok((configs, loads))
    }
}

/// Where a server says what it takes on.
pub fn limits_path(paths: &kreon_coord::Paths, server: ServerId) -> String {
    format!("{}/limits", paths.server(server.0))
}

#[cfg(test)]
mod tests {
    use kreon_wire::{Member, ProcessId, Term};

    use super::*;

    fn config(group: u32, primary: u32, in_sync: &[u32]) -> GroupConfig {
        let member = |server: u32| Member {
            server: ServerId(server),
            process: ProcessId([1; 16]),
        };
        GroupConfig {
            group: GroupId(group),
            term: Term(1),
            loss_accepted: false,
            loss_term: Term(0),
            all_needed: false,
            min_in_sync: 1,
            primary: Some(member(primary)),
            in_sync: in_sync.iter().copied().map(member).collect(),
            members: in_sync.iter().copied().map(ServerId).collect(),
            ranges: Vec::new(),
        }
    }

    fn loads(configs: &[GroupConfig], most: &[(u32, u32)]) -> Loads {
        let most = most.iter().map(|(server, most)| (ServerId(*server), *most));
        Loads::new(configs, most.collect())
    }

    #[test]
    fn a_server_that_has_too_much_gives_to_whoever_has_least() {
        let configs = [
            config(1, 1, &[1]),
            config(2, 1, &[1, 2, 3]),
            config(3, 2, &[1, 2, 3]),
        ];
        let relieved = |most: &[(u32, u32)]| loads(&configs, most).relief(&configs);
        assert_eq!(relieved(&[]), None);
        assert_eq!(relieved(&[(1, 2)]), None);
        assert_eq!(relieved(&[(1, 1)]), Some((GroupId(2), ServerId(3))));
        // Who is full gets none: it would have too much in turn.
        let none = [(1, 1), (2, 1), (3, 0)];
        assert_eq!(relieved(&none), None);
    }

    #[test]
    fn a_full_server_is_promoted_only_where_nobody_else_can_be() {
        let configs = [config(1, 1, &[1, 2, 3]), config(2, 2, &[1, 2])];
        let loads = loads(&configs, &[(2, 1)]);
        assert!(loads.refuses(&configs[0], ServerId(2)));
        assert!(!loads.refuses(&configs[0], ServerId(3)));
        let alone = config(1, 1, &[1, 2]);
        assert!(!loads.refuses(&alone, ServerId(2)));
        assert_eq!(loads.heirs(&configs[0]), [3, 2].map(ServerId));
    }
}
