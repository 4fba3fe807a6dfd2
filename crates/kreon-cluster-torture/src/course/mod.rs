//! Where the time of an outage goes.
//!
//! - [`logs`]: what the servers log
//! - [`longest`]: the longest outages of one fault of one server at a time, each with what was logged meanwhile

pub mod logs;
pub mod longest;
