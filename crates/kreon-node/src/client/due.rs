//! An answer that is due.

use std::fmt;
use std::sync::Arc;

use kreon_sync::Ordering;
use kreon_wire::{Address, Failure, FailureKind, Reply, Term};

use super::link::ClientLink;

/// Bytes that a request takes while it waits, besides its answer.
const WAITING_BYTES: usize = 128;

/// An answer that is due to a client. It counts as under way until this is dropped; whoever has it answers.
pub struct Due {
    client: Arc<ClientLink>,
    /// Group, term and number of the request, which the answer repeats.
    to: Address,
    bytes: usize,
}

impl fmt::Debug for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Due")
            .field("number", &self.to.number)
            .finish_non_exhaustive()
    }
}

impl Due {
    /// To a request that was taken; none if the client, or all clients together, have too much under way.
    pub fn new(client: &Arc<ClientLink>, to: Address) -> Option<Self> {
        let usage = &client.usage;
        let is_full = client.bytes.load(Ordering::Relaxed) > usage.limits.link_bytes_max
            || usage.bytes.load(Ordering::Relaxed) > usage.limits.bytes_max;
        if is_full {
            usage.busy.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        usage.under_way.fetch_add(1, Ordering::Relaxed);
        let mut due = Self {
            client: Arc::clone(client),
            to,
            bytes: 0,
        };
        due.hold(WAITING_BYTES);
        Some(due)
    }

    /// So many bytes more wait with it.
    pub fn hold(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.client.take(bytes);
    }

    /// Whose it is.
    pub fn client(&self) -> &Arc<ClientLink> {
        &self.client
    }

    /// Its group, term and number.
    pub fn to(&self) -> &Address {
        &self.to
    }

    /// The body of an answer leaves.
    pub fn answer(self, body: &[u8]) {
        self.client.send(&self.to, body);
    }

    /// A short answer leaves.
    pub fn reply(self, reply: &Reply<'_>) {
        self.answer(&reply.body());
    }

    /// It was not done, or may not have been.
    pub fn fail(self, kind: FailureKind, text: &str) {
        self.reply(&Reply::Failed(Failure::new(kind, text)));
    }

    /// The primary is another one.
    pub fn moved(self, term: Term, text: &str) {
        self.reply(&Reply::Failed(Failure::moved(term, text)));
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        self.client.give_back(self.bytes);
        self.client.usage.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
