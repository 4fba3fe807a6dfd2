//! Histories of concurrent clients on a real store with background work, and their judgement.
//!
//! - [`call`]: what clients did and saw
//! - [`dense`], [`frontier`], [`mod@judge`]: whether there is an order that explains it
//! - `values`, `handle`, `reserved`, `world`, `place`, `jitter`: the store that the clients share
//! - `session`: what every action of a client needs
//! - `writes`, `gets`, `tasks`, `passing`, `loading`, `reader` with `moment`: the actions
//! - `mix`, `client`: which action comes next
//! - `round`, `life`: rounds of clients, between them ends and power cuts
pub mod call;
mod client;
pub mod dense;
pub mod frontier;
mod gets;
mod handle;
mod jitter;
pub mod judge;
mod life;
mod loading;
mod mix;
mod moment;
mod passing;
mod place;
mod reader;
mod reserved;
mod round;
mod run;
mod session;
mod tasks;
mod values;
mod world;
mod writes;

pub use call::{Call, History, Register, Seen, State, Verdict, Version, Violation};
pub use judge::judge;
pub use run::history;
