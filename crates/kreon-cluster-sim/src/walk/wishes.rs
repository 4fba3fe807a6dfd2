//! What is wanted while all is well: planned promotions, removals, other servers and ranges.

use std::sync::Arc;

use kreon_coord::fake::Fate;
use kreon_coord::{Command, Operation, Reply};
use kreon_replica::machine::master::{self, Office};
use kreon_replica::machine::{Configuration, Known, ServerId, Version, primary};
use kreon_wire::KeyRange;

use super::clients::ranges;
use super::event::Happening;
use super::office::bytes_of;
use super::run::Walk;
use crate::explore::GROUP;
use crate::toy::{Place, place};

impl Walk {
    pub(super) fn wish(&mut self) {
        let us = 300_000 + self.dice.below(3_000_000);
        self.after(us, Happening::Wish);
        let leads = |node: &super::node::Node| node.up && node.is_leader;
        let leader = self.nodes.iter().position(leads);
        let server = ServerId(1 + self.dice.below(self.nodes.len() as u64) as u32);
        match (self.dice.below(4), leader) {
            (0, Some(leader)) => self.want_promotion(leader, server),
            (1, Some(leader)) => self.change_servers(leader, server),
            (2, Some(leader)) => self.change_ranges(leader),
            (3, _) => self.want_removal(server),
            _ => {}
        }
    }

    fn want_promotion(&mut self, leader: Place, to: ServerId) {
        self.count("promotion wanted");
        self.wished = Some((to, self.current.config.term.next()));
        self.for_master(leader, master::Event::Promote { group: GROUP, to });
    }

    fn want_removal(&mut self, server: ServerId) {
        if let Some(primary) = self.current.config.primary {
            self.count("removal wanted");
            let remove = primary::Event::Remove(server);
            self.for_primary(place(primary), None, remove);
        }
    }

    /// A server that is in no set is to have no replica, or is to have one again.
    fn change_servers(&mut self, leader: Place, server: ServerId) {
        let changed = |config: &Configuration| {
            let mut servers = config.servers.to_vec();
            match servers.iter().position(|held| *held == server) {
                Some(index) => {
                    let is_in_set = config.in_sync.iter().any(|m| m.server == server);
                    if is_in_set || servers.len() == 1 {
                        return None;
                    }
                    servers.remove(index);
                }
                None => servers.push(server),
            }
            servers.sort_unstable();
            Some(Configuration {
                servers: servers.into(),
                ..config.clone()
            })
        };
        if self.edit(leader, changed) {
            self.count("servers changed");
        }
    }

    /// Another table is in the group, or not any more.
    fn change_ranges(&mut self, leader: Place) {
        let another = KeyRange {
            table: "u".to_owned(),
            start: Vec::new(),
            end: None,
        };
        let both: Arc<[u8]> = [ranges(), KeyRange::encode_all(&[another])].concat().into();
        let changed = |config: &Configuration| {
            let next = match config.ranges == both {
                true => ranges().into(),
                false => Arc::clone(&both),
            };
            Some(Configuration {
                ranges: next,
                ..config.clone()
            })
        };
        if self.edit(leader, changed) {
            self.count("ranges changed");
        }
    }

    /// The master's office changes the configuration, whatever the machines do meanwhile; whether it did.
    fn edit(
        &mut self,
        leader: Place,
        changed: impl Fn(&Configuration) -> Option<Configuration>,
    ) -> bool {
        let node = &self.nodes[leader];
        let (Some(session), Office::Leader { fence }) = (node.session, node.master.office()) else {
            return false;
        };
        if node.is_cut_off || self.coordinator_down {
            return false;
        }
        let path = self.paths.group(GROUP.0);
        self.fake.carry_out(session, &Command::Sync, Fate::Answered);
        let get = Command::Get {
            path: path.clone(),
            watch: false,
        };
        let Reply::Node(found) = self.fake.carry_out(session, &get, Fate::Answered) else {
            return false;
        };
        let Ok(known) = Known::of_bytes(GROUP, &found.data, Version(found.version.0)) else {
            return false;
        };
        let Some(next) = changed(&known.config) else {
            return false;
        };
        let fence = kreon_coord::Version(fence.0);
        let swap = Command::Multi(vec![
            Operation::Set(path, bytes_of(&next), found.version),
            Operation::Check(self.paths.master_fence(), fence),
        ]);
        self.fake.carry_out(session, &swap, Fate::Answered);
        let is_changed = self.witness();
        if is_changed {
            self.on_swapped(&next);
        }
        is_changed
    }
}
