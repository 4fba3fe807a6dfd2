//! Where requests come in.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use kreon_sync::{Ordering, RwLock};
use kreon_wire::{
    FailureKind, Frame, GroupId, Kind, Order, Reply, Request, Role, State, Term, Violation,
};

use super::asked::Asked;
use super::compare::tell_digests;
use super::shipping::Shipping;
use super::standing;
use crate::client::{ClientLink, Due, Usage};
use crate::hosted::Hosted;
use crate::orders::Orders;

/// Where requests come in: what all of them need.
pub struct Desk {
    pub usage: Arc<Usage>,
    groups: RwLock<BTreeMap<GroupId, Arc<Hosted>>>,
    /// Takes orders to the master; set when the server runs.
    orders: OnceLock<Arc<Orders>>,
}

impl Desk {
    pub fn new(usage: Arc<Usage>) -> Arc<Self> {
        Arc::new(Self {
            usage,
            groups: RwLock::default(),
            orders: OnceLock::new(),
        })
    }

    pub fn set_orders(&self, orders: Arc<Orders>) {
        let _ = self.orders.set(orders);
    }

    pub fn add(&self, hosted: Arc<Hosted>) {
        self.groups.write().insert(hosted.id, hosted);
    }

    pub fn remove(&self, group: GroupId) -> Option<Arc<Hosted>> {
        self.groups.write().remove(&group)
    }

    pub fn group(&self, group: GroupId) -> Option<Arc<Hosted>> {
        self.groups.read().get(&group).cloned()
    }

    /// All groups, ascending.
    pub fn groups(&self) -> Vec<Arc<Hosted>> {
        self.groups.read().values().cloned().collect()
    }

    /// A packet of a client.
    ///
    /// # Errors
    /// The packet is not right: the link is to be closed.
    pub fn on_packet(&self, client: &Arc<ClientLink>, packet: &[u8]) -> Result<(), Violation> {
        let frame = Frame::open(packet, Role::Client)?;
        State::Answering.check(frame.header().kind)?;
        if frame.header().kind == Kind::Status {
            kreon_wire::Control::decode(&frame)?;
            let group = self.group(frame.header().group);
            standing::tell(group.as_deref(), client, frame.address());
            return Ok(());
        }
        let request = Request::decode(&frame)?;
        self.usage.requests.fetch_add(1, Ordering::Relaxed);
        match Due::new(client, frame.address()) {
            Some(due) => self.answer(&request, due),
            None => {
                let text = "too much is under way";
                let failed = kreon_wire::Failure::new(FailureKind::Busy, text);
                client.send(&frame.address(), &Reply::Failed(failed).body());
            }
        }
        Ok(())
    }

    fn answer(&self, request: &Request<'_>, due: Due) {
        if let Request::Order(order) = request
            && !request.has_group()
        {
            return self.order(order, due);
        }
        if let Request::Digests { offset, blocks } = *request {
            let group = due.to().group;
            return match self.group(group) {
                Some(hosted) => tell_digests(&hosted, (offset, blocks), due),
                None => due.moved(Term(0), "the group is not at this server"),
            };
        }
        let Some(asked) = self.primary_of(due) else {
            return;
        };
        if !matches!(request, Request::Write(_)) {
            Shipping::before_other();
        }
        match request {
            Request::Get {
                table,
                key,
                snapshot,
            } => asked.get(table, key, *snapshot),
            Request::GetMany {
                table,
                keys,
                snapshot,
            } => asked.get_many(table, keys, *snapshot),
            Request::Write(write) => asked.write(write),
            Request::Scan(part) => asked.scan(part),
            Request::Snapshot => asked.snapshot(),
            Request::Release { snapshot } => asked.release(*snapshot),
            Request::Order(Order::Verify { .. }) => asked.verify(),
            Request::Order(Order::Compare { .. }) => match self.orders.get() {
                Some(orders) => asked.compare(orders),
                None => asked.refuse(FailureKind::Unavailable, "the server is starting"),
            },
            Request::Backups => asked.backups(),
            // It needs no primary, and is answered above.
            Request::Digests { .. } => asked.refuse(FailureKind::Unavailable, "asked in vain"),
            Request::Order(order) => self.order(order, asked.due),
        }
    }

    fn order(&self, order: &Order<'_>, due: Due) {
        match self.orders.get() {
            Some(orders) => orders.put(order, due),
            None => due.fail(FailureKind::Unavailable, "the server is starting"),
        }
    }

    /// The office that a request is for; it is answered if this server is not the primary.
    fn primary_of(&self, due: Due) -> Option<Asked> {
        let to = *due.to();
        let Some(hosted) = self.group(to.group) else {
            due.moved(Term(0), "the group is not at this server");
            return None;
        };
        match hosted.office().filter(|office| office.term >= to.term) {
            Some(office) => Some(Asked {
                hosted,
                office,
                due,
            }),
            None => {
                hosted.move_on(due);
                None
            }
        }
    }
}
