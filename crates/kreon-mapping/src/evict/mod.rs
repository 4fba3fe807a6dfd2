//! Where frames come from: free frames, or frames of pages that are evicted.
//!
//! - `frames`: the supply of frames, and the room that pages, records and loans get of it
//! - `turns`: who evicts where
//! - `hunt`: one pass of eviction
//! - `table_room`: room in the page array
//! - `lent`: frames as plain memory
//! - `open`: how many frames callers may fill in place

mod frames;
mod hunt;
mod lent;
mod open;
mod table_room;
mod turns;

pub(crate) use frames::{EvictCounters, Frames};
pub use lent::LentFrames;
