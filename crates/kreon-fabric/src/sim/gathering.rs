//! Many simulated links that one thread serves.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{Error, Result};
use kreon_sync::Mutex;

use super::link::SimLink;
use super::network::{Network, Shared};
use super::terms::LinkId;
use crate::gathering::{Gathering, LinkName};
use crate::link::{Event, Link};

/// Links by their names, in whose order they are served.
pub(super) struct SimGathering {
    shared: Arc<Shared>,
    seats: Mutex<Seats>,
}

struct Seat {
    end: (LinkId, usize),
    /// Keeps the link open.
    _link: Arc<dyn Link>,
}

#[derive(Default)]
struct Seats {
    by_name: BTreeMap<LinkName, Seat>,
    is_called: bool,
}

impl SimGathering {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            seats: Mutex::default(),
        }
    }

    /// Hands out what all links have to tell; the links that are over, which are to be dropped without a lock.
    fn look(
        &self,
        network: &mut Network,
        seats: &mut Seats,
        out: &mut Vec<(LinkName, Event)>,
    ) -> Vec<Seat> {
        let mut over = Vec::new();
        for (name, seat) in &seats.by_name {
            let mut events = Vec::new();
            if let Err(error) = network.poll(seat.end, &mut events) {
                events.push(Event::Closed(error));
            }
            if let Some(Event::Closed(_)) = events.last() {
                over.push(*name);
            }
            out.extend(events.into_iter().map(|event| (*name, event)));
        }
        let over = over.into_iter();
        over.filter_map(|name| seats.by_name.remove(&name))
            .collect()
    }
}

impl Gathering for SimGathering {
    fn add(&self, name: LinkName, link: Arc<dyn Link>) -> Result<()> {
        let any: &dyn Any = &*link;
        let of_fabric = any.downcast_ref::<SimLink>();
        let of_fabric = of_fabric.filter(|link| Arc::ptr_eq(&link.shared, &self.shared));
        let Some(end) = of_fabric.map(|link| (link.id, link.end)) else {
            return Err(Error::invalid("a link of another fabric"));
        };
        let mut seats = self.seats.lock();
        let mut all = seats.by_name.iter();
        if all.any(|(known, seat)| *known == name || seat.end == end) {
            return Err(Error::invalid("a link that comes twice"));
        }
        seats.by_name.insert(name, Seat { end, _link: link });
        seats.is_called = true;
        drop(seats);
        self.shared.change(|_| {});
        Ok(())
    }

    fn remove(&self, name: LinkName) {
        // Dropped outside the lock: the handle may be the last one.
        let _removed = self.seats.lock().by_name.remove(&name);
    }

    fn poll(&self, out: &mut Vec<(LinkName, Event)>, patience: Duration) -> Result<()> {
        let (start, before) = (Instant::now(), out.len());
        let mut network = self.shared.lock();
        loop {
            let mut seats = self.seats.lock();
            let over = self.look(&mut network, &mut seats, out);
            let is_called = std::mem::take(&mut seats.is_called);
            drop(seats);
            let left = patience.saturating_sub(start.elapsed());
            let is_parking = network.settings.is_parking && !left.is_zero();
            if is_called || out.len() > before || !is_parking {
                drop(network);
                // The senders may have been told that there is room.
                self.shared.changed().notify_all();
                drop(over);
                return Ok(());
            }
            self.shared.changed().wait_for(&mut network, left);
        }
    }

    fn wake(&self) {
        self.seats.lock().is_called = true;
        self.shared.change(|_| {});
    }
}
