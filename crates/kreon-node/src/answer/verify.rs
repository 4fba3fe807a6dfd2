//! Verification of a store, on a thread of its own.

use std::sync::Arc;
use std::thread::Builder;

use kreon_sync::Mutex;
use kreon_wire::{FailureKind, Reply, Verified};

use super::asked::Asked;

impl Asked {
    /// Reads and checks the whole store of the primary. One at a time in a group.
    pub fn verify(self) {
        let Some(turn) = self.hosted.begin_verifying() else {
            return self.refuse(FailureKind::Busy, "the group is being verified");
        };
        // Whoever takes it answers: the thread, or this one if there is none.
        let asked = Arc::new(Mutex::new(Some(self)));
        let of_thread = Arc::clone(&asked);
        let started = Builder::new().name("kreon-verify".into()).spawn(move || {
            let asked = of_thread.lock().take();
            if let Some(asked) = asked {
                asked.verify_here();
            }
            drop(turn);
        });
        if let Err(error) = started
            && let Some(asked) = asked.lock().take()
        {
            asked.refuse(FailureKind::Busy, &error.to_string());
        }
    }

    fn verify_here(self) {
        match self.office.engine.verify() {
            Ok(report) => {
                for problem in &report.problems {
                    tracing::error!(group = self.hosted.id.0, problem, "does not verify");
                }
                self.due.reply(&Reply::Verified(Verified {
                    problems: report.problems.len() as u64,
                    pages: report.pages,
                    records: report.records,
                }));
            }
            Err(error) => self.fail(&error),
        }
    }
}
