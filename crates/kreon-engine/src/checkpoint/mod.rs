//! Checkpoints: making a state durable (`Kreon 3.4`, `Tucana 2.2.3`).
//!
//! The steps of a checkpoint, each after the completion of the one before:
//! 1. make the log durable up to the new marker, and write all dirty tree pages;
//! 2. write bitmap blocks and catalogue to pages that the durable state does not use;
//! 3. flush;
//! 4. write the superblock slot of the new epoch and flush: the new state is durable;
//! 5. mirror the superblock into the other slots.
//!
//! A crash before the end of step 4 leaves the old or the new state, whole.

pub mod catalogue;
pub mod commit;
pub mod kept_log;
pub mod regions;

pub use commit::{Change, commit};
