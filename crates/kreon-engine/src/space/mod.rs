//! The space plan: how much space the store takes, how much it should take, and what that means for writers, spills and
//! collection. It decides only: it moves and frees nothing itself.
//!
//! - [`control`]: its state
//! - [`accounting`]: used and live bytes, and the room that is left
//! - [`plan`]: the division of the space, and its price in bytes written per byte; pure functions
//! - [`demand`]: whether collection must move records, a spill must free some, or writers must sleep; pure functions
//! - [`victim`]: a segment that collection can empty
//! - [`snapshot`]: figures that writers read without a lock of the allocator
//! - [`garbage`], [`freezing`]: an estimate of the dead bytes that no spill has counted; whether they call for a spill
//! - [`excess`], [`reorganisation`]: space beyond the plan while values are laid together for scans
//! - [`write_budget`]: how many bytes copies in idle time may cost; pure functions
//! - [`pacing`]: throttles writers when space is scarce, and wakes collection
//! - [`reserve`]: pages that stay free for spills and merges

mod accounting;
mod control;
mod demand;
mod excess;
mod freezing;
mod garbage;
mod pacing;
mod plan;
mod reorganisation;
mod reserve;
mod snapshot;
mod victim;
mod write_budget;

pub use accounting::SpaceUse;
pub use control::Space;
pub use demand::Need;
pub use victim::Victim;
pub use write_budget::{Flow, WriteBudget};
