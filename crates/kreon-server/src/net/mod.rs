//! Sockets: who is let in, who serves them, and how bytes become requests and replies become bytes.

mod answers;
mod arrival;
mod buffers;
mod connection;
mod gets;
mod listener;
mod output;
mod reading;
mod roster;
mod serving;
mod stream;
mod tls;
mod turn;
mod worker;
mod writes;

pub(crate) use arrival::Arrival;
pub(crate) use listener::{Listener, bind};
pub(crate) use serving::{close_idle, run_worker};
pub(crate) use tls::acceptor;
pub(crate) use worker::Worker;
