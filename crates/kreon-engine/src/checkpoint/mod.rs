//! Checkpoints: making a state durable (`Kreon 3.4`, `Tucana 2.2.3`).
//!
//! Order of a checkpoint, each step after the completion of the one before:
//! 1. the log up to the new marker and all dirty tree pages are written,
//! 2. bitmap blocks and the catalogue are written to places that the durable state does not use,
//! 3. flush,
//! 4. the superblock slot of the new epoch is written, flush: the new state counts,
//! 5. the slot is mirrored into the others.
//!
//! A crash before the end of step 4 leaves the old state, whole.

pub mod catalogue;
pub mod commit;
pub mod regions;

pub use commit::{Change, commit};
