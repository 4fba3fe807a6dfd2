//! The protocol: requests from bytes, replies to bytes.
//!
//! Own code rather than a crate: `redis-protocol` parses a request anew each time a piece of it arrives, takes a vector and
//! a frame for each, and knows no limits. This parser goes on where it stopped, and allocates nothing for a request.

mod encode;
mod inline;
mod request;
#[cfg(test)]
mod tests;

pub(crate) use encode::{Version, encode};
pub(crate) use request::{Parsed, Parser, RequestLimits, Violation};
