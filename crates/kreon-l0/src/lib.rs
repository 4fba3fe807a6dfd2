//! L0, the in-memory level of Kreon: a concurrent ordered index from whole keys to their versions.
//!
//! Modules from the bottom up: `arena` (memory; all unsafe code of the crate), `latch` (optimistic latches), `record`
//! and `chain` (a key and its versions), `node` and `tree` (the B+-tree), `cursor`, `l0`.

mod approach;
mod arena;
mod chain;
mod cursor;
mod l0;
mod latch;
#[cfg(all(test, loom))]
mod models;
mod node;
mod record;
mod tree;
mod version;

pub use approach::{Approach, L0_BYTES_MAX, L0_KEY_BYTES_MAX};
pub use chain::Versions;
pub use cursor::Cursor;
pub use l0::L0;
pub use version::{INLINE_BYTES_MAX, Keep, Version};
