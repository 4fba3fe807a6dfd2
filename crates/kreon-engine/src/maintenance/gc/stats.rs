//! Figures of garbage collection.

use kreon_base::SEGMENT_BYTES;

use super::state::Gc;
use crate::checkpoint::catalogue::MAIN_LOG;
use crate::space::Victim;
use kreon_log::MOVED_LOG;

/// Garbage collection since the store was opened, and the space now.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CollectionStats {
    /// Bytes of the device that the store has blocks for, in use or kept ready, in all.
    pub taken_bytes: u64,
    /// Bytes of the keys and values that a spill has taken and nothing has replaced, in the log and in leaves; an
    /// estimate from the number of entries and what log and leaves take, within about a tenth.
    pub live_bytes: u64,
    /// [`taken_bytes`](Self::taken_bytes) for each of [`live_bytes`](Self::live_bytes); none: nothing is live.
    pub space_amplification: Option<f64>,
    /// The same as planned: by the option, or as much more as it takes to cost no more than the store may. None: nothing
    /// is live.
    pub space_planned: Option<f64>,
    /// Bytes that overwriting then costs for each byte given, values and index together. None: nothing is live.
    pub cost_planned: Option<f64>,
    /// Segments of the log, in bytes.
    pub log_bytes: u64,
    /// Segments of moved records, in bytes.
    pub moved_bytes: u64,
    /// Bytes of both that no tree points at, unspilled ones left out.
    pub dead_bytes: u64,
    /// Rounds of work.
    pub rounds: u64,
    /// Segments that were emptied, or tried to.
    pub victims: u64,
    /// Records that were copied and take the place of the old ones.
    pub records_moved: u64,
    /// Records that were copied for nothing: their keys were written meanwhile.
    pub records_skipped: u64,
    /// Bytes of the log that moved records take.
    pub bytes_copied: u64,
    /// Bytes of segments of both that were freed.
    pub bytes_freed: u64,
    /// Time that it took.
    pub seconds: f64,
}

impl Gc {
    pub fn collection_stats(&self) -> CollectionStats {
        let (space, plan) = (self.on.space.space_use(), self.on.space.plan());
        let is_live = space.live_bytes > 0;
        let sealed = self.on.space.sealed_segments();
        let allocator = self.on.storage.allocator.lock();
        let bytes = |log| allocator.log_segments(log).len() as u64 * SEGMENT_BYTES;
        CollectionStats {
            taken_bytes: space.used_bytes,
            live_bytes: space.live_bytes,
            space_amplification: space.amplification(),
            space_planned: is_live.then_some(plan.target),
            cost_planned: is_live.then_some(plan.cost),
            log_bytes: bytes(MAIN_LOG),
            moved_bytes: bytes(MOVED_LOG),
            dead_bytes: sealed.iter().map(Victim::dead_bytes).sum(),
            bytes_freed: self.on.versions.segments_freed() * SEGMENT_BYTES,
            ..self.done()
        }
    }
}
