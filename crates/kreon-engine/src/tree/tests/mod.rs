//! Tests of the tree against pages in memory and a model.
//!
//! - `memory`: pages, log keys, reads counted, faults
//! - `keys`, `random`: what the random tests draw from
//! - `model`: a tree beside what it must hold, with every merge checked in full
//! - the others: the tests

mod cursors;
mod faults;
mod filters;
mod keys;
mod memory;
mod merges;
mod model;
mod partial;
mod random;
mod readers;
mod versions;
mod walks;
