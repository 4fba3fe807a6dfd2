//! A full copy for a member that was not in the set, while the primary goes on writing.
//!
//! 1. [`blank_slots`] at the joiner: its file is no store until it is complete;
//! 2. [`Mirror::attach`](crate::mirror::Mirror::attach): later writes go to it, without superblocks; those that were begun
//!    before have ended when this returns;
//! 3. [`Resync::list`]: what is in use now, and where the log goes on; [`Resync::reserve`]: space for it;
//! 4. [`Resync::copy`], step by step;
//! 5. [`Resync::complete`]: what it was not sent when it was written, and log that has left memory; what it has becomes
//!    durable, it counts, and a checkpoint gives it its superblocks. It is added to the configuration when that has returned.
//!
//! Until then nobody waits for the joiner: what its stream has no room for is owed to it, and read from the primary's file.

mod catching_up;
mod copy;

pub use self::copy::{Resync, log_before};
pub use crate::blank::blank_slots;
