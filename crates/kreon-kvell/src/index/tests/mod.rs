//! Tests of the index against a model, in nodes so small that few keys make a deep tree.
//!
//! - `model`: an index beside what it must hold
//! - `property`: random changes and lookups
//! - `cursors`: runs with changes in between
//! - `memory`: how full nodes are, what is given back, the bound of growth
//! - `building`: indexes of entries that come in order
//! - `cases`: single rules

mod building;
mod cases;
mod cursors;
mod memory;
mod model;
mod property;
