//! Every number by which the control of space and pace is tuned, in one table: the space plan, garbage collection,
//! reorganisation, and the throttle of writers.
//!
//! Each entry tells what the number sets, its unit, and what happens when it grows or shrinks. None is recorded on the
//! device, so a change takes effect at the next opening. What each part earns:
//! `docs/decisions/014-ablation-of-space-control.md`. Numbers that follow from a format, a type or a buffer stand beside
//! the code that depends on them; those of the allocator stand in `kreon-volume`.

use std::time::Duration;

// The estimate of live bytes.

/// What an entry of a leaf takes that points into the log. Unit: bytes, a mean. Larger: fewer bytes in leaves count as
/// live, so the store takes less space. Smaller: more.
pub const ENTRY_BYTES: u64 = 48;

/// What an entry of a leaf with its value takes beside both: slot, tag, lengths. Unit: bytes, a mean. Larger: fewer
/// bytes in leaves count as live. Smaller: more.
pub const INLINE_OVERHEAD_BYTES: u64 = 5;

/// What a record of the log takes beside key and value: its header, and what aligns it. Unit: bytes, a mean. Larger:
/// fewer bytes of the log count as live. Smaller: more.
pub const RECORD_OVERHEAD_BYTES: u64 = 20;

// The space plan.

/// Log that is written until a spill frees space, over what is written until that spill starts: the rest comes beside
/// it. Larger: more space is left for what comes beside spills, so collection cleans more. Smaller: writers sleep
/// during spills.
pub const BESIDE_SPILL: f64 = 1.25;

/// Collection aims at the planned space less this share of what comes until a spill has freed some: copies take space
/// before their originals are free. Larger: less space than planned, for more copies. Smaller: the space exceeds the
/// plan just before spills end.
pub const TRANSIENT_BELOW_TARGET: f64 = 0.5;

/// Writers sleep when the room that collection aims at is exceeded by more than this share of what comes until a spill has
/// freed some; the goal lies [`TRANSIENT_BELOW_TARGET`] below the target. Larger: writers sleep later, and the space
/// exceeds the plan just before spills end. Smaller: they sleep although collection would have caught up.
pub const TRANSIENT_BEFORE_SLEEP: f64 = 0.25;

/// Segments that are always there: those that the log and the stream of moved records are in and have taken ahead, and
/// spare ones. Unit: segments. Larger: a small store takes more space. Smaller: it cleans more.
pub const FIXED_SEGMENTS: u64 = 6;

/// Segments that stay below the target. Unit: segments. Larger: less space, more copies. Smaller: a roll of the log
/// exceeds the target for a moment.
pub const TARGET_SPARE_SEGMENTS: u64 = 2;

/// Where the target costs more than the store may write, the log may hide this many times the nodes between two spills
/// at a limit of 3 bytes per byte, and by the square of the limit less at a higher one. A factor without a unit.
/// Larger: rarer spills and more space of small stores. Smaller: small stores write their nodes all the time.
pub const HIDDEN_NODES_IF_DEAR: f64 = 4.0;

/// The most of it. Unit: bytes. Larger: the same for larger stores. Smaller: the opposite.
pub const HIDDEN_IF_DEAR_BYTES_MAX: u64 = 128 << 20;

/// The least that may be hidden between two planned spills. A share of the live bytes. Larger: more space of large
/// stores with a tight target. Smaller: spills all the time.
pub const HIDDEN_SHARE_MIN: f64 = 1e-3;

/// The most that may be hidden between two planned spills, in a large space. A share of the live bytes. Larger:
/// collection begins long before the space is taken. Smaller: more spills of small stores.
pub const HIDDEN_SHARE_MAX: f64 = 0.7;

// The estimate of dead bytes that L0' hides.

/// One key is judged for so many bytes of the log: 32 for the smallest bound on what may be hidden. A lookup in the
/// trees takes 1 to 2 us. Unit: bytes. Larger: a rougher estimate. Smaller: more lookups by writers.
pub const SAMPLE_BYTES: u64 = 128 << 10;

/// With so many samples their dead share is taken for that of all unspilled bytes. Unit: samples. Larger: the share of
/// the time before is used for longer. Smaller: a rougher estimate.
pub const SAMPLES_MIN: u64 = 8;

/// The next look at the samples comes when the bound on hidden bytes divided by this may have been added. A divisor
/// without a unit. Larger: more looks. Smaller: L0' is frozen late.
pub const LOOKS_PER_BOUND: u64 = 8;

// Garbage collection.

/// A victim has at least this dead share, divided by the planned log cost. A share; below a half, or writers sleep
/// before anything is a victim. Larger: nothing is collected for a while, then much at once. Smaller: dearer copies.
pub const DEAD_SHARE_PER_COST: f64 = 0.3;

/// The least dead share of a victim for a put that found no space: whatever frees a page. A share. Larger: a full
/// volume refuses data that would fit. Smaller: longer waits for nothing.
pub const DEAD_SHARE_URGENT: f64 = 0.005;

/// The least dead share of a victim of a compaction. A share. Larger: a compacted store takes more space. Smaller:
/// more copies for less.
pub const DEAD_SHARE_COMPACTION: f64 = 0.04;

/// What collection emptied is spilled when L0' hides this share of what it may, if room is short. Larger: longer sleeps of
/// writers. Smaller: spills that write nodes for little.
pub const EARLY_SPILL_HIDDEN: f64 = 0.75;

/// Segments of one round in the background. Unit: segments. Larger: keys share leaves, and fewer lookups are needed.
/// Smaller: what a spill freed is taken back sooner.
pub const VICTIMS_LAZY: usize = 3;

/// Segments of one round for a put that found no space, and of one round of a compaction. Unit: segments. Larger:
/// fewer rounds. Smaller: space is found sooner.
pub const VICTIMS_URGENT: usize = 16;

/// A compaction spills its copies when they are so many bytes, and the share of the live bytes below. Unit: bytes.
/// Larger: its old segments are free later. Smaller: it writes more nodes.
pub const COMPACTION_UNSPILLED_BYTES: u64 = 32 << 20;

/// Copies of a compaction that wait for a spill, at the least: the live bytes divided by this. A divisor without a
/// unit. Larger: more nodes are written for large stores. Smaller: more space during the compaction.
pub const COMPACTION_UNSPILLED_SHARE: u64 = 16;

// Reorganisation: values that scans read are laid together, and the store may exceed its target for that.

/// Copies come more often than this while scans want values laid together; afterwards the excess is paid back. Larger:
/// the space is taken for longer. Smaller: a pause of the scans makes collection copy what they ask for next.
pub const EXCESS_REST: Duration = Duration::from_secs(10);

/// The excess is paid back over this time. Larger: the space is taken for longer. Smaller: more collection at a time,
/// for which writers sleep.
pub const EXCESS_PAYBACK: Duration = Duration::from_secs(30);

/// Copies below the excess divided by this are no reason to keep it. A divisor without a unit. Larger: a few scans
/// keep the excess. Smaller: it is paid back while scans still want it.
pub const EXCESS_FEW_SHARE: u64 = 32;

/// Segments with this share of dead bytes are collected in spite of the excess: nine bytes become free for each one
/// copied. A share. Larger: more space is taken. Smaller: values are copied twice.
pub const EXCESS_DEAD_SHARE: f64 = 0.9;

/// The live bytes divided by this vary with spills and are no reason to collect. A divisor without a unit. Larger:
/// collection takes back what reorganisation needs next. Smaller: more space is taken.
pub const EXCESS_SLACK_SHARE: u64 = 8;

/// At the limit, room is made for the live bytes divided by this. A divisor without a unit. Larger: more and shorter
/// pauses of reorganisation. Smaller: fewer and longer ones.
pub const EXCESS_ROOM_SHARE: u64 = 16;

/// What the store takes divided by this stays free on its volume and file system, for other writers. A divisor without
/// a unit. Larger: fewer values are laid together on a nearly full disk. Smaller: other writers have less room there.
pub const EXCESS_FREE_SHARE: u64 = 8;

// Values that are laid together while nobody writes.

/// What was written beyond that is remembered up to the live bytes divided by this. A divisor without a unit. Larger: a
/// phase of dear overwrites is forgotten sooner. Smaller: what is loaded after it stays scattered.
pub const IDLE_DEBT_SHARE: u64 = 2;

/// Another pass over all keys begins when the live bytes of the log divided by this were given since the one before. A
/// divisor without a unit. Larger: more passes, each of which reads all leaves. Smaller: new values stay scattered for
/// longer.
pub const IDLE_AGAIN_SHARE: u64 = 16;

/// The values of a leaf are moved if that spares a scan of it a read for so many of them. Unit: records. Larger: values
/// that nearly lie together are written once more. Smaller: they stay as they are.
pub const IDLE_RECORDS_PER_READ: usize = 8;

/// Bytes of one round in idle time. Unit: bytes. Larger: a writer meets more of it. Smaller: fewer reads at a time.
pub const IDLE_ROUND_BYTES: u64 = 2 << 20;

/// The same while others read. Larger: those wait behind more reads. Smaller: more half-filled pages.
pub const IDLE_ROUND_BYTES_BESIDE_READERS: u64 = 256 << 10;

/// The share of the time that rounds take while others read. Larger: slower reads meanwhile. Smaller: their values are
/// laid together later.
pub const IDLE_SHARE_BESIDE_READERS: f64 = 0.3;

/// A pause between two rounds, in which others show that they read. Larger: more time for nothing. Smaller: readers are
/// overlooked.
pub const IDLE_LOOK: Duration = Duration::from_millis(2);

// The throttle of writers.

/// Writers look at the space when the log crosses a border of this. Unit: bytes. Larger: the throttle reacts later.
/// Smaller: more looks, about 1 us each.
pub const SPACE_LOOK_BYTES: u64 = 256 << 10;

/// The longest sleep for each KiB written: 4 MB/s for each writer. Larger: the store keeps closer to its target. Smaller:
/// shorter waits, and more space when collection cannot follow.
pub const SPACE_SLEEP_PER_KIB: Duration = Duration::from_micros(250);

/// A writer sleeps for scarce space when it owes this. Larger: fewer and longer sleeps. Smaller: sleeps that are shorter
/// than the system's least one, some 60 us.
pub const SPACE_SLEEP_MIN: Duration = Duration::from_micros(100);

/// The longest sleep for scarce space of a writer that sleeps often. Larger: longer waits of those who write long values.
/// Smaller: more sleeps.
pub const SPACE_SLEEP_MAX: Duration = Duration::from_millis(1);

/// The sleep of a writer that sleeps seldom: about a turn of the scheduler, which waits for a processor are as long as
/// anyway. Larger: the rarest latencies grow. Smaller: more writes sleep.
pub const SPACE_SLEEP_LONG: Duration = Duration::from_millis(3);

/// Writers sleep seldom if they owe a long sleep after more writes than this on average. A count. Larger: more writers
/// sleep often and briefly. Smaller: long sleeps show in their 99.9th percentile.
pub const WRITES_PER_LONG_SLEEP: u32 = 500;

/// That average is over about so many looks at the space, for which see [`SPACE_LOOK_BYTES`]. Larger: a lasting change is
/// noticed later. Smaller: so is a moment's.
pub const LOOKS_OF_MEAN: u64 = 512;

/// L0' grows by this from one look at the pace to the next: some 60 entries. Unit: bytes. Larger: the throttle reacts
/// later. Smaller: more looks.
pub const PACE_LOOK_BYTES: u64 = 4 << 10;

/// Nobody sleeps while the fill of L0' is below this share of the spill's progress: what remains is for the commit.
/// Larger: L0' fills before the commit ends. Smaller: writers sleep early on.
pub const PACE_FREE_PROGRESS: f64 = 0.75;

/// The share of L0' that is left for what the estimate of the time misses. Larger: slower writers. Smaller: writers
/// stop at a full L0' more often.
pub const PACE_SPARE_SHARE: f64 = 0.05;

/// Before this progress the time of the merge is taken from the last spill. A share. Larger: a slower spill is noticed
/// later. Smaller: a rough estimate is used.
pub const PACE_PROGRESS_MIN: f64 = 0.05;

/// Writers that are less than this ahead of the pace do not wait. Larger: fewer and longer sleeps. Smaller: sleeps
/// that cost more than they slow down.
pub const PACE_AHEAD_MIN: Duration = Duration::from_micros(100);

/// The longest sleep for the pace. Larger: longer waits. Smaller: more sleeps.
pub const PACE_SLEEP_MAX: Duration = Duration::from_millis(1);

/// The line of the pace is drawn anew after this time, from where L0' stands then. Larger: a change of the rate takes
/// effect later. Smaller: writers that were slow have less credit.
pub const PACE_LINE_MAX: Duration = Duration::from_millis(5);
