//! Reads that tasks begin without waiting for them in a call.
//!
//! - `async_reader`: the entry; it starts queue and reactor with the first read
//! - `request`: what a task asks for, and the answer; `ticket`: the outcome of the reads that it waits for
//! - `in_flight`: reads in flight, and tasks that wait until there is room for more
//! - `begin`: putting reads of pages, or of a record, in flight; `land`: their end
//! - `reactor`, `drive`: taking completions, in a thread of its own or in one that runs futures
//! - `wakeup`: waking one of those threads

mod async_reader;
mod begin;
mod drive;
mod in_flight;
mod land;
mod reactor;
mod request;
mod ticket;
mod wakeup;

pub use request::{Begun, PageCheck, PagesWanted};
pub use ticket::Ticket;

pub(crate) use async_reader::AsyncReader;
pub(crate) use reactor::Rounds;
