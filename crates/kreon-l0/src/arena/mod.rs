//! The memory of an L0, and the only unsafe code of the crate.
//!
//! An [`Arena`] allocates objects and frees none. When it is dropped, all its memory goes to later arenas at once; by
//! then nobody has a reference into it. Objects refer to each other by [`Ref`]s of 32 bits. A `Ref` is always valid to
//! follow, even if the node it was read from is being changed:
//!
//! 1. Only the arena makes a `Ref`, after the object was written. Its number is private to this module.
//! 2. Between threads a `Ref` travels through [`AtomicRef`] and [`AtomicTagged`] (store: release, load: acquire) or by
//!    the ordinary means of safe Rust, so a thread with a `Ref` sees the bytes of the object.
//! 3. From then on objects are shared: only atomics in them change, all other bytes stay as written.
//! 4. A `Ref` is used only with the arena that made it. The crate keeps this rule: an L0 has one arena, `Ref`s are
//!    stored in objects of that arena or beside a borrow of it, and no function uses two arenas.

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
