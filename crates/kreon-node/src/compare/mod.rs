//! Whether the copies of a group hold the same, found out while writes go on.
//!
//! Copies are equal where something lies: in pages in use, and in the log up to what is durable everywhere. Both are
//! digested by blocks, at the primary and at each copy of the set. A block that differs may be on its way: it is looked at
//! again until it is equal, or has stood still on both sides for so long that nobody writes it any more. Free pages, and the
//! log behind its end, hold whatever was there before; neither is compared.

mod blocks;
mod copy;
mod judge;
mod places;

pub use blocks::digests;
pub use copy::Copy;
pub use judge::compare;
