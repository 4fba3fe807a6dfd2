//! Planted bugs, which test the tests.
//!
//! Each bug is one that stores of this kind have had. A build with the feature `planted` can switch it on, and the test
//! tools must find it. Without the feature [`Bug::is_planted`] is the constant `false`, and the compiler removes the
//! hooks.
//!
//! A bug is planted by one line, [`planted!`](crate::planted!), beside the logic that it breaks. The line holds only
//! what goes wrong: the code around it reads as it does without bugs.

/// A planted bug, in one line:
///
/// - `planted!(Bug => let name = wrong);` replaces the value of the variable `name`,
/// - `planted!(Bug => statement);` does something wrong, or returns too early.
///
/// Without the feature `planted` the wrong side is type-checked and left out.
#[macro_export]
macro_rules! planted {
    ($bug:ident => let $name:ident = $wrong:expr) => {
        let $name = if $crate::Bug::$bug.is_planted() {
            $wrong
        } else {
            $name
        };
    };
    ($bug:ident => $wrong:expr) => {
        if $crate::Bug::$bug.is_planted() {
            $wrong;
        }
    };
}

macro_rules! bugs {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A bug that can be planted, named after what goes wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Bug { $($(#[doc = $doc])+ $name,)+ }

        impl Bug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// What it does.
            pub const fn told(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc,)+).trim_ascii(),)+ }
            }
        }
    };
}

bugs! {
    /// A checkpoint writes its superblock without flushing what that reaches.
    FlushSkippedBeforeSuperblock,
    /// A checkpoint takes its superblock for durable without a flush.
    FlushSkippedAfterSuperblock,
    /// A write is acknowledged as durable without a flush.
    FlushSkippedBySync,
    /// The log is flushed before its bytes are written.
    FlushedBeforeWritten,
    /// A failed flush of the log is tried again, and believed.
    FlushRetried,
    /// A checkpoint moves the replay marker behind records that are not durable.
    MarkerBeforeLog,
    /// A spill moves the replay marker to the tail of the log, over records that it did not spill.
    MarkerTooFar,
    /// An image of L0 counts before the log that it leaves out is durable.
    ImageBeforeLog,
    /// Replay starts where the log ended when an image of L0 was ready, not when it was begun.
    ReplayStartTooFar,
    /// A checkpoint writes bitmap blocks over the copy that counts.
    BitmapInPlace,
    /// A checkpoint writes the catalogue over pages of the catalogue that counts.
    CatalogueInPlace,
    /// A spill, merge or load takes the pages that it replaces for its own fresh ones.
    PagesReusedTooEarly,
    /// A log segment behind the replay marker is freed because no tree points at it yet.
    SegmentFreedTooEarly,
    /// Of a log segment that was used again, readers take a buffer of an earlier use for that of the present one.
    BufferOfEarlierUse,
    /// Of a log segment that was used again, readers take a frame of an earlier use for that of the present one.
    FrameOfEarlierUse,
    /// The page in which a write of the log ends is kept in memory, although a later write has the rest of it.
    HalfPageAdmitted,
    /// What was known of the records in a frame stays when the frame gets another page.
    MarksOfEarlierPage,
    /// A merge notes as dead not the record that it drops but the one that it keeps.
    LiveRecordNotedDead,
    /// Of a log segment that was used again, collection takes the dead records of an earlier use for those of the present
    /// one.
    DeadRecordsOfEarlierUse,
    /// Pages and segments are reused although readers still reach them.
    ReusedUnderReaders,
    /// A moved record replaces whatever is known of its key by then.
    RelocationWithoutCompare,
    /// A segment of moved records is freed although entries that were not spilled point at it.
    MovedSegmentFreedTooEarly,
    /// Of a record over two segments only the first is counted as live.
    SecondSegmentNotCounted,
    /// Log segments of a load under way are freed, because no tree points at them yet.
    LoadNotKept,
    /// The tree of a load stands above what was written while it ran.
    LoadAboveNewerWrites,
    /// Snapshots from before a load see it.
    LoadSeenBySnapshots,
    /// Replay puts the records of loads into L0.
    LoadReplayed,
    /// A region is handed out without the record that makes it.
    RegionNotDurable,
    /// Every record of a batch ends the batch, on the device.
    BatchCutInTwo,
    /// Replay takes the records of a batch whose end is missing.
    TornBatchReplayed,
    /// Readers see a batch before all of it is there.
    BatchSeenInPart,
    /// A run of the store takes the records of the run before it for its own.
    IncarnationKept,
    /// A snapshot does not wait for the writes that are under way.
    SnapshotWithoutGate,
    /// A snapshot sees the write behind it.
    SnapshotSeesNextWrite,
    /// A spill forgets how new an entry is, so that older snapshots see it.
    SnapshotSeesSpilledWrite,
    /// A spill drops a deletion although an older version stays for a snapshot.
    DeletionForgotten,
    /// A merge of levels drops deletions although older versions of their keys lie further down.
    DeletionsDroppedEarly,
    /// A spill forgets the deletions of ranges: what is in the trees comes back.
    RangeIgnoredBySpill,
    /// What is written into a range that is being deleted does not wait for the deletion.
    DeletionNotAwaited,
    /// The commit of a serializable transaction does not look at the keys that the transaction has read.
    ReadKeysNotChecked,
    /// The commit of a serializable transaction does not look at the ranges that the transaction has read.
    ReadRangesNotChecked,
    /// A commit does not look at the keys that the transaction is to write.
    WrittenKeysNotChecked,
    /// Other writers come between the check of a commit and its writes.
    CommitInTwoSteps,
    /// A value is seen although it has expired.
    ExpiredKeySeen,
    /// A merge drops an expired value although an older version lies further down.
    ExpiryDroppedEarly,
    /// A packed value is shown as it is stored.
    PackedValueShown,
    /// A region that the log makes comes back without its options.
    RegionOptionsForgotten,
    /// The change feed shows what was written and is not durable yet.
    FeedShowsUndurable,
    /// A change feed goes on over a run that kept no log, and so wrote no notices.
    UnfollowedRunForgotten,
    /// A put into a stretch of keys that is known to be without values does not make it shorter.
    GapNotCut,
    /// Each step of a scan begins with the last key of the step before.
    ScanStepRepeatsKey,
    /// Superblock slots are believed whatever their checksum says, and sealed anew.
    SlotResealed,
    /// The checksums of tree nodes are not looked at.
    NodeChecksumIgnored,
    /// A whole node is believed although the pointer to it names another epoch or content.
    StaleNodeBelieved,
    /// The checksums of log records are not looked at.
    RecordChecksumIgnored,
    /// The checksums of log records do not cover where they stand.
    RecordAddressIgnored,
    /// Damage in the log is taken for its end.
    DamageTakenForEnd,
    /// The filter of a leaf lacks the leaf's last key.
    FilterMissesKey,
    /// A verification does not read the records that trees point at.
    VerifySkipsRecords,
    /// A checkpoint goes on although pages could not be written.
    WriteErrorSwallowed,
    /// The store goes on writing after a failed write or flush.
    NotPoisoned,
    /// A checkpoint that ran out of space in the middle says that nothing changed.
    UnfinishedCheckpointForgotten,
    /// A primary takes log for landed on a backup when it was sent.
    AcknowledgedBeforeReceipt,
    /// A flush of a replicated volume does not wait for the backups.
    BarrierNotAwaited,
    /// A backup answers a flush without flushing its file.
    BackupFlushSkipped,
    /// A backup answers a flush before the log that it covers was written.
    FlushAnsweredBeforeItsLog,
    /// A backup writes log before pages that were sent before it.
    PageAfterItsLog,
    /// The follower that writes a backup's file says that it is sealed before it wrote what it received. `EndBeforeDrain` is
    /// the same in the state machine.
    DrainSkippedAtSeal,
    /// Log of a term is sent before its first checkpoint is durable on the backups.
    TapBeforeFirstCheckpoint,
    /// Before a promotion the slots of a member's file stay as they are if one of them is newer than the chosen superblock.
    /// `OnlyOlderSlotsRepaired` is the same in the state machine.
    OlderSlotsRepairedAlone,
    /// A joiner gets superblocks before its copy is complete.
    SuperblockDuringResync,
    /// A joiner takes a copied page although a newer one was mirrored.
    CopiedOverMirroredPage,
    /// A joiner does not allocate the segments that nobody will ask it for again.
    BackedSegmentsLeftOut,
    /// A copy is listed without waiting for the writes that were begun before the joiner was attached.
    AttachWithoutWaiting,
    /// A flush of the log counts as durable before the log's mirror has answered.
    DurableUnclamped,
    /// A flush of the log is claimed on the device before the log's mirror has answered.
    ClaimUnclamped,
    /// The buffer of a segment is used again before the log's mirror has landed it.
    BufferReusedBeforeLanding,
    /// An opening for reading only writes a checkpoint, as one for writing does.
    ReadOnlyOpenWrites,
    /// A backup takes a segment of the log that has grown since the backup before for one that it has whole.
    BackupTakesGrownForWhole,
    /// A backup leaves out the first segment of the log.
    BackupMissesSegment,
    /// Tucana: a node that is changed anew keeps its page, which the durable state has.
    WrittenTwiceInEpoch,
    /// Tucana: pages that a commit replaces are used again before it is durable.
    PageFreedBeforeCommit,
    /// Tucana: a node of an epoch that is over changes in place.
    FrozenModified,
    /// Tucana: a commit does not write the records that its nodes point at.
    LogBehindTree,
    /// Tucana: of two writes of a key the one that comes last to the leaf stays, though its record is older.
    OlderLsnWins,
    /// Tucana: a superblock is written before the catalogue and the bitmap that it leads to.
    SuperblockBeforeCatalogue,
    /// Tucana: pages are used again although a snapshot reaches them.
    SnapshotPagesReused,
    /// Tucana: after a commit that failed the store goes on as if nothing had happened.
    CommitAfterFailure,
    /// Tucana: a node is believed although the pointer to it names another epoch.
    NodeEpochIgnored,
    /// A primary goes on with the set from before a removal: the removed member is counted, and the primary not alone.
    RemovedMemberCounted,
    /// A joiner is not counted until its addition to the set is known.
    JoinerUncounted,
    /// A primary acknowledges while it removes a member.
    NoFreeze,
    /// A primary removes its last backup without making durable what it acknowledged.
    NoFlushBeforeAlone,
    /// A sealed replica accepts packets and beats of lower terms.
    LowerTermAccepted,
    /// The state machine of a sealed replica asks for the end of its log before it asks for what was received to be written.
    /// `DrainSkippedAtSeal` is the same in the follower that writes.
    EndBeforeDrain,
    /// A member that was restarted, and lost its memory, is taken for the one in the set.
    RestartedProcessKept,
    /// After a failure of a whole set, one of its members is promoted without the reports of the others.
    PartOfSetSuffices,
    /// The state machines of a promotion have only members with an older superblock than the highest write their slots.
    /// `OlderSlotsRepairedAlone` is the same where slots are written.
    OnlyOlderSlotsRepaired,
    /// A read is shown before all members have what it shows.
    DirtyRead,
    /// A read that met a part of a batch waits for that part only.
    BatchByFirstRecord,
    /// A read is confirmed by a beat that was sent before its value was taken.
    BeatBeforeValue,
    /// A compare-and-set that met another version counts as done.
    CasIgnored,
    /// The outcome of a compare-and-set without a reply is read without `sync`, and believed.
    LostReplyReadWithoutSync,
    /// A replica takes office because a message says so.
    OfficeByMessage,
    /// A sole member answers without a lease.
    AloneWithoutLease,
    /// After accepted loss a primary takes office at once.
    AcceptLossWithoutGrace,
    /// KVell: a change is acknowledged as durable when it is written, before a flush.
    AckBeforeFlush,
    /// KVell: the slot of an outdated item is overwritten before its successor is durable.
    SlotReusedBeforeFlush,
    /// KVell: a tombstone is overwritten while older items of its key are on the device.
    TombstoneReusedEarly,
    /// KVell: an item larger than what is never torn is overwritten in place.
    InPlaceOverSectors,
    /// KVell: an opening uses timestamps of an earlier one again.
    TimestampReused,
    /// KVell: a cell is written while a write of it is in flight.
    TwoWritesOfCell,
    /// KVell: of the keys that begin alike, the first is taken for the one looked for.
    TieGroupFirstOnly,
    /// KVell: an extent gets items that recovery does not read, as the superblock tells an earlier end.
    ExtentBehindTheEnd,
    /// KVell: the checksum of the body of an item is not compared.
    ItemChecksumIgnored,
    /// KVell: a sync returns before what was written is durable.
    SyncNotAwaited,
    /// KVell: a recovery takes the head of a large value for whole though a part is missing.
    PartIgnored,
}

impl Bug {
    /// Whether this bug is one of the replicated store: no single store has the code.
    pub const fn is_of_cluster(self) -> bool {
        self as u8 >= Self::RemovedMemberCounted as u8 && !self.is_of_kvell()
    }

    /// Whether this bug is one of the engine KVell.
    pub const fn is_of_kvell(self) -> bool {
        self as u8 >= Self::AckBeforeFlush as u8
    }
}

#[cfg(feature = "planted")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Bug;

    const NONE: u8 = u8::MAX;
    static PLANTED: AtomicU8 = AtomicU8::new(NONE);

    impl Bug {
        /// Switches this bug on for the whole process, instead of any other.
        pub fn plant(self) {
            PLANTED.store(self as u8, Ordering::SeqCst);
        }

        /// Switches all bugs off.
        pub fn pull_out() {
            PLANTED.store(NONE, Ordering::SeqCst);
        }

        /// Whether this bug is switched on.
        pub fn is_planted(self) -> bool {
            PLANTED.load(Ordering::Relaxed) == self as u8
        }
    }
}

#[cfg(not(feature = "planted"))]
impl Bug {
    /// Whether this bug is switched on: never, without the feature `planted`.
    #[inline(always)]
    pub const fn is_planted(self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is done with the bug `GapNotCut` planted or not.
    fn done() -> (u8, Option<u8>) {
        let shadowed = 1;
        planted!(GapNotCut => let shadowed = 2);
        let returned = || {
            planted!(GapNotCut => return None);
            Some(1)
        };
        (shadowed, returned())
    }

    #[test]
    fn a_bug_that_is_not_planted_changes_nothing() {
        assert_eq!(done(), (1, Some(1)));
        #[cfg(feature = "planted")]
        {
            Bug::GapNotCut.plant();
            let with_bug = done();
            Bug::pull_out();
            assert_eq!(with_bug, (2, None));
        }
    }

    #[test]
    fn every_bug_says_what_it_does() {
        assert!(Bug::ALL.len() >= 20);
        for bug in Bug::ALL {
            assert!(bug.told().ends_with('.'), "{bug:?}");
        }
    }
}
