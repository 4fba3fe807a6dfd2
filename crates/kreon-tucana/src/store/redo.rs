//! The records of the log behind the last commit are applied to the tree again.

use kreon_base::{ErrorKind, Result};

use super::commits::{Commits, Parts};
use super::log_mark::LogMark;
use super::replay::OldLog;

/// Applies them. The log begins at `mark`.
///
/// # Errors
/// `Corruption`; `OutOfSpace`; those of the device.
pub(super) fn redo(
    commits: &Commits,
    parts: Parts<'_>,
    (mark, log): (LogMark, &mut OldLog),
) -> Result<()> {
    let moved_from = parts.log.mark().moved_from;
    let (mut records, mut committed) = (0_u64, mark.marker);
    let end = log.replay(|open, placed, record| {
        records += 1;
        loop {
            let error = match parts.tree.replay(record, placed) {
                Err(error) if error.kind() == ErrorKind::OutOfSpace => error,
                outcome => return outcome,
            };
            // As for a writer: a commit publishes nodes, and gives the pages back that were replaced.
            if committed == placed.lsn && !parts.tree.wants_freeze() {
                return Err(error);
            }
            let here = LogMark {
                marker: placed.lsn,
                open,
                moved_from,
                ..mark
            };
            commits.commit_at(parts, here)?;
            committed = placed.lsn;
        }
    })?;
    tracing::debug!(records, end = end.0, "log replayed");
    Ok(())
}
