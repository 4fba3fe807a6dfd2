//! What is to be done for calls, by whoever may do I/O.

use std::sync::Arc;

use kreon_fabric::{Address, Link, LinkName};
use kreon_wire::{Address as Place, Kind, ServerId};

use crate::call::{Attempt, CallId};
use crate::error::{Error, ErrorKind, Result};
use crate::slot::{Answer, Slot};

/// Bits of a number on the wire that tell the attempt.
const ATTEMPT_BITS: u32 = 16;

/// A packet for a link.
#[derive(Clone)]
pub(crate) struct Parcel {
    pub(crate) kind: Kind,
    pub(crate) to: Place,
    pub(crate) body: Arc<Vec<u8>>,
}

impl Parcel {
    pub(crate) const fn id(&self) -> (CallId, Attempt) {
        call_of(self.to.number)
    }
}

/// The call and its attempt that a number on the wire tells.
pub(crate) const fn call_of(number: u64) -> (CallId, Attempt) {
    let attempt = number & ((1 << ATTEMPT_BITS) - 1);
    (CallId(number >> ATTEMPT_BITS), Attempt(attempt as u32))
}

/// The number on the wire of an attempt of a call. Calls come to 2^48 in the life of a client, attempts of one to fewer than
/// 2^16 in its time.
pub(crate) fn number_of(call: CallId, attempt: Attempt) -> u64 {
    let attempt = u64::from(attempt.0).min((1 << ATTEMPT_BITS) - 1);
    call.0 << ATTEMPT_BITS | attempt
}

/// What is to be done, in this order.
pub(crate) enum Deed {
    /// Send a packet on this link.
    Send(LinkName, Arc<dyn Link>, Parcel),
    /// Connect to a server.
    Connect(ServerId, Address),
    /// Listen to a link.
    Listen(LinkName, Arc<dyn Link>),
    /// Close a link.
    Close(Arc<dyn Link>, &'static str),
    /// Read the map.
    ReadMap { synced: bool },
    /// A call ended; its bytes of the budget are free.
    Fill(Arc<Slot>, Result<Answer>, usize),
}

/// What is asked of a server, whoever it is.
pub(crate) struct Asking {
    pub(crate) kind: Kind,
    pub(crate) body: Arc<Vec<u8>>,
    pub(crate) slot: Arc<Slot>,
    /// Bytes that the call has of the budget.
    pub(crate) bytes: usize,
}

impl Asking {
    /// It ends because there is no way to its server.
    pub(crate) fn closed(self) -> Deed {
        let text = "the link to the server has ended, or the cluster was closed";
        let error = Error::new(ErrorKind::Closed, text);
        Deed::Fill(self.slot, Err(error), self.bytes)
    }
}
