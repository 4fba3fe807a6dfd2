//! Channels: who subscribed to what.

mod channels;

pub(crate) use channels::Channels;
