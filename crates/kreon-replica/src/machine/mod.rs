//! The protocol of a group as machines without I/O: `on(now, event, &mut actions)`.
//!
//! The same code runs in the server and in the explorer of the protocol. A machine reads no clock, sends nothing and
//! writes nothing: it is told what happened, and says what is to be done, in order.
//!
//! | machine | one per | decides |
//! |---|---|---|
//! | [`replica`] | group and server | which terms still count here; takes part in seals, equalisation and joins; as a candidate, leads them |
//! | [`primary`] | group and term in office | what may be acknowledged and shown; who is in the set |
//! | [`master`] | server | who is promoted, and when a group has to wait |

mod configuration;
pub mod master;
mod moment;
mod node;
mod preference;
pub mod primary;
pub mod replica;
mod report;
mod swap;
#[cfg(test)]
mod tests;

pub use configuration::{Configuration, Known, Stamp, Version};
pub use kreon_wire::{BeatNumber, Member, ProcessId, ServerId, Term};
pub use moment::{Moment, Timing};
pub use preference::preference;
pub use report::{Report, SlotMark, slots_to_write, top_slot};
pub use swap::{Answer, Ask, Outcome, Swap, Ticket};
