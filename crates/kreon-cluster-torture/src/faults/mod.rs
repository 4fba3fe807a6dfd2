//! What goes wrong.
//!
//! - [`class`]: the classes of faults, and the order in which they come
//! - [`act`]: makes them happen, and mends everything; [`happened`]: what a run keeps of one
//! - [`outsiders`]: clients that the servers have to bear: idle, without the key, malformed
//! - [`witness`]: asks frozen primaries

pub mod act;
pub mod class;
pub mod happened;
pub mod outsiders;
pub mod witness;
