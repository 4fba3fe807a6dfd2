//! What a run keeps of a fault.

use kreon_wire::GroupConfig;

use super::class::Class;

/// A group whose primary a fault hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its range, from 0 on; the group has the number after it.
    pub range: usize,
    /// Servers that were in sync, as ZooKeeper was last read before the fault.
    pub set: Vec<u32>,
    /// Whether those were all that hold a copy.
    pub is_whole: bool,
}

impl Hit {
    /// The group of a range, as it was before the fault.
    pub fn of(range: usize, group: &GroupConfig) -> Self {
        Self {
            range,
            set: group.in_sync.iter().map(|member| member.server.0).collect(),
            is_whole: group.in_sync.len() == group.members.len(),
        }
    }
}

/// A fault, and when it began.
#[derive(Clone, Debug)]
pub struct Happened {
    /// What kind.
    pub class: Class,
    /// Servers to which it happened; empty: to all.
    pub victims: Vec<u32>,
    /// Groups whose primary it hit.
    pub hit: Vec<Hit>,
    /// When it was made, in microseconds of the run.
    pub at_us: u64,
    /// It came on top of another one, or when ZooKeeper had come back less than two sessions ago: it gives each session its
    /// whole time again then, so a server that is lost is noticed late.
    pub is_second: bool,
}
