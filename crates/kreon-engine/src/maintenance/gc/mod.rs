//! Garbage collection of the value log (`Kreon 3.2.5`): live records leave segments that are mostly dead.
//!
//! - [`victims`]: choice of the segments
//! - [`candidates`]: their records, or those that reorganisation moves
//! - [`judge`](mod@judge): which of the candidates a tree points at
//! - [`copy`](mod@copy): into the stream of moved records
//! - [`moving`]: judges, copies and inserts candidates; also for reorganisation
//! - [`insert`]: the new places into L0' by compare and swap
//! - [`round`]: some segments from the choice to the last inserted entry
//! - [`work`]: lazy collection in the background, urgent collection for a put that found no space
//! - [`whole`]: collection of everything, for a compaction
//! - [`state`]: its state between rounds; [`stats`]: its figures

pub mod candidates;
pub mod copy;
mod insert;
pub mod judge;
mod moving;
mod round;
mod state;
mod stats;
pub mod victims;
mod whole;
mod work;

pub use state::Gc;
pub use stats::CollectionStats;
