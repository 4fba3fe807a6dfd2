//! A server that is to end has others promoted before, by the master.

use std::time::{Duration, Instant};

use kreon_coord::Paths;
use kreon_fabric::Event;
use kreon_wire::{
    Address as Place, FailureKind, Frame, GroupId, Member, Order, Packet, Reply, Request, Role,
    ServerId, Term,
};

use super::clerk::Clerk;
use super::thread::Orders;
use super::{Outcome, Refusal};

/// How long a server may take to say whether it is in office.
const ANSWER: Duration = Duration::from_secs(1);

impl Orders {
    /// Has the master promote others for these groups, if this server is their primary; waits for the answers until then.
    /// For how many groups there was somebody.
    pub fn leave(&self, groups: &[GroupId], until: Instant) -> Outcome<usize> {
        let mut clerk = Clerk::new(self.shared());
        let wishes = wishes(&mut clerk, self.me(), groups)?;
        if wishes.is_empty() {
            return Ok(0);
        }
        let master = clerk.master()?.ok_or_else(|| {
            Refusal::new(
                FailureKind::Unavailable,
                "no server is the master at present",
            )
        })?;
        let link = self.connect(master)?;
        for (number, (group, server)) in (1..).zip(&wishes) {
            let order = Order::Promote {
                group: *group,
                server: *server,
            };
            let to = Place {
                group: GroupId(0),
                term: Term(0),
                number,
            };
            let body = Request::Order(order).body();
            link.send(&Packet::request(&to, &body).parts())?;
        }
        let (mut left, mut events) = (wishes.len(), Vec::new());
        while left > 0 && Instant::now() < until {
            link.poll(&mut events, Duration::from_millis(100))?;
            for event in events.drain(..) {
                match event {
                    Event::Packet(packet) => {
                        left -= 1;
                        let frame = Frame::open(&packet, Role::Client)?;
                        if let Reply::Failed(failure) = Reply::decode(&frame)? {
                            tracing::info!(?failure, "an office is not handed over");
                        }
                    }
                    Event::Room => {}
                    Event::Closed(error) => return Err(error.into()),
                }
            }
        }
        Ok(wishes.len())
    }

    /// Whether a server is in office for a group, as it says itself.
    pub fn serves(&self, group: GroupId, server: ServerId) -> Outcome<bool> {
        let link = self.connect(server)?;
        let to = Place {
            group,
            term: Term(0),
            number: 1,
        };
        // Only a primary in office answers it.
        let body = Request::Backups.body();
        link.send(&Packet::request(&to, &body).parts())?;
        let (until, mut events) = (Instant::now() + ANSWER, Vec::new());
        while Instant::now() < until {
            link.poll(&mut events, ANSWER)?;
            for event in events.drain(..) {
                match event {
                    Event::Packet(packet) => {
                        let frame = Frame::open(&packet, Role::Client)?;
                        return Ok(matches!(Reply::decode(&frame)?, Reply::Backups(_)));
                    }
                    Event::Room => {}
                    Event::Closed(error) => return Err(error.into()),
                }
            }
        }
        Ok(false)
    }
}

/// Who is to take over what: of those of the set that live whoever has least.
fn wishes(clerk: &mut Clerk, me: Member, groups: &[GroupId]) -> Outcome<Vec<(GroupId, ServerId)>> {
    let (configs, mut loads) = clerk.look(|office| office.loads())?;
    let live = clerk.look(|office| {
        let names = office.talk.children(&office.paths.live(), false)?;
        let names = names.unwrap_or_default();
        Ok(names
            .iter()
            .filter_map(|name| Paths::live_of(name))
            .collect::<Vec<_>>())
    })?;
    let mut wishes = Vec::new();
    for config in configs {
        if !groups.contains(&config.group) || config.primary != Some(me) {
            continue;
        }
        let lives = |server: &&ServerId| {
            let mut members = config.in_sync.iter();
            let member = members.find(|member| member.server == **server);
            member.is_some_and(|member| {
                live.contains(&(server.0, u128::from_be_bytes(member.process.0)))
            })
        };
        if let Some(heir) = loads.heirs(&config).iter().find(lives).copied() {
            loads.add(heir);
            wishes.push((config.group, heir));
        }
    }
    Ok(wishes)
}
