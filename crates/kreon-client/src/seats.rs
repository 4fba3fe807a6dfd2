//! Servers, and the ways to them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use kreon_base::ErrorKind;
use kreon_fabric::{Address, Link, LinkName};
use kreon_wire::{Member, ProcessId, ServerId, ServerNode};

use crate::deed::{Deed, Parcel};

/// A server, and the way to it.
enum Seat {
    /// A connection is being made for these.
    Connecting(Vec<(Parcel, ProcessId)>),
    Linked(Seated),
}

struct Seated {
    name: LinkName,
    link: Arc<dyn Link>,
    process: ProcessId,
    /// What the link had no room for.
    backlog: VecDeque<Parcel>,
}

/// Servers, and the ways to them.
#[derive(Default)]
pub(crate) struct Seats {
    seats: HashMap<ServerId, Seat>,
    names: HashMap<LinkName, ServerId>,
    addresses: HashMap<ServerId, Address>,
    last_name: u64,
}

impl Seats {
    pub(crate) fn learn(&mut self, servers: &[ServerNode]) {
        let address = |node: &ServerNode| (node.server, Address::new(&node.client_address));
        self.addresses = servers.iter().map(address).collect();
    }

    pub(crate) fn servers(&self) -> Vec<ServerId> {
        let mut servers: Vec<_> = self.addresses.keys().copied().collect();
        servers.sort_unstable();
        servers
    }

    pub(crate) fn address(&self, server: ServerId) -> Option<Address> {
        self.addresses.get(&server).cloned()
    }

    fn seated(&self, name: LinkName) -> Option<&Seated> {
        match self.seats.get(self.names.get(&name)?)? {
            Seat::Linked(seated) => Some(seated),
            Seat::Connecting(_) => None,
        }
    }

    /// The link of this name, if it has not ended.
    pub(crate) fn link(&self, name: LinkName) -> Option<Arc<dyn Link>> {
        self.seated(name).map(|seated| seated.link.clone())
    }

    /// The link to a server, if there is one.
    pub(crate) fn link_to(&self, server: ServerId) -> Option<LinkName> {
        match self.seats.get(&server)? {
            Seat::Linked(seated) => Some(seated.name),
            Seat::Connecting(_) => None,
        }
    }

    /// What brings a packet to a server: `None` if there is no way.
    pub(crate) fn carry(&mut self, member: Member, parcel: Parcel) -> Option<Option<Deed>> {
        match self.seats.get_mut(&member.server) {
            Some(Seat::Connecting(waiting)) => waiting.push((parcel, member.process)),
            // One of the two starts is over: its link tells so, or the map does.
            Some(Seat::Linked(seated)) if seated.process != member.process => return None,
            Some(Seat::Linked(seated)) if !seated.backlog.is_empty() => {
                seated.backlog.push_back(parcel);
            }
            Some(Seat::Linked(seated)) => {
                let link = seated.link.clone();
                return Some(Some(Deed::Send(seated.name, link, parcel)));
            }
            None => {
                let address = self.addresses.get(&member.server)?.clone();
                let waiting = vec![(parcel, member.process)];
                self.seats.insert(member.server, Seat::Connecting(waiting));
                return Some(Some(Deed::Connect(member.server, address)));
            }
        }
        Some(None)
    }

    /// Whether who asks is to connect to the server: then nobody else does meanwhile.
    pub(crate) fn is_to_connect(&mut self, server: ServerId) -> bool {
        let is_new = !self.seats.contains_key(&server);
        if is_new {
            self.seats.insert(server, Seat::Connecting(Vec::new()));
        }
        is_new
    }

    /// Nobody connects any more: what waited for it.
    pub(crate) fn take_waiting(&mut self, server: ServerId) -> Vec<(Parcel, ProcessId)> {
        match self.seats.remove(&server) {
            Some(Seat::Connecting(waiting)) => waiting,
            Some(linked) => {
                self.seats.insert(server, linked);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// There is a link to a server to which there was none, and this waits to be sent on it; its name.
    pub(crate) fn seat(
        &mut self,
        server: ServerId,
        link: Arc<dyn Link>,
        backlog: VecDeque<Parcel>,
    ) -> LinkName {
        self.last_name += 1;
        let name = LinkName(self.last_name);
        self.names.insert(name, server);
        let process = link.peer().member.process;
        let seated = Seated {
            name,
            link,
            process,
            backlog,
        };
        self.seats.insert(server, Seat::Linked(seated));
        name
    }

    /// A link has ended: whose it was, and what it had no room for.
    pub(crate) fn unseat(&mut self, name: LinkName) -> Option<(Member, VecDeque<Parcel>)> {
        let server = self.names.remove(&name)?;
        match self.seats.remove(&server)? {
            Seat::Linked(seated) => {
                let process = seated.process;
                Some((Member { server, process }, seated.backlog))
            }
            Seat::Connecting(_) => None,
        }
    }

    /// A packet that a link had no room for waits. `false` if the link has ended since.
    pub(crate) fn wait_for_room(&mut self, name: LinkName, parcel: &Parcel) -> bool {
        let seat = self
            .names
            .get(&name)
            .and_then(|server| self.seats.get_mut(server));
        match seat {
            Some(Seat::Linked(seated)) => {
                seated.backlog.push_back(parcel.clone());
                true
            }
            _ => false,
        }
    }

    /// Sends what waits for room on a link as long as there is some; what was not sent because the link has ended, or is
    /// not wanted any more, is returned.
    pub(crate) fn flush(
        &mut self,
        name: LinkName,
        is_wanted: impl Fn(&Parcel) -> bool,
        send: impl Fn(&dyn Link, &Parcel) -> kreon_base::Result<()>,
    ) -> Vec<Parcel> {
        let mut lost = Vec::new();
        let seat = self
            .names
            .get(&name)
            .and_then(|server| self.seats.get_mut(server));
        let Some(Seat::Linked(seated)) = seat else {
            return lost;
        };
        while let Some(parcel) = seated.backlog.pop_front() {
            if !is_wanted(&parcel) {
                continue;
            }
            match send(&*seated.link, &parcel) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Busy => {
                    seated.backlog.push_front(parcel);
                    break;
                }
                Err(_) => lost.push(parcel),
            }
        }
        lost
    }

    /// Takes back what never left, by what it is and to whom it was to go.
    pub(crate) fn withdraw(&mut self, is_in_vain: impl Fn(&Parcel, Member) -> bool) -> Vec<Parcel> {
        let mut withdrawn = Vec::new();
        for (server, seat) in &mut self.seats {
            let of = |process| Member {
                server: *server,
                process,
            };
            match seat {
                Seat::Connecting(waiting) => {
                    let gone = |(parcel, process): &mut (Parcel, ProcessId)| {
                        is_in_vain(parcel, of(*process))
                    };
                    let gone = waiting.extract_if(.., gone);
                    withdrawn.extend(gone.map(|(parcel, _)| parcel));
                }
                Seat::Linked(seated) => {
                    let to = of(seated.process);
                    let (gone, stay) = std::mem::take(&mut seated.backlog)
                        .into_iter()
                        .partition::<VecDeque<_>, _>(|parcel| is_in_vain(parcel, to));
                    seated.backlog = stay;
                    withdrawn.extend(gone);
                }
            }
        }
        withdrawn
    }

    /// All links; there are none afterwards.
    pub(crate) fn take_links(&mut self) -> Vec<Arc<dyn Link>> {
        self.names.clear();
        let seats = self.seats.drain().map(|(_, seat)| seat);
        seats
            .filter_map(|seat| match seat {
                Seat::Linked(seated) => Some(seated.link),
                Seat::Connecting(_) => None,
            })
            .collect()
    }
}
