//! Orders for which a primary acts: it gives its office to another member, or a member up. The master asks it as a client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_fabric::{Address, Event, Link, PeerId};
use kreon_replica::drive::Server;
use kreon_wire::{
    Address as Place, FailureKind, Frame, GroupId, Member, Order, Packet, ProcessId, Reply,
    Request, Role, ServerId, ServerNode, Term,
};

use super::clerk::Clerk;
use super::{Outcome, Refusal};

/// What is planned is done within this, or the operator is told that it is not.
const PATIENCE: Duration = Duration::from_secs(10);

/// The master looks so often.
const EVERY: Duration = Duration::from_millis(10);

/// How long a connection to a primary may take, and an answer of it.
const ANSWER: Duration = Duration::from_secs(2);

fn refused(text: &str) -> Refusal {
    Refusal::new(FailureKind::InvalidArgument, text)
}

fn too_late(text: &str) -> Refusal {
    Refusal::new(FailureKind::Unavailable, text)
}

impl Clerk {
    fn server(&self) -> Outcome<Arc<Server>> {
        self.running().ok_or_else(|| too_late("the server ends"))
    }

    /// Makes an in-sync member the primary.
    pub(super) fn promote(&mut self, group: GroupId, to: ServerId) -> Outcome {
        let (config, _) = self.in_office(|office| office.config(group))?;
        if config.primary.is_some_and(|primary| primary.server == to) {
            return Ok(());
        }
        if !config.in_sync.iter().any(|member| member.server == to) {
            return Err(refused("the server is not in sync: it cannot be promoted"));
        }
        let (_, loads) = self.in_office(|office| office.loads())?;
        if loads.refuses(&config, to) {
            let text = "the server is the primary of as many groups as it takes, and another member in sync is not";
            return Err(refused(text));
        }
        let server = self.server()?;
        server
            .promote(group, to)
            .map_err(|error| too_late(&error.to_string()))?;
        let start = Instant::now();
        while start.elapsed() < PATIENCE && !self.is_over() {
            if server.promotion_is_refused(group) {
                return Err(too_late(
                    "the group is not well: give the order again later",
                ));
            }
            if let Some(primary) = self.hand_over_of(&server, group) {
                // The master begins the next term all the same if this is lost.
                let order = Order::HandOver { group };
                if let Err(refusal) = self.ask_primary(&server, group, primary, &order) {
                    tracing::warn!(
                        why = refusal.text,
                        group = group.0,
                        "no office is handed over"
                    );
                }
            }
            let (now, _) = self.in_office(|office| office.config(group))?;
            match now.primary {
                Some(primary) if primary.server == to => return Ok(()),
                Some(_) if now.term > config.term => {
                    return Err(too_late("another member has more: it was promoted"));
                }
                _ => kreon_sync::sleep(EVERY),
            }
        }
        Err(too_late("the primary has not handed over in time"))
    }

    /// The primary of the group, if the master wants it to hand over. What it wants of others is left to their orders.
    fn hand_over_of(&self, server: &Server, group: GroupId) -> Option<Member> {
        let mut wanted = self.shared.hand_overs.lock();
        wanted.extend(server.take_hand_overs());
        wanted.remove(&group)
    }

    /// Removes a member that is not the primary: first from the set, by the primary, then from the members.
    pub(super) fn remove_member(&mut self, group: GroupId, server: ServerId) -> Outcome {
        if !self.is_master() {
            // It may be the primary, and that is what the master asks it for.
            self.give_up(group, server);
        }
        let (config, _) = self.in_office(|office| office.config(group))?;
        if config
            .primary
            .is_some_and(|primary| primary.server == server)
        {
            return Err(refused(
                "the server is the primary: promote another one first",
            ));
        }
        if config.members.len() <= usize::from(config.min_in_sync)
            && config.members.contains(&server)
        {
            let text = "the group would have fewer members than its writes need: add one before";
            return Err(refused(text));
        }
        let running = self.server()?;
        let start = Instant::now();
        while start.elapsed() < PATIENCE && !self.is_over() {
            if self.in_office(|office| office.remove_outsider(group, server))? {
                return Ok(());
            }
            let (now, _) = self.in_office(|office| office.config(group))?;
            if let Some(primary) = now.primary {
                let order = Order::RemoveMember { group, server };
                self.ask_primary(&running, group, primary, &order)?;
            }
            kreon_sync::sleep(EVERY);
        }
        Err(too_late("the primary has not given the member up in time"))
    }

    /// The primary here hands its office over; done when it has begun to.
    pub(super) fn hand_over(&mut self, group: GroupId) -> Outcome {
        match self.server()?.group(group) {
            Some(held) => {
                held.hand_over();
                Ok(())
            }
            None => Err(too_late("the group is not here any more")),
        }
    }

    /// The primary here, if there is one, gives a member up.
    fn give_up(&self, group: GroupId, server: ServerId) {
        if let Ok(running) = self.server()
            && let Some(held) = running.group(group)
        {
            held.remove(server);
        }
    }

    /// Has the primary of a group act, which may be at this server.
    fn ask_primary(
        &mut self,
        server: &Server,
        group: GroupId,
        primary: Member,
        order: &Order<'_>,
    ) -> Outcome {
        if server.links().me() == primary {
            match *order {
                Order::HandOver { group } => return self.hand_over(group),
                Order::RemoveMember { group, server } => self.give_up(group, server),
                _ => {}
            }
            return Ok(());
        }
        let link = self.connect(primary.server)?;
        ask(&*link, group, order)
    }

    /// A link to a server, which takes this one for a client.
    pub(super) fn connect(&mut self, to: ServerId) -> Outcome<Arc<dyn Link>> {
        let path = self.paths().server(to.0);
        let node = self.talk()?.read(&path, false)?;
        let node = node.ok_or_else(|| too_late("the server is not registered"))?;
        let node = ServerNode::decode(&node.data)?;
        let me = PeerId {
            member: Member {
                server: ServerId(0),
                process: ProcessId(self.server()?.links().me().process.0),
            },
            role: Role::Client,
        };
        let to = Address::new(&node.client_address);
        Ok(self.fabric().connect(&to, &me, ANSWER)?)
    }
}

/// Sends an order, and waits until it is answered, whatever the answer is: what became of it the configuration shows.
fn ask(link: &dyn Link, group: GroupId, order: &Order<'_>) -> Outcome {
    let to = Place {
        group: order.primary_of().map_or(GroupId(0), |_| group),
        term: Term(0),
        number: 1,
    };
    let body = Request::Order(*order).body();
    link.send(&Packet::request(&to, &body).parts())?;
    let start = Instant::now();
    let mut events = Vec::new();
    while start.elapsed() < ANSWER {
        link.poll(&mut events, ANSWER)?;
        for event in events.drain(..) {
            match event {
                Event::Packet(packet) => {
                    let frame = Frame::open(&packet, Role::Client)?;
                    if let Reply::Failed(failure) = Reply::decode(&frame)? {
                        tracing::debug!(?failure, "a primary was asked");
                    }
                    return Ok(());
                }
                Event::Room => {}
                Event::Closed(error) => return Err(error.into()),
            }
        }
    }
    Err(too_late("the primary does not answer"))
}
