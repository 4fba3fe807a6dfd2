//! One link between two processes.

use std::any::Any;
use std::io::IoSlice;
use std::time::Duration;

use kreon_base::{Error, Result};

use crate::bytes::Bytes;
use crate::peer::PeerId;

/// What a link tells the one that polls it.
#[derive(Clone, Debug)]
pub enum Event {
    /// A packet of the peer, whole, in the order in which it was sent.
    Packet(Bytes),
    /// After a `send` that was [`Busy`](kreon_base::ErrorKind::Busy): at least half the window is free again.
    Room,
    /// The link has ended; nothing follows. [`Closed`](kreon_base::ErrorKind::Closed): one of the two ends closed it;
    /// [`Corruption`](kreon_base::ErrorKind::Corruption): the peer sent what no header is; any other kind: it broke.
    Closed(Error),
}

/// One link between two processes, of which both are proven.
///
/// **Order.** Packets arrive in the order of their `send` calls, whole, at most once each. When a link ends, however it
/// ends, a prefix of what was sent has arrived; the sender does not learn which. A link that has ended never comes
/// back: a new one begins with nothing under way. There is no order between two links.
///
/// **Acknowledgement.** That `send` returned says nothing of the peer. Only a packet that the peer sent as an answer
/// says that something arrived; so it is with every fabric, because completions of some come before the peer has a byte.
///
/// **Checks.** What arrives is a whole packet whose header may stand on a link of this role. Body and checksum are
/// checked by who takes it ([`Frame::open`](kreon_wire::Frame::open)), who closes the link if they are wrong.
///
/// **Memory.** Packets that were sent and not taken by the network fill the window of the sender. A receiver that does
/// not poll takes nothing more than a few buffers; then the sender's window fills.
///
/// **Dropping** the last handle closes the link without a reason.
pub trait Link: Any + Send + Sync {
    /// The other end, as it has proven to be.
    fn peer(&self) -> PeerId;

    /// Sends one packet: the concatenation of `parts`, a `kreon-wire` header and its body. Copies what the network does
    /// not take at once; never waits.
    ///
    /// # Errors
    /// [`Busy`](kreon_base::ErrorKind::Busy): the window is full, nothing was sent; [`Event::Room`] follows. A packet
    /// larger than the window is taken when the window is empty.
    /// [`InvalidArgument`](kreon_base::ErrorKind::InvalidArgument): the header is not one that may stand on a link of this
    /// role, or not of this length; nothing was sent. Any other kind: the link has ended.
    fn send(&self, parts: &[IoSlice<'_>]) -> Result<()>;

    /// Appends what happened since the last call to `out`; if nothing did, waits for it, at most `patience`. Returns
    /// early without an event now and then. Nothing is received on a link that nobody polls, so a thread that polls
    /// does no storage work; one that serves many links uses a [`Gathering`](crate::Gathering). One thread polls at a time; a second one waits for its turn within its own patience.
    ///
    /// # Errors
    /// The error of [`Event::Closed`], once that was handed out.
    fn poll(&self, out: &mut Vec<Event>, patience: Duration) -> Result<()>;

    /// Ends the link. A poll that begins later delivers no packet; the peer gets a prefix of what was sent. The reason is
    /// for this end: [`Event::Closed`] and later calls tell it. A peer that is to know why is sent a `Refused` before.
    /// Returns at once; closing a closed link does nothing.
    fn close(&self, why: &str);
}
