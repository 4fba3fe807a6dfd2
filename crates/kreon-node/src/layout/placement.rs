//! Members of groups, spread over failure domains and evenly over servers.

use std::collections::{BTreeMap, BTreeSet};

use kreon_replica::machine::preference;
use kreon_wire::{GroupId, ServerId};

use super::init::ServerPlace;

/// How much a server has been given.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Groups of which it is promoted first.
    first: u32,
    groups: u32,
}

/// The members of each of `groups` groups, ascending, and whether members of a group share a failure domain because there
/// are too few of these. `replicas` is at most the number of servers.
pub fn place(
    servers: &[ServerPlace],
    replicas: usize,
    groups: u32,
) -> (Vec<(GroupId, Vec<ServerId>)>, bool) {
    let mut loads: BTreeMap<ServerId, Load> = servers
        .iter()
        .map(|place| (place.server, Load::default()))
        .collect();
    let mut placed = Vec::new();
    let mut is_shared = false;
    for group in (1..=groups).map(GroupId) {
        let sets = servers.iter().map(|first| {
            let mut members = around(first, servers, replicas, &loads);
            members.sort_unstable();
            members.dedup();
            members
        });
        // Who is promoted first follows from group and members: the set is taken whose first one has least.
        let cost = |members: &Vec<ServerId>| {
            let first = preference(group, members).first().copied();
            let first = first.and_then(|first| loads.get(&first).map(|load| load.first));
            let total: u32 = members.iter().map(|member| loads[member].groups).sum();
            (first, total, members.clone())
        };
        let Some(members) = sets.min_by_key(cost) else {
            return (placed, is_shared);
        };
        if let Some(load) = preference(group, &members)
            .first()
            .and_then(|first| loads.get_mut(first))
        {
            load.first += 1;
        }
        for member in &members {
            loads.entry(*member).or_default().groups += 1;
        }
        let of_members = servers
            .iter()
            .filter(|place| members.contains(&place.server));
        let domains: BTreeSet<&str> = of_members.map(|place| place.domain.as_str()).collect();
        is_shared |= domains.len() < members.len();
        placed.push((group, members));
    }
    (placed, is_shared)
}

/// A set with this server: others of domains that it has not yet, and of these those with least.
fn around(
    first: &ServerPlace,
    servers: &[ServerPlace],
    replicas: usize,
    loads: &BTreeMap<ServerId, Load>,
) -> Vec<ServerId> {
    let mut members = vec![first];
    while members.len() < replicas {
        let others = servers.iter().filter(|place| {
            let is_member = |member: &&ServerPlace| member.server == place.server;
            !members.iter().any(is_member)
        });
        let cost = |place: &&ServerPlace| {
            let shares = members.iter().any(|member| member.domain == place.domain);
            (shares, loads[&place.server].groups, place.server)
        };
        match others.min_by_key(cost) {
            Some(next) => members.push(next),
            None => break,
        }
    }
    members.iter().map(|place| place.server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(domains: &[&str]) -> Vec<ServerPlace> {
        let place = |(index, domain): (usize, &&str)| ServerPlace {
            server: ServerId(index as u32 + 1),
            domain: (*domain).to_owned(),
        };
        domains.iter().enumerate().map(place).collect()
    }

    fn firsts(placed: &[(GroupId, Vec<ServerId>)]) -> BTreeMap<ServerId, u32> {
        let mut counts = BTreeMap::new();
        for (group, members) in placed {
            *counts.entry(preference(*group, members)[0]).or_default() += 1;
        }
        counts
    }

    #[test]
    fn three_servers_hold_all_groups_and_each_is_first_of_a_third() {
        let (placed, is_shared) = place(&servers(&["a", "b", "c"]), 3, 15);
        assert!(!is_shared);
        assert!(placed.iter().all(|(_, members)| members.len() == 3));
        let firsts = firsts(&placed);
        assert!(firsts.values().all(|count| *count == 5), "{firsts:?}");
    }

    #[test]
    fn members_of_a_group_do_not_share_a_domain_where_there_are_enough() {
        let servers = servers(&["a", "a", "b", "b", "c", "c"]);
        let (placed, is_shared) = place(&servers, 3, 30);
        assert!(!is_shared);
        let firsts = firsts(&placed);
        let (least, most) = (firsts.values().min(), firsts.values().max());
        assert_eq!(firsts.len(), 6);
        assert!(most.unwrap() - least.unwrap() <= 2, "{firsts:?}");
        let mut held = BTreeMap::new();
        for (_, members) in &placed {
            for member in members {
                *held.entry(*member).or_insert(0) += 1;
            }
        }
        assert!(
            held.values().all(|count| (13..=17).contains(count)),
            "{held:?}"
        );
    }

    #[test]
    fn too_few_domains_are_told() {
        let (placed, is_shared) = place(&servers(&["a", "a", "a"]), 2, 3);
        assert!(is_shared);
        assert!(placed.iter().all(|(_, members)| members.len() == 2));
    }
}
