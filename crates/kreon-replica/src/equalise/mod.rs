//! Before a promotion: all members of the set get the same superblock in all slots and the same end of the log.
//!
//! - `slots`: the slots of one volume
//! - `followed`: where the log of a file ends that has followed a primary
//! - `gap`: the log that a member lacks
//! - `primary`: the store of the new primary, opened on what is equal now

mod followed;
mod gap;
mod primary;
mod slots;

pub use self::followed::examine;
pub use self::gap::{LogGap, ship_gap};
pub use self::primary::{Primary, Tapping};
pub use self::slots::{extent_of, repair_slots};
