//! The memory of an L0, and the only unsafe code of the crate.
//!
//! An [`Arena`] hands out objects and never takes one back; all its memory goes at once, to the arenas
//! after it, when it is dropped: by then nobody has a reference into it. Objects name each other by [`Ref`]s of 32 bits. A `Ref` that was reached is always good to
//! follow, also when the node it was read from is in the middle of a change:
//!
//! 1. Only the arena makes a `Ref`, after the object it names is written. The numbers inside are
//!    private to this module.
//! 2. Between threads a `Ref` travels through [`AtomicRef`] and [`AtomicTagged`] (store: release,
//!    load: acquire) or with the ordinary means of safe Rust, so the object's bytes are seen by whoever
//!    holds the `Ref`.
//! 3. Objects are shared from then on: what changes in them are atomics, all else stays as written.
//! 4. A `Ref` is used only with the arena that made it. This is a rule for the crate: an L0 has one
//!    arena, `Ref`s are kept in objects of that arena or beside a borrow of it, and no function sees
//!    two arenas.

mod chunk;
#[cfg(all(test, loom))]
mod models;
mod pool;
mod reference;
mod space;
mod store;

pub(crate) use pool::Pool;
pub(crate) use reference::{AtomicRef, AtomicTagged, Ref, Tagged};
pub(crate) use space::SPACE_BYTES_MAX;
pub(crate) use store::{Arena, FIRST_BYTES_MAX, SECOND_BYTES_MAX};
