//! Verification of an open store: all extents are read again, beside running requests, and compared with what the
//! partitions know.
//!
//! What is read without a lock may be half of a write that is under way, or older than what a partition knows by the time
//! it is asked. So nothing is told after one look: a slot in doubt is read again by itself, and counts as damaged if
//! nothing of its cell was under way before and after that read and the partition has changed nothing in between, or after
//! many such looks.
//!
//! From the ground:
//!
//! - `report`: what was read and found
//! - `volume`: what is verified
//! - `reads`: reads at depth
//! - `judge`: what a slot holds, and whether the partition knows it
//! - `judged`: which slots were looked at
//! - `doubts`: second looks
//! - `superblocks`, `extents`, `entries`: the passes

mod doubts;
mod entries;
mod extents;
mod judge;
mod judged;
mod reads;
mod report;
mod superblocks;
mod volume;

use kreon_base::Result;

pub use report::{Damage, VerifyReport};
pub use volume::{Partitions, Volume};

use doubts::Doubts;
use reads::Reads;

/// Reads everything and checks it: the superblocks; of each extent its header, and that each slot is free or has an item
/// that its partition knows; that each entry of an index leads to a whole item of its key.
///
/// # Errors
/// `Poisoned`: a partition was broken off.
pub fn verify(volume: &Volume<'_>) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    superblocks::verify(volume, &mut report);
    let mut reads = Reads::new(volume);
    let mut doubts = Doubts::default();
    extents::verify(volume, &mut reads, &mut doubts, &mut report)?;
    // Entries tell keys, so they are first; what nothing leads to is left for the end.
    entries::verify(volume, &mut reads, &mut doubts, &mut report)?;
    doubts.settle(volume, &mut reads, &mut report)?;
    report.damage.sort_by_key(|damage| damage.offset);
    Ok(report)
}
