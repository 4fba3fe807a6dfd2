//! Asks a frozen primary, so that it finds the questions when it goes on: what it answers is judged as what anybody sees.
//!
//! The clients' library has turned to the next primary by then. A server that does not know yet that it was deposed is
//! asked here by somebody who does not know either.

use std::time::{Duration, Instant};

use kreon_fabric::Event;
use kreon_judge::{Call, Seen, value};
use kreon_wire::{Address, Encoded, Frame, GroupConfig, Packet, Reply, Request, Role, SnapshotId};

use super::outsiders::Way;
use crate::clients::keys::TABLE;
use crate::clients::session::Shared;

/// Number of who asks, in the stories of violations.
const WITNESS: u32 = 998;

/// How long an answer may take when the server goes on.
const PATIENCE: Duration = Duration::from_millis(700);

/// Keys that are asked for in each range.
const KEYS: usize = 12;

/// Somebody with a link to a server.
pub struct Witness {
    way: Way,
    /// The groups of which the server was primary, with their ranges.
    groups: Vec<(usize, GroupConfig)>,
    asked: Vec<(usize, usize, Call)>,
}

impl Witness {
    /// With a link that was made while the server answered.
    pub fn new(way: Way, groups: Vec<(usize, GroupConfig)>) -> Self {
        Self {
            way,
            groups,
            asked: Vec::new(),
        }
    }

    /// Asks, in the terms that the server knew.
    pub fn ask(&mut self, shared: &Shared) {
        for (range, config) in &self.groups {
            for number in 0..KEYS.min(shared.keys.each) {
                let key = shared.keys.key(*range, number);
                let get = Request::Get {
                    table: TABLE,
                    key: &key,
                    snapshot: SnapshotId(0),
                };
                let to = Address {
                    group: config.group,
                    term: config.term,
                    number: self.asked.len() as u64 + 1,
                };
                let mut call = Call::read("get of a frozen primary", shared.moment(), 0);
                call.client = WITNESS;
                let body = get.body();
                let packet: Encoded<'_> = Packet::request(&to, &body);
                if self.way.link.send(&packet.parts()).is_err() {
                    return;
                }
                self.asked.push((*range, number, call));
            }
        }
    }

    /// What the server answered, as calls with their ranges, and how many it refused.
    pub fn hear(self, shared: &Shared) -> (Vec<(usize, Call)>, u64) {
        let (mut calls, mut refused) = (Vec::new(), 0);
        let until = Instant::now() + PATIENCE;
        let mut events = Vec::new();
        while Instant::now() < until && calls.len() as u64 + refused < self.asked.len() as u64 {
            if self
                .way
                .link
                .poll(&mut events, Duration::from_millis(20))
                .is_err()
            {
                break;
            }
            for event in events.drain(..) {
                let Event::Packet(bytes) = event else {
                    continue;
                };
                match self.answer(&bytes, shared) {
                    Some(call) => calls.push(call),
                    None => refused += 1,
                }
            }
        }
        (calls, refused)
    }

    fn answer(&self, bytes: &[u8], shared: &Shared) -> Option<(usize, Call)> {
        let frame = Frame::open(bytes, Role::Client).ok()?;
        let at = usize::try_from(frame.header().number.checked_sub(1)?).ok()?;
        let (range, number, call) = self.asked.get(at)?;
        let Ok(Reply::Value(found)) = Reply::decode(&frame) else {
            return None;
        };
        let seen = match found.map(value::decode) {
            None => Seen::Absent,
            Some(Ok(version)) => Seen::Version(version),
            Some(Err(text)) => {
                shared.fail(format!("a frozen primary shows {text}"));
                return None;
            }
        };
        let mut call = call.clone();
        call.reads = vec![(*number as u64, seen)];
        call.returned = Some(shared.moment());
        Some((*range, call))
    }
}
