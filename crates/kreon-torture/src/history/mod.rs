//! Histories of concurrent clients on a real store with background work, and their judgement.
//!
//! The crate `kreon-judge` judges.
//!
//! - `values`, `handle`, `reserved`, `world`, `place`, `jitter`: the store that the clients share
//! - `crowd`: what all rounds have in common
//! - `session`: what every action of a client needs
//! - `writes`, `gets`, `transactions` with `course`, `tasks`, `passing`, `loading`, `reader` with `moment`: the actions
//! - `mix`, `client`: which action comes next
//! - `round`, `life`: rounds of clients, between them ends and power cuts
mod client;
mod course;
mod crowd;
mod gets;
mod handle;
mod jitter;
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
mod transactions;
mod values;
mod world;
mod writes;

pub use crowd::Crowd;
pub use run::{history, history_of};
