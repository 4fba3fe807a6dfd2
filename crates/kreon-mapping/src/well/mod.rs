//! Well 2: the only unsafe code of this crate, and what its proofs rest on.
//!
//! A frame is, at any moment, in exactly one of these hands, and passes from one to the next as a
//! token that cannot be copied or made outside this module:
//!
//! | hand | token | who may touch the bytes |
//! |---|---|---|
//! | free | [`FreeFrame`] | the owner of the token, freely |
//! | published | none: the page's entry in the table stands for it | everyone who [pinned](Pinned) it, reading |
//! | being written back | [`Writing`], beside the entry | the same, and the writer, reading |
//! | retired | [`RetiredFrame`] | readers who had pinned it before |
//!
//! The entry of a page is one atomic word and every transition one compare-and-swap on it, so the
//! proofs need no lock. Three rules carry them:
//!
//! 1. Only the holder of a [`FreeFrame`] can publish it, and publishing consumes the token.
//! 2. A page whose entry says that it is being written cannot be retired.
//! 3. A retired frame becomes free again only when no reader holds a pin on it
//!    ([`Space::settle`]). A reader pins first and then looks at the entry again, so either it sees
//!    that the page is gone or the pin is seen.
//!
//! A free frame that the device is filling on its own is in [`Flights`], which lets nobody touch it.
//!
//! Tokens are used with the [`Space`] that made them; each mapping has one and keeps them to itself.

mod bits;
mod entry;
mod flights;
mod frames;
mod memory;
mod pins;
mod space;
mod table;
mod transfer;

pub(crate) use bits::PageBits;
pub(crate) use entry::{FRAMES_MAX, PageState};
pub(crate) use flights::{Flights, Landed};
pub(crate) use frames::{FreeFrame, RetiredFrame};
pub(crate) use pins::thread_number;
pub(crate) use space::{Pinned, Space};
pub(crate) use table::STRIPE_PAGES;
pub(crate) use transfer::Writing;

#[cfg(test)]
mod tests;

#[cfg(all(test, loom))]
mod models;
