//! Requests and replies.

use kreon_base::Error;

use super::after::After;
use crate::space::StaleSlot;

/// Names a request to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

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

    /// The reply to a change, when its write is done or durable.
    pub fn reply(&self) -> Option<After> {
        let durability = match self.task {
            Task::Put { durability, .. } | Task::Delete { durability } => durability,
            Task::Get | Task::Erase(_) => return None,
        };
        self.ticket.map(|ticket| After::Reply(ticket, durability))
    }
}

/// The end of a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The value of the key.
    Value(Option<Vec<u8>>),
    /// The change is done, as durable as was asked.
    Done,
    /// Nothing was changed, except after `Poisoned` and `Io`: then the change may be there or not.
    Failed(Error),
}
