//! The last minutes, sample by sample, for the charts of the status page.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde_json::Value;

/// Samples that are kept: five minutes, one each second.
const SAMPLES_MAX: usize = 300;

/// Samples as the page reads them.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<VecDeque<Value>>);

impl History {
    /// Oldest first.
    pub(crate) fn samples(&self) -> Vec<Value> {
        self.0.lock().iter().cloned().collect()
    }

    /// Adds the newest; the oldest goes if there are too many.
    pub(crate) fn push(&self, sample: Value) {
        let mut samples = self.0.lock();
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}
