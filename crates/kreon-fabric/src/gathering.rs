//! Many links that one thread serves.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::Result;

use crate::link::{Event, Link};

/// What its owner calls a link of a [`Gathering`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkName(pub u64);

/// Many links that one thread serves: a server with hundreds of them needs neither a thread nor a call for each. A call
/// costs what the links cost that have something to tell, and nothing for the others.
///
/// What is said of [`Link::poll`] holds for every link in it, in the order of its own events; there is no order between two
/// links. A link in a gathering is not polled by itself.
pub trait Gathering: Send + Sync {
    /// Takes a link in, of the fabric that made this gathering, with all that it has not told yet. Keeps a handle of it
    /// until it is removed or its end was handed out. May be called while another thread polls, which then hears of it.
    ///
    /// # Errors
    /// [`InvalidArgument`](kreon_base::ErrorKind::InvalidArgument): another fabric's link, or the name or the link is in
    /// it; [`Io`](kreon_base::ErrorKind::Io): the system has no room.
    fn add(&self, name: LinkName, link: Arc<dyn Link>) -> Result<()>;

    /// Drops the handle of a link. Nothing happens if there is none of this name; a poll that is under way may still hand
    /// out what the link told.
    fn remove(&self, name: LinkName);

    /// Appends what happened to any of the links since the last call; if nothing did, waits for it, at most `patience`.
    /// Returns early without an event now and then. A link that has much to tell hands out a part, and the others have
    /// their turn. After its [`Event::Closed`] a link is no longer in it. One thread polls at a time; a second one waits for
    /// its turn within its own patience.
    ///
    /// # Errors
    /// [`Io`](kreon_base::ErrorKind::Io): the system does not let it wait. What ails one link is that link's event.
    fn poll(&self, out: &mut Vec<(LinkName, Event)>, patience: Duration) -> Result<()>;

    /// Makes the poll that is under way return, or the next one.
    fn wake(&self);
}
