//! A simulated network: everything follows from a seed and the calls.
//!
//! Time passes only when it is told to ([`Sim::advance_to`]); a packet is delivered when it is due, or when a test says so
//! ([`Delivery::ByHand`]). Whatever is done to a link, each end receives a prefix of what the other one sent.

mod cable;
mod dice;
mod fabric;
mod gathering;
mod lane;
mod link;
mod network;
mod terms;

use std::sync::Arc;

pub use fabric::SimFabric;
pub use terms::{Delivery, End, LinkId, SimLinkInfo, SimSettings};

use crate::address::Address;
use network::{Network, Shared};

/// The network, and what goes wrong in it. Clones are the same network.
#[derive(Clone)]
pub struct Sim {
    shared: Arc<Shared>,
}

impl Sim {
    /// A network without servers, at time 0.
    pub fn new(seed: u64, settings: SimSettings) -> Self {
        Self {
            shared: Shared::new(Network::new(seed, settings)),
        }
    }

    /// The network as server `host` sees it.
    pub fn host(&self, host: &Address) -> SimFabric {
        SimFabric {
            shared: self.shared.clone(),
            host: host.clone(),
        }
    }

    /// The time in microseconds.
    pub fn now_us(&self) -> u64 {
        self.shared.lock().now_us
    }

    /// Lets time pass and delivers what is due by then. Does nothing for a time that is over.
    pub fn advance_to(&self, now_us: u64) {
        self.shared.change(|network| {
            network.now_us = network.now_us.max(now_us);
            network.deliver_due();
        });
    }

    /// When something is due next; `None` if nothing is under way that time will deliver.
    pub fn next_due_us(&self) -> Option<u64> {
        self.shared.lock().next_due_us()
    }

    /// Lets time pass until something is due. False if nothing is.
    pub fn step(&self) -> bool {
        let next_us = self.next_due_us();
        next_us.into_iter().for_each(|us| self.advance_to(us));
        next_us.is_some()
    }

    /// All links of which a handle is left, in the order in which they were made.
    pub fn links(&self) -> Vec<SimLinkInfo> {
        let network = self.shared.lock();
        let links = network.cables.iter().map(|(id, cable)| SimLinkInfo {
            id: *id,
            hosts: [0, 1].map(|end| cable.ends[end].host.clone()),
            connector: cable.ends[0].id,
            packets: [0, 1].map(|end| cable.lanes[end].packets()),
        });
        links.collect()
    }

    /// Delivers the next of what `from` has sent, be it a packet or that it closed. False if nothing is under way.
    pub fn deliver(&self, link: LinkId, from: End) -> bool {
        self.shared.change(|network| {
            let cable = network.cables.get_mut(&link);
            cable.is_some_and(|cable| cable.deliver(from as usize))
        })
    }

    /// Delivers nothing more of what `from` sends on this link, or goes on with it.
    pub fn stall(&self, link: LinkId, from: End, is_stalled: bool) {
        self.shared.change(|network| {
            if let Some(cable) = network.cables.get_mut(&link) {
                cable.lanes[from as usize].is_stalled = is_stalled;
                network.deliver_due_on(link);
            }
        });
    }

    /// Breaks a link. The first packets under way arrive at once, so many from connector and acceptor; the rest is lost.
    pub fn cut(&self, link: LinkId, keep: [usize; 2]) {
        self.shared.change(|network| {
            if let Some(cable) = network.cables.get_mut(&link) {
                cable.cut(keep);
            }
        });
    }

    /// Breaks a link, anywhere.
    pub fn cut_anywhere(&self, link: LinkId) {
        self.shared.change(|network| network.cut_anywhere(link));
    }

    /// Loses everything from one server to another, on links that are and on links to be, or goes on with it. What was
    /// sent in between arrives then, as TCP sends it again. Without both directions nobody connects.
    pub fn drop_between(&self, from: &Address, to: &Address, is_dropped: bool) {
        self.shared.change(|network| {
            let pair = (from.clone(), to.clone());
            match is_dropped {
                true => network.dropped.insert(pair),
                false => network.dropped.remove(&pair),
            };
            network.deliver_due();
        });
    }

    /// Refuses connections to an address, or takes them again.
    pub fn refuse(&self, at: &Address, is_refusing: bool) {
        self.shared.change(|network| match is_refusing {
            true => network.refusing.insert(at.clone()),
            false => network.refusing.remove(at),
        });
    }

    /// Doubles the next attempt to connect to an address: who listens sees a link more, before or after the real one, at
    /// whose other end is nobody. It stays until it is cut, or closed by who listens.
    pub fn double_next(&self, at: &Address) {
        self.shared
            .change(|network| network.doubled.insert(at.clone()));
    }

    /// Ends a server: all its links break, anywhere, and nobody listens there any more.
    pub fn crash(&self, host: &Address) {
        // What is removed is dropped outside the lock: it may hold links.
        let _removed = self.shared.change(|network| network.crash(host));
    }
}
