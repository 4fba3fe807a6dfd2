//! Explorer of the cluster's protocol: the state machines of kreon-replica over a toy log, exhaustive within
//! bounds, then random.
#![forbid(unsafe_code)]

pub mod explore;
pub mod slots;
pub mod toy;
pub mod walk;
