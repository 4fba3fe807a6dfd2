//! Passes the versions that stay on to the output, key by key, and accounts for the others.

use kreon_base::{Bug, LogOffset, Lsn, Payload, Result};

use super::output::Output;
use super::version_rules::{Verdict, VersionRules};
use super::{Changes, NodeSink, Reference, Version};

/// Where a version comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Input,
    Tree,
}

/// The versions of one key, of which more may come: from the input first, then from the old tree,
/// whose versions may go on in the next leaf.
pub(super) struct VersionFilter<'m, K, C> {
    pub(super) output: Output<'m, K>,
    pub(super) changes: &'m mut C,
    rules: VersionRules<'m>,
    key: Vec<u8>,
    is_open: bool,
    /// Deletions that stay only if an older version does, newest first.
    deletions: Vec<Deletion>,
    /// Entries from the input that are in the output.
    pub(super) added: u64,
    /// Entries of the old tree that are not.
    pub(super) removed: u64,
}

struct Deletion {
    lsn: Lsn,
    offset: LogOffset,
    origin: Origin,
}

impl<'m, K: NodeSink, C: Changes> VersionFilter<'m, K, C> {
    pub(super) fn new(output: Output<'m, K>, changes: &'m mut C, rules: VersionRules<'m>) -> Self {
        Self {
            output,
            changes,
            rules,
            key: Vec::new(),
            is_open: false,
            deletions: Vec::new(),
            added: 0,
            removed: 0,
        }
    }

    /// Versions of `key` follow. The key before must be closed.
    pub(super) fn open(&mut self, key: &[u8]) {
        debug_assert!(!self.is_open);
        self.key.clear();
        self.key.extend_from_slice(key);
        self.is_open = true;
        self.rules.start();
    }

    /// The whole key that is open; none if more versions of it cannot come.
    pub(super) fn open_key(&self) -> Option<&[u8]> {
        self.is_open.then_some(&self.key)
    }

    /// Takes the next older version of the open key.
    pub(super) fn take(&mut self, version: Version<'_>, origin: Origin) -> Result<()> {
        let tombstone = match version.payload {
            Payload::Tombstone { offset } => Some(offset),
            Payload::Logged { .. } | Payload::Inline { .. } => None,
        };
        match (
            self.rules.judge(version.lsn, tombstone.is_some()),
            tombstone,
        ) {
            (Verdict::Drop, _) => {
                self.count_gone(version.payload, origin);
                Ok(())
            }
            (Verdict::KeepIfOlder(_), _) if Bug::DeletionForgotten.is_planted() => {
                self.count_gone(version.payload, origin);
                Ok(())
            }
            (Verdict::KeepIfOlder(lsn), Some(offset)) => {
                self.deletions.push(Deletion {
                    lsn,
                    offset,
                    origin,
                });
                Ok(())
            }
            (Verdict::Keep(lsn) | Verdict::KeepIfOlder(lsn), _) => {
                self.keep_deletions()?;
                self.keep(lsn, version.payload, origin)
            }
        }
    }

    /// No more versions of the open key come.
    pub(super) fn close(&mut self) {
        self.is_open = false;
        while let Some(deletion) = self.deletions.pop() {
            let offset = deletion.offset;
            self.count_gone(Payload::Tombstone { offset }, deletion.origin);
        }
    }

    fn keep_deletions(&mut self) -> Result<()> {
        let mut deletions = std::mem::take(&mut self.deletions);
        for deletion in deletions.drain(..) {
            let payload = Payload::Tombstone {
                offset: deletion.offset,
            };
            self.keep(deletion.lsn, payload, deletion.origin)?;
        }
        self.deletions = deletions;
        Ok(())
    }

    fn keep(&mut self, lsn: Lsn, payload: Payload<'_>, origin: Origin) -> Result<()> {
        self.output.push(&self.key, lsn, payload)?;
        if origin == Origin::Input {
            self.added += 1;
            if let Some(record) = Reference::of(self.key.len() as u32, payload) {
                self.changes.referenced(record);
            }
        }
        Ok(())
    }

    fn count_gone(&mut self, payload: Payload<'_>, origin: Origin) {
        if origin == Origin::Tree {
            self.removed += 1;
            if let Some(record) = Reference::of(self.key.len() as u32, payload) {
                self.changes.dropped(record);
            }
        }
    }
}
