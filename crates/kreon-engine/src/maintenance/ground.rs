//! What the background jobs and the writer stand on.

use std::sync::Arc;

use crate::regions::Regions;
use crate::space::Space;
use crate::state::Storage;
use crate::throttle::Throttle;
use crate::tree_locks::TreeLocks;
use crate::versions::Versions;
use crate::visibility::Visibility;

/// The subsystems below maintenance, shared: each job has a clone, and so has the writer.
#[derive(Clone)]
pub struct Ground {
    /// Volume, log, levels.
    pub storage: Arc<Storage>,
    /// Gate, pending batches and snapshots.
    pub visibility: Arc<Visibility>,
    /// Changes of the levels.
    pub versions: Arc<Versions>,
    /// The space plan and its accounting.
    pub space: Arc<Space>,
    /// Slows writers down.
    pub throttle: Arc<Throttle>,
    /// Trees that loads, compactions and merges build on.
    pub tree_locks: Arc<TreeLocks>,
    /// Regions that exist.
    pub regions: Arc<Regions>,
}
