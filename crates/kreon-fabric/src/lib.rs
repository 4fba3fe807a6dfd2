//! How servers reach each other: a trait of links that carry packets in order, one implementation over TCP
//! and one that is simulated.
//!
//! **One-sided writes**, by which a peer's memory is written without a thread of the peer, have no code here yet. What
//! fabrics that have them promise, and so what may be built on: bytes count only when they are known to be *in the peer's
//! memory* (delivery complete), or when the peer answers; two writes have no order, and neither have the bytes of one;
//! arrival is an event of the receiver, not a pattern in its memory; memory is granted zeroed, and what a grant received
//! is read only after the grant was revoked and drained. [`Traits::lands_without_peer_cpu`] says whether a fabric is of
//! this kind.
#![forbid(unsafe_code)]

mod address;
mod bytes;
mod fabric;
mod gathering;
mod handshake;
mod link;
mod packet;
mod peer;
pub mod sim;
pub mod tcp;
mod together;

pub use address::Address;
pub use bytes::Bytes;
pub use fabric::{Fabric, Listening, Traits, Welcome};
pub use gathering::{Gathering, LinkName};
pub use handshake::Key;
pub use link::{Event, Link};
pub use peer::PeerId;
pub use together::Together;
