//! What an operator or the master wants of a primary: that it hands over, that somebody leaves.

use super::{Action, Phase, Primary};
use crate::machine::{Configuration, Moment, ServerId};

impl Primary {
    pub(super) fn on_hand_over(&mut self, now: Moment, out: &mut Vec<Action>) {
        if self.is_resigning || self.handing_over.is_some() || self.is_sole() {
            return;
        }
        self.handing_over = Some(now);
        out.push(Action::TakeWrites(false));
        if self.durable_everywhere < self.tail {
            out.push(Action::Flush(self.tail));
        }
        self.hand_over(now, out);
    }

    /// Leaves office when every write that was taken is answered, or has waited for long enough.
    pub(super) fn hand_over(&mut self, now: Moment, out: &mut Vec<Action>) {
        let Some(since) = self.handing_over else {
            return;
        };
        if self.is_resigning || self.is_deposed() {
            return;
        }
        if self.is_sole() && self.change.is_none() {
            // Nobody is left to whom anything could be handed.
            self.handing_over = None;
            let enough = self.phase == Phase::Serving;
            return out.push(Action::TakeWrites(enough));
        }
        let all = self.acknowledged >= self.tail && self.durable_everywhere >= self.tail;
        if all || now.since_us(since) >= self.timing.seal_patience_us {
            self.resign(now, out);
        }
    }

    pub(super) fn on_remove(&mut self, now: Moment, server: ServerId, out: &mut Vec<Action>) {
        if server == self.me.server {
            return; // another one is to be promoted first
        }
        if !self.unwanted.contains(&server) {
            self.unwanted.push(server);
        }
        self.fail_unwanted(now, out);
    }

    /// Whether a server may have a replica.
    pub(super) fn is_wanted(&self, config: &Configuration, server: ServerId) -> bool {
        config.servers.contains(&server) && !self.unwanted.contains(&server)
    }

    /// Members and joiners that are not wanted leave as silent ones do. (This member stays: a set without its primary is
    /// none.)
    pub(super) fn fail_unwanted(&mut self, now: Moment, out: &mut Vec<Action>) {
        let peers = self.peers.iter().filter(|peer| !peer.is_failed);
        let unwanted = peers.filter(|p| !self.is_wanted(&self.known.config, p.member.server));
        let unwanted: Vec<_> = unwanted.map(|peer| peer.member).collect();
        for member in unwanted {
            self.on_failed(now, member, out);
        }
    }
}
