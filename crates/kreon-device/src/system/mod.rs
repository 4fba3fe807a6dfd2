//! What an operating system offers beyond the plain calls of Unix, and what is done where it does not.
//!
//! Both variants have the same functions. The feature `portable` chooses the one of other systems on Linux, so that it is
//! tested.

#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod linux;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod lock_holders;
#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
mod portable;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod sockets;

#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(crate) use linux::{
    allocate, discard, flush, forked_page, make_direct, no_readahead, want_huge_pages,
};
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(crate) use lock_holders::lock_holders;
#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
pub(crate) use portable::{
    allocate, connect, discard, flush, forked_page, listen, lock_holders, make_direct,
    no_readahead, peer_user, want_huge_pages,
};
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(crate) use sockets::{connect, listen, peer_user};
