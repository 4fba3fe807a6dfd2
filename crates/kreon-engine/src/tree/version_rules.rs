//! Which versions of a key a merge keeps.

use kreon_base::{Lsn, planted};

use super::MergeRules;

/// Judges the versions of one key, newest first.
///
/// A snapshot S sees the newest version with an LSN below S. The newest version always stays; an older one
/// stays if some S sees it but not its successor (the next newer version, kept or dropped). An LSN below
/// all snapshots is written as 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct VersionRules<'r> {
    snapshots: &'r [Lsn],
    is_last_level: bool,
    successor: Option<Lsn>,
}

/// What happens to a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The version is dropped.
    Drop,
    /// The version stays, with this LSN.
    Keep(Lsn),
    /// A tombstone of the last level. It stays, with this LSN, only above an older version that stays.
    KeepIfOlder(Lsn),
}

impl Verdict {
    /// For the planted bug `DeletionForgotten`: drops a tombstone although an older version stays.
    pub(super) fn forgetting(self) -> Self {
        match self {
            Self::KeepIfOlder(_) => Self::Drop,
            Self::Drop | Self::Keep(_) => self,
        }
    }
}

impl<'r> VersionRules<'r> {
    pub(super) fn new(rules: &MergeRules<'r>) -> Self {
        Self {
            snapshots: rules.snapshots,
            is_last_level: rules.last_level,
            successor: None,
        }
    }

    /// The versions of another key follow.
    pub(super) fn start(&mut self) {
        self.successor = None;
    }

    /// Judges the next older version.
    pub(super) fn judge(&mut self, lsn: Lsn, is_tombstone: bool) -> Verdict {
        // Two merged trees may each hold a tombstone of the same deleted range. The lower one is redundant, and as a
        // successor it would make the versions below it look newer than those above.
        if self.successor.is_some_and(|successor| lsn >= successor) {
            return Verdict::Drop;
        }
        let stays = self
            .successor
            .is_none_or(|successor| self.is_seen_between(lsn, successor));
        self.successor = Some(lsn);
        if !stays {
            return Verdict::Drop;
        }
        let smallest = self.snapshots.first();
        planted!(SnapshotSeesSpilledWrite => let smallest = None);
        let kept = match smallest {
            Some(smallest) if lsn >= *smallest => lsn,
            _ => Lsn(0),
        };
        if is_tombstone && self.is_last_level {
            Verdict::KeepIfOlder(kept)
        } else {
            Verdict::Keep(kept)
        }
    }

    /// Whether a snapshot sees a version of `lsn` but not one of `successor`.
    fn is_seen_between(&self, lsn: Lsn, successor: Lsn) -> bool {
        let next = self.snapshots.partition_point(|snapshot| *snapshot <= lsn);
        self.snapshots.get(next).is_some_and(|s| *s <= successor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(snapshots: &[u64], last_level: bool, versions: &[(u64, bool)]) -> Vec<Verdict> {
        let snapshots: Vec<_> = snapshots.iter().copied().map(Lsn).collect();
        let mut rules = VersionRules::new(&MergeRules {
            snapshots: &snapshots,
            expired_by: None,
            last_level,
            fill: 0.95,
            rewrites_all: false,
            filter_bits_per_key: 0,
        });
        rules.start();
        let judge = |(lsn, tombstone): &(u64, bool)| rules.judge(Lsn(*lsn), *tombstone);
        versions.iter().map(judge).collect()
    }

    #[test]
    fn without_snapshots_only_the_newest_stays_and_loses_its_lsn() {
        let found = verdicts(&[], false, &[(9, false), (5, false), (0, true)]);
        assert_eq!(found, [Verdict::Keep(Lsn(0)), Verdict::Drop, Verdict::Drop]);
    }

    #[test]
    fn a_version_stays_if_a_snapshot_sees_it_and_not_its_successor() {
        // 5 sees 4 and not 5; 8 sees 7; nothing sees 5 but not 7, as 6 and 7 are no snapshots.
        let versions = [(9, false), (7, false), (5, false), (4, false), (0, false)];
        let found = verdicts(&[5, 8], false, &versions);
        let expected = [
            Verdict::Keep(Lsn(9)),
            Verdict::Keep(Lsn(7)),
            Verdict::Drop,
            Verdict::Keep(Lsn(0)),
            Verdict::Drop,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_snapshot_at_the_lsn_of_a_version_does_not_see_it() {
        let found = verdicts(&[7], false, &[(7, false), (3, false)]);
        assert_eq!(found, [Verdict::Keep(Lsn(7)), Verdict::Keep(Lsn(0))]);
    }

    #[test]
    fn a_replayed_version_does_not_stay_twice() {
        let found = verdicts(&[3, 12], false, &[(9, false), (9, false)]);
        assert_eq!(found, [Verdict::Keep(Lsn(9)), Verdict::Drop]);
    }

    #[test]
    fn what_stands_beneath_an_older_version_is_gone() {
        // Two trees with a deletion of the same range at 40, each above a version that 15 sees.
        let versions = [(40, true), (0, false), (40, true), (0, false)];
        let expected = [
            Verdict::KeepIfOlder(Lsn(40)),
            Verdict::Keep(Lsn(0)),
            Verdict::Drop,
            Verdict::Drop,
        ];
        assert_eq!(verdicts(&[15], true, &versions), expected);
    }

    #[test]
    fn deletions_on_the_last_level_stay_only_over_older_versions() {
        let versions = [(9, true), (4, false)];
        assert_eq!(
            verdicts(&[6], true, &versions),
            [Verdict::KeepIfOlder(Lsn(9)), Verdict::Keep(Lsn(0))]
        );
        assert_eq!(
            verdicts(&[6], false, &versions),
            [Verdict::Keep(Lsn(9)), Verdict::Keep(Lsn(0))]
        );
    }
}
