//! What becomes true when a write is done, or durable.

use super::request::{Durability, OpNo, Ticket};
use crate::format::{ClassNo, Timestamp};
use crate::index::Location;

/// Something that waits for the write of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The request is answered: with `Sync` when the write is durable, otherwise when it is done.
    Reply(Ticket, Durability),
    /// The write made the item at `slot` outdated: when it is durable, the slot may be used.
    Outdates {
        slot: Location,
        class: ClassNo,
        key_hash: u128,
    },
    /// The write went over an outdated item: when it is durable, that copy is gone.
    Overwrites { key_hash: u128 },
    /// The write put a tombstone at `slot`.
    Buries { slot: Location, key_hash: u128 },
    /// The write put an item there whose key has tombstones: when it is durable, older ones are no longer needed.
    Supersedes {
        key_hash: u128,
        timestamp: Timestamp,
    },
    /// The write put a part of a large value there, for which the request waits.
    Part(OpNo),
    /// The write made a large value outdated, which had this timestamp: when it is durable, the slots of its parts are free.
    FreesParts { timestamp: Timestamp },
    /// The write made an outdated item at `slot` invalid: when it is durable, the slot is free.
    Erases { slot: Location, key_hash: u128 },
}
