//! The state of a simulated network: everything behind one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_sync::{Condvar, Mutex, MutexGuard};

use super::cable::{Cable, EndState};
use super::dice::Dice;
use super::terms::{Delivery, LinkId, SimSettings};
use crate::address::Address;
use crate::fabric::Welcome;
use crate::link::Event;

/// Who listens at an address.
pub(super) struct Listener {
    pub(super) host: Address,
    pub(super) judge: Arc<dyn Welcome>,
    /// Tells this listening from a later one at the same address.
    pub(super) number: u64,
}

pub(super) struct Network {
    pub(super) settings: SimSettings,
    pub(super) dice: Dice,
    pub(super) now_us: u64,
    pub(super) cables: BTreeMap<LinkId, Cable>,
    pub(super) listeners: BTreeMap<Address, Listener>,
    pub(super) refusing: BTreeSet<Address>,
    pub(super) doubled: BTreeSet<Address>,
    /// Pairs of servers, from and to, between which nothing arrives.
    pub(super) dropped: BTreeSet<(Address, Address)>,
    last_number: u64,
}

impl Network {
    pub(super) fn new(seed: u64, settings: SimSettings) -> Self {
        Self {
            settings,
            dice: Dice::new(seed),
            now_us: 0,
            cables: BTreeMap::new(),
            listeners: BTreeMap::new(),
            refusing: BTreeSet::new(),
            doubled: BTreeSet::new(),
            dropped: BTreeSet::new(),
            last_number: 0,
        }
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn add_cable(&mut self, connector: EndState, acceptor: EndState) -> LinkId {
        let id = LinkId(self.next_number());
        self.cables.insert(id, Cable::new(connector, acceptor));
        id
    }

    /// When what is sent now is due.
    pub(super) fn due_us(&mut self) -> u64 {
        match self.settings.delivery {
            Delivery::ByHand => u64::MAX,
            Delivery::After { us_min, us_max } => {
                let more_us = self.dice.upto(us_max.saturating_sub(us_min));
                self.now_us.saturating_add(us_min).saturating_add(more_us)
            }
        }
    }

    /// Whether time delivers what `from` sends on this link.
    fn is_flowing(&self, cable: &Cable, from: usize) -> bool {
        let [sender, receiver] = [from, 1 - from].map(|end| cable.ends[end].host.clone());
        !cable.lanes[from].is_stalled && !self.dropped.contains(&(sender, receiver))
    }

    /// Hands out what one end of a link was told, and says whether anything was.
    pub(super) fn poll(
        &mut self,
        (id, end): (LinkId, usize),
        out: &mut Vec<Event>,
    ) -> Result<bool> {
        let window_bytes = self.settings.window_bytes as usize;
        let cable = self.cables.get_mut(&id).ok_or_else(gone)?;
        cable.poll(end, out, window_bytes)
    }

    /// When something is due next, on any link.
    pub(super) fn next_due_us(&self) -> Option<u64> {
        let lanes = self.cables.values().flat_map(|c| [(c, 0), (c, 1)]);
        lanes
            .filter(|(cable, from)| self.is_flowing(cable, *from))
            .filter_map(|(cable, from)| cable.lanes[from].next_due_us())
            .filter(|due_us| *due_us < u64::MAX)
            .min()
    }

    /// Breaks a link, anywhere.
    pub(super) fn cut_anywhere(&mut self, id: LinkId) {
        if let Some(cable) = self.cables.get_mut(&id) {
            let keep = [0, 1].map(|end| {
                let packets = cable.lanes[end].packets();
                self.dice.upto(packets as u64) as usize
            });
            cable.cut(keep);
        }
    }

    /// Ends a server. Returns who listened there.
    pub(super) fn crash(&mut self, host: &Address) -> Vec<(Address, Listener)> {
        let of_host = |cable: &Cable| cable.ends.iter().any(|end| end.host == *host);
        let cables = self.cables.iter().filter(|(_, cable)| of_host(cable));
        let ids: Vec<LinkId> = cables.map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.cut_anywhere(id));
        let of_host = |_: &Address, listener: &mut Listener| listener.host == *host;
        self.listeners.extract_if(.., of_host).collect()
    }

    /// Delivers what is due by now.
    pub(super) fn deliver_due(&mut self) {
        let ids: Vec<LinkId> = self.cables.keys().copied().collect();
        ids.into_iter().for_each(|id| self.deliver_due_on(id));
    }

    /// The same on one link.
    pub(super) fn deliver_due_on(&mut self, id: LinkId) {
        for from in [0, 1] {
            let Some(cable) = self.cables.get(&id) else {
                return;
            };
            if !self.is_flowing(cable, from) {
                continue;
            }
            let now_us = self.now_us;
            let is_due = |cable: &Cable| {
                let due_us = cable.lanes[from].next_due_us();
                due_us.is_some_and(|due_us| due_us <= now_us && due_us < u64::MAX)
            };
            while let Some(cable) = self.cables.get_mut(&id)
                && is_due(cable)
            {
                cable.deliver(from);
            }
        }
    }
}

/// A link lives in the network until both of its handles are dropped.
pub(super) fn gone() -> Error {
    Error::new(ErrorKind::Closed, "the network has forgotten the link")
}

/// A network that several servers share.
pub(super) struct Shared {
    network: Mutex<Network>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn new(network: Network) -> Arc<Self> {
        Arc::new(Self {
            network: Mutex::new(network),
            changed: Condvar::new(),
        })
    }

    /// Changes it, and wakes all who wait for a change.
    pub(super) fn change<T>(&self, act: impl FnOnce(&mut Network) -> T) -> T {
        let result = act(&mut self.network.lock());
        self.changed.notify_all();
        result
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Network> {
        self.network.lock()
    }

    pub(super) fn changed(&self) -> &Condvar {
        &self.changed
    }
}
