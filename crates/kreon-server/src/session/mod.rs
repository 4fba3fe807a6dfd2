//! The state of a connection, and the commands that change it.

mod auth;
mod client;
mod hello;
mod kill;
mod multi;
mod naming;
mod publish;
mod run;
mod state;
mod subscriptions;
mod transaction;

pub(crate) use run::Answer;
pub(crate) use state::Session;
pub(crate) use subscriptions::push_of;
