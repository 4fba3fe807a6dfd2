//! The client of a cluster as a machine without I/O: `on(now, event, &mut actions)`.
//!
//! `map -> route -> {ok | Moved: read the map anew | Unavailable: wait | Unknown: report}`. The map is what the
//! coordinator says of each group: it may be old, and whoever it names refuses what is not his. A write is sent again
//! only after a server said that it was not appended; otherwise it could land above a later write of another client.
#![forbid(unsafe_code)]

mod call;
mod event;
mod machine;
mod map;
mod moment;
#[cfg(test)]
mod tests;

pub use call::{Attempt, CallId, Kind};
pub use event::{Action, Event, Outcome, Reply};
pub use machine::Client;
pub use moment::{Moment, Timing};
