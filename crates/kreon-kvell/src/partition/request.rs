//! Requests and replies.

use kreon_base::Error;

use super::after::After;
use crate::index::Location;
use crate::space::StaleSlot;

/// Names a request to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Number of a request in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpNo(pub(super) u64);

/// When a change is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it survives a power cut: after a flush of the device.
    #[default]
    Sync,
    /// When the device has it: it survives a crash of the process. A power cut loses any subset of the changes since the
    /// last flush, at most 100 ms ago: there is no log, and no order among changes.
    Buffered,
}

/// What a request asks for.
#[derive(Clone, Debug)]
pub enum Task {
    Get,
    /// The keys that look like the request's in the index, which does not have it whole.
    Tied,
    Put {
        value: Vec<u8>,
        durability: Durability,
    },
    Delete {
        durability: Durability,
    },
    /// Make an outdated item invalid: the partition's own work.
    Erase(StaleSlot),
}

/// A request of one key.
#[derive(Clone, Debug)]
pub struct Request {
    /// `None`: nobody waits for a reply.
    pub ticket: Option<Ticket>,
    pub key: Vec<u8>,
    pub key_hash: u128,
    pub task: Task,
}

impl Request {
    pub fn erase(stale: StaleSlot) -> Self {
        Self {
            ticket: None,
            key: Vec::new(),
            key_hash: stale.key_hash,
            task: Task::Erase(stale),
        }
    }

    /// Whether it may write.
    pub fn is_change(&self) -> bool {
        !matches!(self.task, Task::Get | Task::Tied)
    }

    /// The reply to a change, when its write is done or durable.
    pub fn reply(&self) -> Option<After> {
        let durability = match self.task {
            Task::Put { durability, .. } | Task::Delete { durability } => durability,
            Task::Get | Task::Tied | Task::Erase(_) => return None,
        };
        self.ticket.map(|ticket| After::Reply(ticket, durability))
    }
}

/// Whom a request is from.
#[derive(Clone, Copy, Debug, Default)]
pub enum Origin {
    #[default]
    Caller,
    /// A get for a scan: what it reads need not stay in the cache.
    Scan {
        /// Where the item was a moment ago, of a key that does not stand whole in the index: looked at first.
        near: Option<Location>,
    },
}

/// The end of a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The value of the key.
    Value(Option<Vec<u8>>),
    /// Keys that look alike in the index.
    Tied(Tied),
    /// The change is done, as durable as was asked.
    Done,
    /// Nothing was changed, except after `Poisoned` and `Io`: then the change may be there or not.
    Failed(Error),
}

/// The keys of a tie group in a partition, by the places of their items.
#[derive(Clone, Debug, Default)]
pub struct Tied {
    pub keys: Vec<TiedKey>,
    /// One for each item that does not tell its key: damaged, or in a cell that cannot be read.
    pub failures: Vec<Error>,
}

/// A key and where its item was.
#[derive(Clone, Debug)]
pub struct TiedKey {
    pub key: Vec<u8>,
    pub at: Location,
    pub read_bytes: usize,
}
