//! The test of the tests: every bug that can be planted must be caught by the hunt that is meant for it, and without a
//! bug no hunt may catch anything.
//!
//! Each bug runs in a process of its own: some of them make the store hang or overflow the stack, and that is a
//! catch, too.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use kreon_base::Bug;

use crate::engines::Cut;
use crate::hang::{Activity, Patience};
use crate::kvell::Kvell;
use crate::tucana::Tucana;
use crate::{
    Counts, Extent, Sim, backups, damage, deleted_ranges, engines, faults, feeds, gaps, history,
    long_loads, members, metamorphic, mirror, overwrites, torn_tails,
};

/// What looks for a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Hunt {
    /// Power cuts of `sim`.
    Sim,
    /// Failing calls of `faults`.
    Faults,
    /// Changed bytes of `damage`.
    Damage,
    /// Concurrent clients of `history`.
    History,
    /// Settings of `metamorphic`.
    Metamorphic,
    /// Values that are overwritten until garbage collection has moved most of them.
    Overwrites,
    /// Torn tails of the log, and runs that write up to them.
    TornTails,
    /// Scans and puts among runs of deleted keys.
    Gaps,
    /// Cuts of a member that follows the primary of a group.
    Members,
    /// Packets of a stream, without a store.
    Followers,
    /// A backup whose stream ends at a packet.
    StreamCuts,
    /// Power cuts of a primary and its backup, and followers with more log than their primary.
    DoubleCuts,
    /// Members that join under writes.
    Joins,
    /// Backups that build on each other.
    Backups,
    /// Followers of the change feed.
    Feeds,
    /// Partitions of the engine KVell.
    Kvell,
    /// Changed sectors of volumes of KVell.
    KvellDamage,
    /// Concurrent clients of KVell.
    KvellHistory,
    /// Stores of Tucana.
    Tucana,
    /// Failing calls under stores of Tucana.
    TucanaFaults,
    /// Changed sectors of volumes of Tucana.
    TucanaDamage,
    /// Concurrent clients of Tucana.
    TucanaHistory,
    /// Loads of several segments.
    LongLoads,
    /// Puts beside deletions of ranges.
    DeletedRanges,
}

/// What `planted` does.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// Only these bugs, by name.
    #[arg(value_parser = bug)]
    bugs: Vec<Bug>,
    /// By every hunt, not just the one that is meant for the bug; then nothing must be caught.
    #[arg(long)]
    by_all: bool,
    /// A hunt ends, without a catch, after so many seconds.
    #[arg(long, default_value_t = 300)]
    seconds: u64,
}

/// What `hunt` does.
#[derive(clap::Args, Clone, Debug)]
pub struct HuntArguments {
    /// The bug; none: nothing may be caught.
    #[arg(long, value_parser = bug)]
    bug: Option<Bug>,
    /// Who hunts it.
    #[arg(long, value_enum)]
    by: Hunt,
    /// For how long.
    #[arg(long)]
    seconds: u64,
}

/// A process that does nothing for so long hangs: a catch. Its own watchdog sees most hangs before.
const IDLE_MAX: Duration = Duration::from_secs(120);

/// A process whose time is over and that works for so long nonetheless hangs, too: one step takes some seconds.
const BUSY_MAX: Duration = Duration::from_secs(300);

/// How much of a failure is told.
const SHOWN_CHARS: usize = 400;

/// How often a process is looked at.
const LOOK: Duration = Duration::from_millis(500);

impl Hunt {
    /// The hunt that is meant for `bug`.
    pub fn of(bug: Bug) -> Self {
        match bug {
            Bug::ItemChecksumIgnored => Self::KvellDamage,
            Bug::SyncNotAwaited => Self::KvellHistory,
            bug if bug.is_of_kvell() => Self::Kvell,
            Bug::CommitAfterFailure => Self::TucanaFaults,
            Bug::NodeEpochIgnored => Self::TucanaDamage,
            Bug::OlderLsnWins => Self::TucanaHistory,
            Bug::WrittenTwiceInEpoch
            | Bug::PageFreedBeforeCommit
            | Bug::FrozenModified
            | Bug::LogBehindTree
            | Bug::SuperblockBeforeCatalogue
            | Bug::SnapshotPagesReused => Self::Tucana,
            Bug::FlushRetried
            | Bug::WriteErrorSwallowed
            | Bug::NotPoisoned
            | Bug::UnfinishedCheckpointForgotten
            | Bug::StaleNodeBelieved => Self::Faults,
            Bug::SlotResealed
            | Bug::NodeChecksumIgnored
            | Bug::RecordChecksumIgnored
            | Bug::RecordAddressIgnored
            | Bug::DamageTakenForEnd
            | Bug::VerifySkipsRecords => Self::Damage,
            Bug::BatchSeenInPart
            | Bug::SnapshotWithoutGate
            | Bug::ReusedUnderReaders
            | Bug::ReadKeysNotChecked
            | Bug::ReadRangesNotChecked
            | Bug::WrittenKeysNotChecked
            | Bug::CommitInTwoSteps => Self::History,
            Bug::ScanStepRepeatsKey => Self::Metamorphic,
            Bug::GapNotCut => Self::Gaps,
            Bug::LoadNotKept => Self::LongLoads,
            Bug::DeletionNotAwaited => Self::DeletedRanges,
            Bug::BackupTakesGrownForWhole | Bug::BackupMissesSegment => Self::Backups,
            Bug::RelocationWithoutCompare
            | Bug::MovedSegmentFreedTooEarly
            | Bug::BufferOfEarlierUse
            | Bug::FrameOfEarlierUse
            | Bug::HalfPageAdmitted
            | Bug::MarksOfEarlierPage
            | Bug::LiveRecordNotedDead
            | Bug::DeadRecordsOfEarlierUse => Self::Overwrites,
            Bug::DurableUnclamped | Bug::ClaimUnclamped | Bug::BufferReusedBeforeLanding => {
                Self::Members
            }
            Bug::FeedShowsUndurable | Bug::UnfollowedRunForgotten => Self::Feeds,
            Bug::IncarnationKept => Self::TornTails,
            Bug::PageAfterItsLog | Bug::FlushAnsweredBeforeItsLog => Self::Followers,
            Bug::AcknowledgedBeforeReceipt
            | Bug::BackupFlushSkipped
            | Bug::DrainSkippedAtSeal
            | Bug::TapBeforeFirstCheckpoint => Self::StreamCuts,
            Bug::OlderSlotsRepairedAlone | Bug::BarrierNotAwaited => Self::DoubleCuts,
            Bug::SuperblockDuringResync
            | Bug::CopiedOverMirroredPage
            | Bug::BackedSegmentsLeftOut
            | Bug::AttachWithoutWaiting => Self::Joins,
            _ => Self::Sim,
        }
    }

    /// Hunts until something fails, or for `time`; what failed first.
    fn run(self, time: Duration) -> Option<String> {
        let started = Instant::now();
        let mut seed = 1;
        while let Some(left) = time.checked_sub(started.elapsed()) {
            let counts = self.step(seed, left);
            if counts.failed > 0 {
                return Some(counts.failures.first().cloned().unwrap_or_default());
            }
            seed += 101;
        }
        None
    }

    /// A part of the hunt that takes some seconds if nothing fails.
    fn step(self, seed: u64, left: Duration) -> Counts {
        let extent = |stride| Extent {
            stride,
            stops_at_first: true,
            ..Extent::default()
        };
        let coarse = |seed: u64| 9001 / (1 + seed as usize / 101);
        let some_seconds = left.min(Duration::from_secs(10));
        match self {
            Self::Sim => Sim {
                stops_at_failure: true,
                time_max: Some(left),
                ..Sim::new(2000, seed)
            }
            .run(),
            Self::Faults => faults(seed, extent(11)),
            // The sweep has no seed: finer every time.
            Self::Damage => damage(extent(97 / (seed as usize).min(97))),
            Self::History => history(some_seconds, seed),
            Self::Metamorphic => metamorphic(8, seed),
            Self::Overwrites => overwrites(seed),
            Self::TornTails => torn_tails(seed),
            Self::Gaps => gaps(seed),
            Self::Members => members(seed),
            Self::Followers => mirror::followers(seed),
            Self::StreamCuts => mirror::stream_cuts(seed, false),
            Self::DoubleCuts => {
                let mut counts = mirror::double_cuts(seed);
                counts.add(mirror::longer_logs(seed));
                counts
            }
            Self::Joins => mirror::joins(seed),
            Self::Backups => backups(seed),
            Self::Feeds => feeds(seed),
            Self::Kvell => Kvell::states(seed),
            // As `Damage`, but never so fine that a step takes minutes.
            Self::KvellDamage => engines::damage::damage::<Kvell>(extent(coarse(seed))),
            Self::KvellHistory => engines::history::history::<Kvell>(some_seconds, seed),
            Self::Tucana => Tucana::states(seed),
            Self::TucanaFaults => engines::faults::faults::<Tucana>(seed, extent(23)),
            Self::TucanaDamage => engines::damage::damage::<Tucana>(extent(coarse(seed))),
            Self::TucanaHistory => engines::history::history::<Tucana>(some_seconds, seed),
            Self::LongLoads => long_loads(seed),
            Self::DeletedRanges => deleted_ranges(),
        }
    }

    /// Runs as a process of its own with `bug`; how it was caught.
    fn catches(self, bug: Option<Bug>, seconds: u64) -> std::io::Result<Option<String>> {
        let mut command = Command::new(std::env::current_exe()?);
        let value = self.to_possible_value();
        command.args([
            "hunt",
            "--by",
            value.as_ref().map_or("sim", |value| value.get_name()),
        ]);
        command.args(["--seconds", &seconds.to_string()]);
        if let Some(bug) = bug {
            command.args(["--bug", &format!("{bug:?}")]);
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (started, mut looked) = (Instant::now(), Instant::now());
        let mut patience = Patience::new(IDLE_MAX, BUSY_MAX);
        while child.try_wait()?.is_none() {
            std::thread::sleep(Duration::from_millis(20));
            if looked.elapsed() < LOOK {
                continue;
            }
            let hang = patience.look(Activity::of(child.id()), looked.elapsed());
            looked = Instant::now();
            if let Some(hang) = hang {
                child.kill()?;
                child.wait()?;
                return Ok(Some(hang.to_string()));
            }
            if started.elapsed() < Duration::from_secs(seconds) {
                patience.excuse_work();
            }
        }
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let said = said.lines().next().unwrap_or_default().to_owned();
        Ok(match output.status.code() {
            Some(0) => None,
            Some(1) => Some(said),
            _ => Some(format!("{} {said}", output.status)),
        })
    }
}

/// The bug called `name`.
fn bug(name: &str) -> Result<Bug, String> {
    let named = |bug: &&Bug| format!("{bug:?}").eq_ignore_ascii_case(name);
    let found = Bug::ALL.iter().find(named);
    found
        .copied()
        .ok_or_else(|| format!("there are {:?}", Bug::ALL))
}

/// Runs every bug under its hunt and prints a line for each; then every hunt without a bug.
pub fn planted(arguments: &Arguments) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    let bugs = match arguments.bugs.as_slice() {
        [] => Bug::ALL,
        bugs => bugs,
    };
    for &bug in bugs.iter().filter(|bug| !bug.is_of_cluster()) {
        for &hunt in Hunt::value_variants() {
            if hunt == Hunt::of(bug) || arguments.by_all {
                let is_caught = tell(Some(bug), hunt, arguments.seconds);
                counts.count(if is_caught { "caught" } else { "not caught" });
                if !is_caught && !arguments.by_all {
                    counts.fail(format!("{bug:?} was not caught by {hunt:?}"));
                }
            }
        }
    }
    if arguments.bugs.is_empty() {
        for &hunt in Hunt::value_variants() {
            counts.count("without a bug");
            if tell(None, hunt, arguments.seconds.min(10)) {
                counts.fail(format!("{hunt:?} catches something without a bug"));
            }
        }
    }
    counts.elapsed = started.elapsed();
    counts
}

/// Hunts, and prints how it went.
fn tell(bug: Option<Bug>, hunt: Hunt, seconds: u64) -> bool {
    let begun = Instant::now();
    let caught = hunt
        .catches(bug, seconds)
        .unwrap_or_else(|error| Some(format!("the hunt did not start: {error}")));
    let name = bug.map_or("(none)".to_owned(), |bug| format!("{bug:?}"));
    let (hunt, took) = (format!("{hunt:?}"), begun.elapsed().as_secs_f64());
    let how = caught.as_deref().unwrap_or("nothing");
    println!("{name:<30} {hunt:<12} {took:>5.1} s  {how:.140}");
    caught.is_some()
}

/// The child's part. Prints the first failure in a line.
pub fn hunt(arguments: &HuntArguments) -> Counts {
    if let Some(bug) = arguments.bug {
        bug.plant();
    }
    let mut counts = Counts::default();
    if let Some(how) = arguments.by.run(Duration::from_secs(arguments.seconds)) {
        // Not all of it: nobody reads the pipe before this process ends, and it holds 64 KiB.
        let first = how.lines().next().unwrap_or_default();
        let first: String = first.chars().take(SHOWN_CHARS).collect();
        println!("{first}");
        counts.fail(first);
    }
    counts
}
