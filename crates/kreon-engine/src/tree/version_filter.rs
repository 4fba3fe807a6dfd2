//! Sends the versions that a merge keeps to the output, key by key, and accounts for the dropped ones.

use std::sync::Arc;

use kreon_base::{LogOffset, Lsn, Payload, Result, Timestamp, planted};

use super::leaf_keys::is_long;
use super::output::Output;
use super::version_rules::{Verdict, VersionRules};
use super::{Changes, MergeRules, NodeSink, Reference, Version};
use crate::ranges::RegionRanges;

/// Source of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Input,
    Tree,
    /// A deleted range of the input, or what becomes of an expired value.
    Range,
}

/// Filters the versions of the open key: first those of the input, then those of the old tree, which may
/// continue in the next leaf.
pub(super) struct VersionFilter<'m, K, C> {
    pub(super) output: Output<'m, K>,
    pub(super) changes: &'m mut C,
    rules: VersionRules<'m>,
    expired_by: Option<Timestamp>,
    /// The deleted ranges of the input.
    pub(super) ranges: Option<Arc<RegionRanges>>,
    key: Vec<u8>,
    is_open: bool,
    /// LSNs of deleted ranges that cover the open key and are not judged yet, the newest last.
    erasures: Vec<Lsn>,
    /// Tombstones that stay only above an older version that stays, newest first.
    deletions: Vec<Deletion>,
    /// Entries of the output that are not from the old tree.
    pub(super) added: u64,
    /// Entries of the old tree that are not in the output.
    pub(super) removed: u64,
}

struct Deletion {
    lsn: Lsn,
    /// Log record of the tombstone; none for a deleted range or an expired value.
    record: Option<LogOffset>,
    origin: Origin,
}

impl Deletion {
    /// The payload of the deletion above `older`. For a deleted range and a long key it takes the whole key from
    /// the record of `older`.
    fn payload(&self, key: &[u8], older: Payload<'_>) -> Payload<'static> {
        if let Some(offset) = self.record {
            return Payload::Tombstone { offset };
        }
        let key_at = match older {
            _ if !is_long(key.len() as u32) => LogOffset(0),
            Payload::Logged { offset, .. }
            | Payload::Tombstone { offset }
            | Payload::Erased { key_at: offset } => offset,
            // Never of a long key.
            Payload::Inline { .. } => LogOffset(0),
        };
        Payload::Erased { key_at }
    }
}

impl<'m, K: NodeSink, C: Changes> VersionFilter<'m, K, C> {
    pub(super) fn new(
        output: Output<'m, K>,
        changes: &'m mut C,
        rules: &MergeRules<'m>,
        ranges: Option<Arc<RegionRanges>>,
    ) -> Self {
        Self {
            output,
            changes,
            rules: VersionRules::new(rules),
            expired_by: rules.expired_by,
            ranges,
            key: Vec::new(),
            is_open: false,
            erasures: Vec::new(),
            deletions: Vec::new(),
            added: 0,
            removed: 0,
        }
    }

    /// Opens `key`. The previous key must be closed.
    pub(super) fn open(&mut self, key: &[u8]) {
        debug_assert!(!self.is_open);
        self.key.clear();
        self.key.extend_from_slice(key);
        self.is_open = true;
        self.rules.start();
        if let Some(ranges) = &self.ranges {
            let covering = ranges.covering(key).iter().rev();
            self.erasures.clear();
            self.erasures.extend(covering.map(|deletion| deletion.lsn));
        }
    }

    /// The open key, whole; none if no key can have more versions.
    pub(super) fn open_key(&self) -> Option<&[u8]> {
        self.is_open.then_some(&self.key)
    }

    /// Takes the next older version of the open key.
    pub(super) fn take(&mut self, version: Version<'_>, origin: Origin) -> Result<()> {
        while let Some(lsn) = self.erasures.pop_if(|lsn| *lsn > version.lsn) {
            self.erase(lsn);
        }
        if self.has_expired(version.payload) {
            return self.take_expired(version, origin);
        }
        let deletion = match version.payload {
            Payload::Tombstone { offset } => Some(Some(offset)),
            Payload::Erased { .. } => Some(None),
            Payload::Logged { .. } | Payload::Inline { .. } => None,
        };
        let verdict = self.rules.judge(version.lsn, deletion.is_some());
        planted!(DeletionForgotten => let verdict = verdict.forgetting());
        match (verdict, deletion) {
            (Verdict::Drop, _) => {
                self.count_gone(version.payload, origin);
                Ok(())
            }
            (Verdict::KeepIfOlder(lsn), Some(record))
            | (Verdict::Keep(lsn), Some(record @ None)) => {
                let deletion = Deletion {
                    lsn,
                    record,
                    origin,
                };
                self.deletions.push(deletion);
                Ok(())
            }
            (Verdict::Keep(lsn) | Verdict::KeepIfOlder(lsn), _) => {
                self.keep_deletions(version.payload)?;
                self.keep(lsn, version.payload, origin)
            }
        }
    }

    fn has_expired(&self, payload: Payload<'_>) -> bool {
        self.expired_by.is_some_and(|by| payload.has_expired(by))
    }

    /// Takes a value that nobody sees any more, but that hides older versions. In the last level a deletion without a
    /// record does so as well. Further up that would hide nothing in lower trees, so there the value stays as it is.
    fn take_expired(&mut self, version: Version<'_>, origin: Origin) -> Result<()> {
        let verdict = self.rules.judge(version.lsn, true);
        planted!(ExpiryDroppedEarly => let verdict = Verdict::Drop);
        match verdict {
            Verdict::Keep(lsn) => {
                self.keep_deletions(version.payload)?;
                return self.keep(lsn, version.payload, origin);
            }
            Verdict::KeepIfOlder(lsn) => self.deletions.push(Deletion {
                lsn,
                record: None,
                origin: Origin::Range,
            }),
            Verdict::Drop => {}
        }
        self.count_gone(version.payload, origin);
        Ok(())
    }

    /// Judges a range deletion as the next older version of the open key. It becomes an entry only above an older
    /// version that stays in this tree; the spill applies the range to the other trees as well.
    fn erase(&mut self, lsn: Lsn) {
        if let Verdict::Keep(lsn) | Verdict::KeepIfOlder(lsn) = self.rules.judge(lsn, true) {
            self.deletions.push(Deletion {
                lsn,
                record: None,
                origin: Origin::Range,
            });
        }
    }

    /// Closes the open key and drops tombstones without an older version below them.
    pub(super) fn close(&mut self) {
        self.is_open = false;
        self.erasures.clear();
        while let Some(deletion) = self.deletions.pop() {
            let key_at = LogOffset(0);
            let payload = deletion.payload(&self.key, Payload::Erased { key_at });
            self.count_gone(payload, deletion.origin);
        }
    }

    fn keep_deletions(&mut self, older: Payload<'_>) -> Result<()> {
        let mut deletions = std::mem::take(&mut self.deletions);
        for deletion in deletions.drain(..) {
            let payload = deletion.payload(&self.key, older);
            self.keep(deletion.lsn, payload, deletion.origin)?;
        }
        self.deletions = deletions;
        Ok(())
    }

    fn keep(&mut self, lsn: Lsn, payload: Payload<'_>, origin: Origin) -> Result<()> {
        self.output.push(&self.key, lsn, payload)?;
        if origin != Origin::Tree {
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
