//! A state, readable.

use std::fmt;

use kreon_replica::machine::Member;
use kreon_replica::machine::replica::State;

use super::World;
use super::world::Server;
use crate::toy::{place, start};

fn name(member: Member) -> String {
    format!("{}{}", (b'A' + place(member) as u8) as char, start(member))
}

fn told(state: &State) -> String {
    match state {
        State::Absent => "absent".into(),
        State::Stale => "stale".into(),
        State::Joining(stream) => format!("joining {} in {}", name(stream.primary), stream.term.0),
        State::InSync(stream) => format!("follows {} in {}", name(stream.primary), stream.term.0),
        State::Sealing { term, .. } => format!("sealing {}", term.0),
        State::Sealed { term, .. } => format!("sealed {}", term.0),
        State::Repairing(stream) => format!("repairing for {}", name(stream.primary)),
        State::Equalising(office) => format!("equalising in {}", office.term().0),
        State::Opening(office) => format!("opening in {}", office.term().0),
        State::Serving(term) => format!("serving in {}", term.0),
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.config.config;
        let set: Vec<_> = config.in_sync.iter().map(|m| name(*m)).collect();
        let primary = config.primary.map_or("nobody".into(), name);
        let all = if config.all_needed {
            ", all of it needed"
        } else {
            ""
        };
        let (term, set) = (config.term.0, set.join(" "));
        writeln!(f, "      term {term}, {primary} in office, set {set}{all}")?;
        for (at, server) in self.servers.iter().enumerate() {
            let me = name(self.member(at));
            writeln!(f, "      {me}: {server}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writes: Vec<_> = self.volume.log.iter().map(|entry| entry.write).collect();
        let durable = self.volume.durable;
        write!(f, "log {writes:?}, {durable} durable, ")?;
        match self.volume.slot {
            Some(slot) => write!(f, "slot {}/{}, ", slot.incarnation.0, slot.epoch.0)?,
            None => write!(f, "no slot, ")?,
        }
        match self.up {
            true => write!(f, "{}", told(self.replica.state()))?,
            false => write!(f, "down")?,
        }
        let Some(primary) = &self.primary else {
            return Ok(());
        };
        let peers = primary.peers().iter();
        let peers: Vec<_> = peers
            .map(|p| format!("{} {:?} {}", name(p.member), p.standing, p.landed.0))
            .collect();
        let (phase, acknowledged) = (primary.phase(), primary.acknowledged().0);
        write!(f, ", {phase:?}, {acknowledged} acknowledged, {peers:?}")
    }
}
