//! The simulated network as one server sees it.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result};
use kreon_wire::Role;
use kreon_wire::limits::{HEADER_BYTES, REQUEST_BYTES_MAX};

use super::cable::EndState;
use super::gathering::SimGathering;
use super::link::SimLink;
use super::network::{Listener, Network, Shared};
use crate::address::Address;
use crate::fabric::{Fabric, Listening, Traits, Welcome};
use crate::gathering::Gathering;
use crate::link::Link;
use crate::peer::{PeerId, shown};

/// One server of a [`Sim`](super::Sim).
pub struct SimFabric {
    pub(super) shared: Arc<Shared>,
    pub(super) host: Address,
}

impl Fabric for SimFabric {
    fn traits(&self) -> Traits {
        Traits {
            lands_without_peer_cpu: false,
            packet_bytes_max: HEADER_BYTES as u32 + REQUEST_BYTES_MAX,
            window_bytes: self.shared.lock().settings.window_bytes,
        }
    }

    fn listen(&self, at: &Address, judge: Arc<dyn Welcome>) -> Result<Box<dyn Listening>> {
        let number = self.shared.change(|network| {
            if network.listeners.contains_key(at) {
                return Err(Error::new(ErrorKind::Busy, format!("listen at {at}")));
            }
            let number = network.next_number();
            let host = self.host.clone();
            let listener = Listener {
                host,
                judge,
                number,
            };
            network.listeners.insert(at.clone(), listener);
            Ok(number)
        })?;
        Ok(Box::new(SimListening {
            shared: self.shared.clone(),
            at: at.clone(),
            number,
        }))
    }

    /// As the trait says; no time passes.
    fn connect(&self, to: &Address, me: &PeerId, _limit: Duration) -> Result<Arc<dyn Link>> {
        if me.role == Role::BeforeProof {
            return Err(Error::invalid("a link has a role"));
        }
        let (host, judge) = self.find(to)?;
        judge.judge(me).map_err(|reason| {
            let text = format!("connect to {to}: the peer refuses: {reason:?}");
            Error::new(ErrorKind::Closed, text)
        })?;
        let acceptor = PeerId {
            member: shown(judge.me(), me.role),
            role: me.role,
        };
        let (links, is_first_kept) = self.shared.change(|network| {
            let is_doubled = network.doubled.remove(to);
            let is_first_kept = !is_doubled || network.dice.upto(1) == 0;
            let attempts = [is_first_kept, !is_first_kept];
            let attempts = &attempts[..1 + usize::from(is_doubled)];
            let links = attempts.iter().map(|is_kept| {
                let connector = EndState::new(self.host.clone(), *me, !is_kept);
                let acceptor = EndState::new(host.clone(), acceptor, false);
                network.add_cable(connector, acceptor)
            });
            (links.collect::<Vec<_>>(), is_first_kept)
        });
        let handle = |id, end, peer| SimLink {
            shared: self.shared.clone(),
            id,
            end,
            peer,
        };
        let kept = links[usize::from(!is_first_kept)];
        let kept = Arc::new(handle(kept, 0, acceptor));
        for id in links {
            judge.linked(Arc::new(handle(id, 1, *me)));
        }
        Ok(kept)
    }

    fn gathering(&self) -> Result<Arc<dyn Gathering>> {
        Ok(Arc::new(SimGathering::new(self.shared.clone())))
    }
}

impl SimFabric {
    /// Who listens at `to`, if this server reaches it.
    fn find(&self, to: &Address) -> Result<(Address, Arc<dyn Welcome>)> {
        let io = |what: &str| Error::new(ErrorKind::Io, format!("connect to {to}: {what}"));
        let network = self.shared.lock();
        let listener = network.listeners.get(to);
        let listener = listener.ok_or_else(|| io("nobody listens"))?;
        if network.refusing.contains(to) {
            return Err(io("connection refused"));
        }
        match are_apart(&network, &self.host, &listener.host) {
            true => Err(io("no answer in time")),
            false => Ok((listener.host.clone(), listener.judge.clone())),
        }
    }
}

fn are_apart(network: &Network, a: &Address, b: &Address) -> bool {
    let is_dropped = |from: &Address, to: &Address| {
        let pair = (from.clone(), to.clone());
        network.dropped.contains(&pair)
    };
    is_dropped(a, b) || is_dropped(b, a)
}

struct SimListening {
    shared: Arc<Shared>,
    at: Address,
    number: u64,
}

impl Listening for SimListening {
    fn address(&self) -> Address {
        self.at.clone()
    }
}

impl Drop for SimListening {
    fn drop(&mut self) {
        // What is removed is dropped outside the lock: it may hold links.
        let _removed = self.shared.change(|network| {
            let listener = network.listeners.get(&self.at);
            match listener.is_some_and(|listener| listener.number == self.number) {
                true => network.listeners.remove(&self.at),
                false => None,
            }
        });
    }
}
