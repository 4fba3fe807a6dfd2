//! Channels: who subscribed to what.

mod channels;
mod glob;

pub(crate) use channels::Channels;
pub(crate) use glob::glob_matches;
