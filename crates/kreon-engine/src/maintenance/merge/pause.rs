//! The pause after merges that failed.

use std::time::{Duration, Instant};

use kreon_base::{ErrorKind, Result};

/// The pause of a merge thread after failures, for lack of space in most cases.
#[derive(Default)]
pub struct MergePause {
    until: Option<Instant>,
    pause: Duration,
}

impl MergePause {
    /// Whether it is time to try again.
    pub fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    /// Twice as long after every failure, up to a minute.
    pub fn after(&mut self, outcome: &Result<()>) {
        let error = match outcome {
            // The region was dropped meanwhile, or the store closed: no failure.
            Err(error) if error.kind() != ErrorKind::Closed => error,
            _ => {
                *self = Self::default();
                return;
            }
        };
        tracing::warn!(%error, "trees of a region could not be merged");
        let pause = self.pause.max(Duration::from_millis(500)) * 2;
        self.pause = pause.min(Duration::from_secs(60));
        self.until = Some(Instant::now() + self.pause);
    }
}
