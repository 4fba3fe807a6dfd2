//! Garbage collection of the value log at work: when, how much, and how what was moved becomes visible.
//!
//! - [`state`]: what the collector remembers from one round to the next
//! - [`hidden`]: what is dead although no spill has told so yet
//! - [`plan`]: what of the space is for what, and what it costs
//! - [`space`]: how much there is, and how much of it should be
//! - [`stock`]: what of that is known without asking
//! - [`round`]: some segments from the choice to the last inserted entry
//! - [`moving`]: compare and swap; for others who want records moved, too
//! - [`whole`]: all that can be moved, because somebody asked for it
//! - [`work`]: the thread that collects, and writers without space
//! - [`stats`]: what it did

mod hidden;
mod moving;
mod plan;
mod round;
mod space;
mod state;
mod stats;
mod stock;
mod whole;
mod work;

pub use space::SpaceUse;
pub use state::Collector;
pub use stats::CollectionStats;
pub use work::is_full;
