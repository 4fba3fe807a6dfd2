//! What the machine tells: time, transfers, memory, and what else goes on.

pub mod about;
pub mod disk;
pub mod limit;
pub mod memory;
pub mod usage;
