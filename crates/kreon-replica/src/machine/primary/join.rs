//! How a server joins: everything is copied to it, it is counted, a checkpoint completes its volume, and only then is it
//! added to the set. And how one leaves that is not wanted any more.

use kreon_base::Lsn;

use super::{Action, Peer, Phase, Primary, Standing};
use crate::machine::{Configuration, Member, Moment, ServerId};

impl Primary {
    pub(super) fn on_attach_asked(&mut self, now: Moment, joiner: Member, out: &mut Vec<Action>) {
        let same_server = |peer: &&Peer| peer.member.server == joiner.server;
        match self.peers.iter().find(same_server).map(|peer| peer.member) {
            // It asks again, because the answer was lost.
            Some(known) if known == joiner => return,
            // An earlier start of that server, whose memory is gone: it leaves first, and the joiner asks again.
            Some(earlier) => return self.on_failed(now, earlier, out),
            None => {}
        }
        let wanted = self.is_wanted(&self.known.config, joiner.server);
        let busy = self.peers.iter().any(|p| p.standing < Standing::Member);
        if !wanted || busy || self.phase == Phase::Frozen || self.handing_over.is_some() {
            return;
        }
        let peer = Peer::new(joiner, Standing::Copying, Lsn(0), now);
        self.peers.push(peer);
        out.push(Action::Attach(joiner));
    }

    pub(super) fn on_copied(
        &mut self,
        now: Moment,
        joiner: Member,
        landed: Lsn,
        out: &mut Vec<Action>,
    ) {
        let Some(peer) = self.peer(joiner) else {
            return;
        };
        if peer.standing != Standing::Copying {
            return;
        }
        peer.standing = Standing::Completing;
        peer.landed = peer.landed.max(landed);
        peer.moved_at = now;
        out.push(Action::Complete(joiner));
        self.say(now, out);
    }

    pub(super) fn on_completed(&mut self, now: Moment, joiner: Member, out: &mut Vec<Action>) {
        let Some(peer) = self.peer(joiner) else {
            return;
        };
        if peer.standing == Standing::Completing {
            peer.standing = Standing::Complete;
            self.go_on(now, out);
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
