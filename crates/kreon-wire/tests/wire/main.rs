//! What servers send each other, as bytes.
#![allow(missing_docs)]

mod borders;
mod classes;
mod flips;
mod nodes;
mod receivers;
mod replies;
mod requests;
mod round_trips;
mod samples;
mod streams;
mod wrong;
mod wrong_requests;
