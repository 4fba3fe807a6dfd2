//! A group as clients see it: its store while this server is the primary, and what waits for it.

mod group;
mod holds;
mod office;
mod snapshots;
mod waiting;

pub use group::Hosted;
pub use office::Office;
pub use waiting::Wait;
