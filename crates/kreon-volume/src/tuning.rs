//! Every number by which the control of space is tuned, in one table.
//!
//! Each entry tells what the number sets, its unit, and what happens when it grows or shrinks. None of them is recorded
//! on the device, so a change takes effect at the next opening. *Bound* marks numbers that follow from the worst case
//! of a spill: a smaller one can strand a full volume that cannot spill any more.
//!
//! Numbers that follow from a format stand beside the code that depends on them.

// Growth and backing of segments.

/// A file grows by its number of segments divided by this. A divisor without a unit.
/// Larger: more calls that extend the file. Smaller: a longer sparse file.
pub const GROW_SHARE: u32 = 4;

/// The least that a file grows by. Unit: segments.
/// Larger: a longer sparse file for a small store. Smaller: more calls that extend the file.
pub const GROW_SEGMENTS_MIN: u32 = 4;

/// The most that a file grows by. Unit: segments (64 MiB of address space).
/// Larger: fewer calls that extend a large file. Smaller: more of them.
pub const GROW_SEGMENTS_MAX: u32 = 32;

/// One call backs up to the segments in use divided by this. A divisor without a unit.
/// Larger: more calls, shorter ones. Smaller: a small store takes more blocks ahead of its data.
pub const BACKED_RUN_SHARE: u32 = 8;

/// The most neighbours that one call backs. Unit: segments. The file system stops all transfers to a file during the
/// call.
/// Larger: fewer and longer stops. Smaller: more and shorter stops.
pub const BACKED_RUN_SEGMENTS_MAX: u32 = 16;

/// Backed free segments beyond the reserve that a trim keeps, at the least. Unit: segments.
/// Larger: more idle blocks. Smaller: segments that become free are unbacked and backed again soon after.
pub const SPARE_SEGMENTS_MIN: u32 = 2;

/// Free segments with doubtful blocks of an earlier run that one trim gives back. Unit: segments.
/// Larger: that space returns sooner, and one trim takes longer. Smaller: the opposite.
pub const DOUBTFUL_SEGMENTS_AT_ONCE: usize = 64;

// Where pages go.

/// A run of free pages that is as good as a whole segment. Unit: pages (256 KiB: writes of that size run at the full
/// rate of the device).
/// Larger: new segments are opened although others have gaps, so the store takes more space. Smaller: the writes of a
/// spill become shorter.
pub const RUN_PAGES_ENOUGH: u64 = 64;

/// Pages that a writer of nodes takes at a time. Unit: pages (2 MiB of leaves under one lock).
/// Larger than a segment: no effect. Smaller: more waits for the lock, and shorter runs.
pub const WRITER_RUN_PAGES: u64 = 512;

// The reserve for spills, deletions and checkpoints.

/// Pages in reserve for each entry of an L0: its leaf, a small neighbour of the leaf and an index node. Unit: pages.
/// Bound. Larger: a full volume refuses new data earlier.
pub const PAGES_PER_ENTRY: u64 = 3;

/// A page of new leaves takes the entries of at least so many bytes of the log. Unit: bytes.
/// Larger: a smaller reserve. Bound from above. Smaller: new data is refused earlier.
pub const LOG_BYTES_PER_LEAF: u64 = 3 << 10;

/// Pages for the catalogue and for other maintenance, for each segment in use. Unit: pages.
/// Larger: a full volume refuses new data earlier. Smaller: a checkpoint may lack pages on a full volume.
pub const FIXED_PAGES_PER_SEGMENT: u64 = 64;

/// The least of these pages. Unit: pages. Matters for small stores, in the same way.
pub const FIXED_PAGES_MIN: u64 = 96;

/// The most of these pages. Unit: pages. Matters for large stores, in the same way.
pub const FIXED_PAGES_MAX: u64 = 2048;

/// The reserve is never less than the segments in use divided by this. A divisor without a unit.
/// Larger: a smaller reserve for stores with few entries in L0. Smaller: new data is refused earlier.
pub const LEAST_RESERVE_SHARE: u32 = 6;

/// The lower bound of that least reserve. Unit: segments. Larger: a small store takes more space.
/// Smaller: less room for the deletions that empty a full small store.
pub const LEAST_RESERVE_SEGMENTS_MIN: u32 = 2;

/// The upper bound of that least reserve. Unit: segments. Larger: more of a large volume stays unused.
/// Smaller: less room for garbage collection on a full volume.
pub const LEAST_RESERVE_SEGMENTS_MAX: u32 = 5;

/// Deletions leave the reserve divided by this alone. A divisor without a unit.
/// Larger: more deletions fit into a full volume, and less is left for their spill. Smaller: the opposite.
pub const DELETION_SHARE: u32 = 2;

/// Segments of the reserve that garbage collection may fill. Unit: segments. With one more it can free any segment that
/// is not full of live records.
/// Larger: collection advances further on a full volume, and the spill that frees its victims has less. Smaller:
/// collection on a full volume stalls earlier.
pub const COLLECTION_SEGMENTS: u32 = 3;

// Grants to the log.

/// The least that is granted to the log beside what it asks for, and the step of all grants. Unit: bytes; a multiple of
/// the device's block, to which the end of the log is padded.
/// Larger: fewer grants, each of which takes the lock. Smaller: the log of a full volume goes on a little longer.
pub const GRANT_BYTES_MIN: u32 = 16 << 10;

/// A grant is what L0s hold, in bytes of the log, divided by this, up to a segment. A divisor without a unit.
/// Larger: more grants. Smaller: more of the reserve is bound by bytes that the log has not written yet.
pub const GRANT_SHARE: u64 = 2;

/// The part of the first log segment that new data of a small store may fill; as much follows for deletions.
/// Unit: bytes. Larger: an almost empty store takes more space. Smaller: stores stop being small with less data.
pub const FRONT_BYTES: u32 = 256 << 10;

/// A store that is opened with more segments in use is not small: group head, log, and the next segment of the log.
/// Unit: segments. Larger: stores without the least reserve. Smaller: every store has it once it is reopened.
pub const SMALL_SEGMENTS: u32 = 3;

// Segments that are written ahead of the log.

/// The stock of written segments takes at most the room for new data divided by this. A divisor without a unit.
/// Larger: on a nearly full volume more flushes of the log must make blocks durable. Smaller: more blocks that new data
/// has to take back from the stock.
pub const WRITTEN_ROOM_SHARE: u64 = 8;
