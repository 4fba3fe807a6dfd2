//! The value log: append-only home of keys and values, and the redo log (`Kreon 3.2`). Floor 4.
//!
//! A log is an endless stream of records cut into segments of 2 MiB. An LSN is a position in that
//! stream, so one reservation of bytes yields both the place and the order of a record.
//!
//! - `log`: the open log, which owns the parts below; `resume`: the segment that it goes on in
//! - `record`: what a writer hands in, and what it gets back; `home`: device, space, settings
//! - `cut`: how records are cut into fragments at the ends of segments
//! - `segments`: which segment stands where in the log
//! - `buffered`, `buffers`: segments in memory, their reuse
//! - `positions`: how far the log is written and durable; `poison`: the end of all writing
//! - `append`, `spanning`: units into buffers; long ones; `framing`: fragments and pads into reservations
//! - `supply`, `roll`: segments that are reserved; opening the next one; `own_segments`: all that the log has
//! - `calls`, `write_out`: which blocks a call writes; buffers to the device; `zeroes`: zeroes ahead of small flushes
//! - `output`, `throttle`: when to write; how fast writers may be meanwhile
//! - `group_commit`, `commit_group`: one flush for all that wait, and for whom it waits
//! - `waiters`, `durable_wait`: threads and tasks that wait for it; `sync_load`: how much they wait, and which
//!   segments that wants prepared
//! - `reader`, `read`, `take_value`: fragments and records from buffers and from the `pages` of the mapping
//! - `resident`: records in frames, without a look at buffers
//! - `keys_of_segment`: headers and keys of a segment's records, for garbage collection
//! - `device_reads`: fragments of a segment, and those of a record, straight from the device
//! - `mirror`: who else holds the log; `tap`: committed bytes for it; `landing`: which units it has
//! - `moved_record`, `moved`: records that garbage collection moves, in segments of their own
//! - `feed`: the durable units of the open log, straight from the device
//! - `history`: a log that is not open: where it ends and which run wrote what; `checkpointed`: what a checkpoint records
//!   of an open one
//! - `replay`: the log after a crash
//! - `pause`: waiting for a thread that copies

#![forbid(unsafe_code)]

mod append;
mod buffered;
mod buffers;
mod calls;
mod checkpointed;
mod commit_group;
mod cut;
mod device_reads;
mod durable_wait;
mod feed;
mod framing;
mod group_commit;
mod history;
mod home;
mod keys_of_segment;
mod landing;
mod log;
mod mirror;
#[cfg(all(test, shuttle))]
mod models;
mod moved;
mod moved_record;
mod output;
mod own_segments;
mod pages;
mod pause;
mod poison;
mod positions;
mod read;
mod reader;
mod reading;
mod record;
pub mod replay;
mod resident;
mod resume;
mod roll;
mod segments;
mod spanning;
mod supply;
mod sync_load;
mod take_value;
mod tap;
mod throttle;
mod waiters;
mod write_out;
mod zeroes;

#[cfg(test)]
mod tests;

pub use cut::{Pieces, SEGMENT, WHOLE_UNIT_BYTES_MAX};
pub use durable_wait::DurableWait;
pub use feed::{Borders, LogFeed, not_kept};
pub use history::{LOG_START, LogHistory};
pub use home::{LogHome, LogOptions, LogSpace, TakenSegment};
pub use log::Log;
pub use mirror::LogMirror;
pub use moved::{MOVED_LOG, MovedStream};
pub use moved_record::MovedRecord;
pub use pages::{LogPages, ResidentPages, WrittenPages};
pub use pause::Pause;
pub use poison::{Poison, closed, read_only};
pub use read::ValueAt;
pub use reader::LogReader;
pub use record::{NewRecord, Place};
pub use replay::{
    Found, ReplayEnd, ReplayRecord, ReplayStart, Units, check as check_replay, replay,
};
pub use sync_load::SegmentDemand;
pub use take_value::{Fill, Own, Show, TakeValue};
pub use tap::{LogRun, LogTap};
