//! The value log: append-only home of keys and values, and the redo log (`Kreon 3.2`).
//!
//! A log is an endless stream of records cut into segments of 2 MiB. An LSN is a position in that
//! stream, so one reservation of bytes yields both the place and the order of a record.
//!
//! - [`record`]: what a writer hands in, and what it gets back
//! - [`cut`]: how records are cut into fragments at the ends of segments
//! - [`segments`]: which segment stands where in the log
//! - [`buffers`]: segments in memory, their reuse
//! - [`history`]: a log that is not open: where it ends and which run wrote what
//! - [`open`]: the open log
//! - [`append`], [`spanning`], [`roll`]: units into buffers; long ones; the next segment
//! - [`write_out`], [`background`]: buffers to the device; [`backlog`]: how fast writers may be meanwhile
//! - [`zeroes`]: zeroes ahead of small flushes
//! - [`group_commit`], [`crowd`]: one flush for all who wait
//! - [`waiters`], [`durable`]: threads and tasks that wait for it; [`steady`]: whether they do so all the time
//! - [`fragments`], [`read`]: records from buffers and from the device
//! - [`moved`]: records that were moved, in segments of their own
//! - [`fragments_of`]: the fragments of a segment, and those of a record, straight from the device
//! - [`residence`]: where the bytes of a record are
//! - [`mod@replay`]: the log after a crash
//! - [`pause`], [`bell`], [`poison`]: waiting for a copying thread, for work; the end of all writing

mod append;
mod background;
mod backlog;
mod bell;
mod buffers;
mod crowd;
mod cut;
mod durable;
mod fragments;
mod fragments_of;
mod group_commit;
mod history;
#[cfg(all(test, shuttle))]
mod models;
mod moved;
mod open;
mod pause;
mod poison;
mod read;
mod record;
pub mod replay;
mod residence;
mod roll;
mod segments;
mod spanning;
mod steady;
mod waiters;
mod write_out;
mod zeroes;

#[cfg(test)]
mod tests;

pub(crate) use append::WHOLE_UNIT_BYTES_MAX;
pub(crate) use cut::{Pieces, SEGMENT};
pub use durable::DurableWait;
pub(crate) use history::LOG_START;
pub use history::LogHistory;
pub use moved::{MOVED_LOG, MovedRecord, MovedStream};
pub use open::{Log, LogHome, LogOptions, LogSpace, TakenSegment};
pub use pause::Pause;
pub(crate) use poison::closed;
pub use read::{Fill, LogPages, Own, Show, TakeValue, ValueAt};
pub use record::{NewRecord, Place};
pub(crate) use replay::{Found, Units};
pub use replay::{ReplayEnd, ReplayRecord, ReplayStart, check as check_replay, replay};
pub use steady::Stock;
