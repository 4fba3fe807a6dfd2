//! Well 2: the unsafe code of this crate, and what its proofs rest on.
//!
//! At any moment a frame is in exactly one of these states. It passes from one to the next as a token that cannot be
//! copied, or made outside this module:
//!
//! | state | token | access to the bytes |
//! |---|---|---|
//! | free | [`FreeFrame`] | the owner of the token |
//! | published | none: the page's entry in the array stands for it | reading, by every thread that [pinned](Pinned) it |
//! | being written back | [`PageWrite`], beside the entry | reading, by the same and the writer |
//! | retired | [`RetiredFrame`] | reading, by threads that had pinned it before |
//!
//! The entry of a page is one atomic word and every transition one compare-and-swap on it, so the
//! proofs need no lock. Three rules carry them:
//!
//! 1. Only the holder of a [`FreeFrame`] can publish it, and publishing consumes the token.
//! 2. A page whose entry says that it is being written cannot be retired.
//! 3. A retired frame becomes free again only when no reader holds a pin on it
//!    ([`FrameSpace::settle`]). A reader pins first and then looks at the entry again, so either it sees
//!    that the page is gone or the pin is seen.
//!
//! A free frame that the device fills without a waiting thread is in [`Flights`], which gives no access to it.
//!
//! Tokens are used with the [`FrameSpace`] that made them; each mapping has one and keeps its tokens to itself. The only
//! unsafe call outside this folder is the one that makes [`Flights`]: its proof is the order of two fields.

mod entry;
mod flights;
mod frames;
mod memory;
mod page_array;
mod pins;
mod space;
#[cfg(feature = "lock-times")]
mod ticks;
#[cfg(feature = "comparison")]
mod volume_bits;

pub(crate) use entry::{FRAMES_MAX, PageState};
pub(crate) use flights::Flights;
pub(crate) use frames::{FreeFrame, MARK_BYTES, RetiredFrame};
pub(crate) use page_array::STRIPE_PAGES;
pub(crate) use pins::thread_number;
pub(crate) use space::{FrameSpace, PageWrite, Pinned};
#[cfg(feature = "lock-times")]
pub(crate) use ticks::ticks;
#[cfg(feature = "comparison")]
pub(crate) use volume_bits::VolumeBits;

#[cfg(test)]
mod tests;

#[cfg(all(test, loom))]
mod models;
