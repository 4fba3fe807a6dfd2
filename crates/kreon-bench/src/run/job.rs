//! What a child process is to do, and what it says meanwhile: a line of JSON each.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::record::Record;
use crate::engine::Kind;
use crate::engine::tuning::Means;
use crate::ycsb::phase::Phase;

/// One store through all its phases.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The store.
    pub engine: Kind,
    /// An empty folder for it; the child deletes what it puts there.
    pub dir: PathBuf,
    /// What it gets.
    pub means: Means,
    /// What it goes through. A load starts with an empty store.
    pub phases: Vec<Phase>,
    /// Where to enter the memory limit; `None`: there is none.
    pub door: Option<PathBuf>,
    /// For the records.
    pub preset: String,
    /// For the records.
    pub round: u32,
    /// For the records: which point of a sweep.
    pub variant: String,
}

/// What a child says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Another interval has passed.
    Progress {
        /// Which phase.
        workload: String,
        /// Requests so far.
        requests: u64,
        /// Of how many.
        of: u64,
        /// Requests a second in the last interval.
        rate: f64,
    },
    /// A phase is over.
    Ended(Box<Record>),
    /// The store failed, and the job with it: why.
    Failed(String),
}
