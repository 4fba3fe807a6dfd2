//! Groups on their way from one server to another: a copy joins, takes over if need be, and the old one is removed.
//!
//! What is to be done next is read off the configuration each time, so a move that was broken off goes on where it was,
//! and an order that was lost is given again.

use std::collections::BTreeMap;

use kreon_wire::{GroupConfig, GroupId, ServerId};

use super::survey::Survey;

/// A copy of a group that is to be elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub group: GroupId,
    /// Who is to have it no more.
    pub from: ServerId,
    /// Who is to have it.
    pub to: ServerId,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The server becomes a member.
    Add(ServerId),
    /// Its copy is on its way.
    Join(ServerId),
    /// The server becomes the primary.
    Promote(ServerId),
    /// Nobody can be asked.
    NoPrimary,
    /// The server is no member any more.
    Remove(ServerId),
    Done,
}

impl Move {
    /// What is to be done next for it in `config`.
    pub fn next(&self, config: &GroupConfig) -> Next {
        let in_sync = |server| config.in_sync.iter().any(|member| member.server == server);
        let Some(primary) = config.primary else {
            return Next::NoPrimary;
        };
        if !config.members.contains(&self.to) {
            return Next::Add(self.to);
        }
        if !in_sync(self.to) {
            return Next::Join(self.to);
        }
        if primary.server == self.from {
            return Next::Promote(self.to);
        }
        match config.members.contains(&self.from) {
            true => Next::Remove(self.from),
            false => Next::Done,
        }
    }
}

/// How many copies each server has, or will have.
struct Load<'a> {
    survey: &'a Survey,
    copies: BTreeMap<ServerId, usize>,
}

impl<'a> Load<'a> {
    fn of(survey: &'a Survey) -> Self {
        let mut copies: BTreeMap<_, _> = survey
            .servers
            .iter()
            .filter(|node| survey.is_live(node.server))
            .map(|node| (node.server, 0))
            .collect();
        for (_, config) in &survey.groups {
            for server in &config.members {
                *copies.entry(*server).or_default() += 1;
            }
        }
        Self { survey, copies }
    }

    fn domain(&self, server: ServerId) -> Option<&str> {
        let node = self
            .survey
            .servers
            .iter()
            .find(|node| node.server == server)?;
        Some(&node.domain)
    }

    /// Whether another member than `from` fails together with `to`.
    fn shares_domain(&self, config: &GroupConfig, from: ServerId, to: ServerId) -> bool {
        let mut others = config.members.iter().filter(|server| **server != from);
        others.any(|server| self.domain(*server) == self.domain(to))
    }

    fn plan(&mut self, config: &GroupConfig, from: ServerId, to: ServerId) -> Move {
        *self.copies.entry(to).or_default() += 1;
        if let Some(copies) = self.copies.get_mut(&from) {
            *copies = copies.saturating_sub(1);
        }
        Move {
            group: config.group,
            from,
            to,
        }
    }
}

/// The moves after which `server` has no copy: each to the live server with the fewest that is no member, and of another
/// failure domain than the others if there is one.
///
/// # Errors
/// A group whose copy nobody can take.
pub fn draining(survey: &Survey, server: ServerId) -> Result<Vec<Move>, GroupId> {
    let mut load = Load::of(survey);
    let mut moves = Vec::new();
    for (_, config) in &survey.groups {
        if !config.members.contains(&server) {
            continue;
        }
        let can_take =
            |to: &ServerId| *to != server && survey.is_live(*to) && !config.members.contains(to);
        let takers = load.copies.keys().copied().filter(can_take);
        let best = takers.min_by_key(|to| {
            let copies = load.copies.get(to).copied().unwrap_or(0);
            (load.shares_domain(config, server, *to), copies, *to)
        });
        let to = best.ok_or(config.group)?;
        moves.push(load.plan(config, server, to));
    }
    Ok(moves)
}

/// The moves after which `server` has its share of copies: from those that have the most.
pub fn filling(survey: &Survey, server: ServerId) -> Vec<Move> {
    let mut load = Load::of(survey);
    let servers = load.copies.len().max(1);
    let share = load.copies.values().sum::<usize>() / servers;
    let primaries_share = survey.groups.len() / servers;
    let (mut moves, mut primaries) = (Vec::new(), 0);
    while load.copies.get(&server).copied().unwrap_or(0) < share {
        // A primary for each part of the share, as a move takes over the office with the copy.
        let wants_primary = primaries < primaries_share;
        let from_whom = |config: &GroupConfig| {
            let givers = config.members.iter().copied().filter(|from| {
                let more = load.copies.get(from) > load.copies.get(&server);
                more && !load.shares_domain(config, *from, server)
            });
            givers
                .map(|from| {
                    let is_primary = config.primary.is_some_and(|member| member.server == from);
                    let copies = load.copies.get(&from).copied().unwrap_or(0);
                    (is_primary == wants_primary, copies, from)
                })
                .max()
        };
        let can_move = |config: &GroupConfig| {
            !config.members.contains(&server)
                && !moves.iter().any(|one: &Move| one.group == config.group)
        };
        let configs = survey.groups.iter().map(|(_, config)| config);
        let best = configs
            .filter(|config| can_move(config))
            .filter_map(|config| Some((from_whom(config)?, config)))
            .max_by_key(|(giver, config)| (*giver, std::cmp::Reverse(config.group)));
        let Some(((is_as_wanted, _, from), config)) = best else {
            break;
        };
        primaries += usize::from(wants_primary && is_as_wanted);
        moves.push(load.plan(config, from, server));
    }
    moves
}

#[cfg(test)]
mod tests {
    use kreon_wire::{Member, ProcessId, ServerNode, Term};

    use super::*;

    fn member(server: u32) -> Member {
        Member {
            server: ServerId(server),
            process: ProcessId([1; 16]),
        }
    }

    fn config(group: u32, primary: u32, members: &[u32]) -> GroupConfig {
        GroupConfig {
            group: GroupId(group),
            term: Term(1),
            loss_accepted: false,
            loss_term: Term(0),
            all_needed: false,
            min_in_sync: 2,
            primary: Some(member(primary)),
            in_sync: members.iter().copied().map(member).collect(),
            members: members.iter().copied().map(ServerId).collect(),
            ranges: Vec::new(),
        }
    }

    /// Servers with a letter for their failure domain.
    fn survey(domains: &[&str], groups: Vec<GroupConfig>) -> Survey {
        let servers = domains.iter().zip(1..).map(|(domain, number)| ServerNode {
            server: ServerId(number),
            peer_address: "a".into(),
            client_address: "a".into(),
            domain: (*domain).to_owned(),
        });
        Survey {
            servers: servers.collect(),
            live: (1..).take(domains.len()).map(member).collect(),
            groups: groups.into_iter().map(|config| (0, config)).collect(),
            ..Survey::default()
        }
    }

    #[test]
    fn a_move_adds_joins_promotes_removes_and_is_done() {
        let moved = Move {
            group: GroupId(1),
            from: ServerId(1),
            to: ServerId(4),
        };
        let mut config = config(1, 1, &[1, 2, 3]);
        assert_eq!(moved.next(&config), Next::Add(ServerId(4)));
        config.members.push(ServerId(4));
        assert_eq!(moved.next(&config), Next::Join(ServerId(4)));
        config.in_sync.push(member(4));
        assert_eq!(moved.next(&config), Next::Promote(ServerId(4)));
        config.primary = None;
        assert_eq!(moved.next(&config), Next::NoPrimary);
        config.primary = Some(member(4));
        assert_eq!(moved.next(&config), Next::Remove(ServerId(1)));
        config.members.remove(0);
        assert_eq!(moved.next(&config), Next::Done);
    }

    #[test]
    fn draining_spreads_copies_and_keeps_failure_domains_apart() {
        let groups = vec![config(1, 1, &[1, 2, 3]), config(2, 2, &[1, 2, 3])];
        // Server 4 fails together with server 2, server 5 with nobody.
        let moves = draining(
            &survey(&["a", "b", "c", "b", "d"], groups.clone()),
            ServerId(1),
        )
        .unwrap();
        assert!(moves.iter().all(|one| one.to == ServerId(5)), "{moves:?}");
        // None is apart: then it is only the number of copies.
        let moves = draining(
            &survey(&["a", "b", "c", "b", "c"], groups.clone()),
            ServerId(1),
        )
        .unwrap();
        assert_eq!([moves[0].to, moves[1].to], [ServerId(4), ServerId(5)]);
        let nobody = draining(&survey(&["a", "b", "c"], groups), ServerId(1));
        assert_eq!(nobody, Err(GroupId(1)));
    }

    #[test]
    fn a_new_server_gets_its_share_of_copies_and_of_primaries() {
        let groups = (1..=8)
            .map(|group| config(group, group % 3 + 1, &[1, 2, 3]))
            .collect();
        let survey = survey(&["a", "b", "c", "d"], groups);
        let moves = filling(&survey, ServerId(4));
        assert_eq!(moves.len(), 6);
        let of_primaries = moves.iter().filter(|one| {
            let (_, config) = survey
                .groups
                .iter()
                .find(|(_, config)| config.group == one.group)
                .unwrap();
            config.primary.unwrap().server == one.from
        });
        assert_eq!(of_primaries.count(), 2);
        for server in 1..=3 {
            assert_eq!(
                moves
                    .iter()
                    .filter(|one| one.from == ServerId(server))
                    .count(),
                2
            );
        }
        // It has its share.
        let mut full = survey.clone();
        for one in &moves {
            let (_, config) = full
                .groups
                .iter_mut()
                .find(|(_, config)| config.group == one.group)
                .unwrap();
            config.members.retain(|server| *server != one.from);
            config.members.push(one.to);
        }
        assert_eq!(filling(&full, ServerId(4)), []);
    }
}
