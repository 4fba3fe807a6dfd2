//! Histories of concurrent clients on a real store with background work, and their judgement.
//!
//! - [`call`]: what clients did and saw
//! - [`dense`], [`frontier`], [`mod@judge`]: whether there is an order that explains it
//! - `values`, `world`, `place`, `jitter`: the store that the clients share
//! - `mix`, `client`, `reader`, `moment`, `passing`, `tasks`, `loading`: what a client does
//! - `round`, `life`: rounds of clients, between them ends and power cuts
pub mod call;
mod client;
pub mod dense;
pub mod frontier;
mod jitter;
pub mod judge;
mod life;
mod loading;
mod mix;
mod moment;
mod passing;
mod place;
mod reader;
mod round;
mod run;
mod tasks;
mod values;
mod world;

pub use call::{Call, History, Register, Seen, State, Verdict, Version, Violation};
pub use judge::judge;
pub use run::history;
