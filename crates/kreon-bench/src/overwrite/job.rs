//! What a child process is to do, and what it says meanwhile: a line of JSON each.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::course::Sample;
use super::figures::Run;
use crate::engine::Kind;
use crate::engine::tuning::Means;
use crate::ycsb::choice::Distribution;

/// One store that is loaded and overwritten.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The store.
    pub engine: Kind,
    /// An empty folder for it; the child deletes what it puts there.
    pub dir: PathBuf,
    /// What it gets.
    pub means: Means,
    /// Which records are overwritten how often.
    pub distribution: Distribution,
    /// Records to load.
    pub records: u64,
    /// Overwrites behind the load.
    pub overwrites: u64,
    /// They end after so many seconds, however many are left.
    pub seconds_max: Option<f64>,
    /// From one sample to the next.
    pub interval_seconds: f64,
    /// Threads that write.
    pub threads: usize,
    /// Records that are looked up in the end.
    pub checks: u64,
    /// Of all draws.
    pub seed: u64,
    /// Where to enter the memory limit; `None`: there is none.
    pub door: Option<PathBuf>,
}

/// What a child says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// It goes on.
    Sampled(Sample),
    /// All is done.
    Ended(Box<Run>),
    /// The store failed: why.
    Failed(String),
}
