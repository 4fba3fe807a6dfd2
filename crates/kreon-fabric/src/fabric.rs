//! How processes find each other.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::Result;
use kreon_wire::{Member, Reason};

use crate::address::Address;
use crate::gathering::Gathering;
use crate::link::Link;
use crate::peer::PeerId;

/// What a fabric can do, so that those above neither ask for more nor pay for less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// Whether bytes arrive in the peer's memory while none of its threads runs. Where this is false, which it is for
    /// both fabrics of this crate, the time that a peer needs to answer includes that of its scheduler.
    pub lands_without_peer_cpu: bool,
    /// Length of the longest packet, header included.
    pub packet_bytes_max: u32,
    /// Bytes that a link takes before [`Link::send`] is busy.
    pub window_bytes: u32,
}

/// A network as one process sees it.
pub trait Fabric: Send + Sync + 'static {
    /// What it can do.
    fn traits(&self) -> Traits;

    /// Lets others connect at `at` until what is returned is dropped. Links that exist by then live on.
    ///
    /// # Errors
    /// [`InvalidArgument`](kreon_base::ErrorKind::InvalidArgument): not an address of this fabric, or one that needs a
    /// key; [`Busy`](kreon_base::ErrorKind::Busy): somebody listens there; [`Io`](kreon_base::ErrorKind::Io).
    fn listen(&self, at: &Address, judge: Arc<dyn Welcome>) -> Result<Box<dyn Listening>>;

    /// Connects as `me` and returns when both ends are proven and the peer has agreed; at most `limit`. Who answered,
    /// [`Link::peer`] tells: compare it with whom you meant.
    ///
    /// # Errors
    /// [`InvalidArgument`](kreon_base::ErrorKind::InvalidArgument): as for [`listen`](Self::listen);
    /// [`Closed`](kreon_base::ErrorKind::Closed): the peer refuses, and says why; [`Corruption`]: what answers does not
    /// talk as a server does; [`Io`](kreon_base::ErrorKind::Io): nobody there, or not in time.
    ///
    /// [`Corruption`]: kreon_base::ErrorKind::Corruption
    fn connect(&self, to: &Address, me: &PeerId, limit: Duration) -> Result<Arc<dyn Link>>;

    /// A gathering for links of this fabric, with none in it.
    ///
    /// # Errors
    /// [`Io`](kreon_base::ErrorKind::Io): the system has no room.
    fn gathering(&self) -> Result<Arc<dyn Gathering>>;
}

/// Who listens: says who it is, whom it lets in, and takes the links.
///
/// The methods are called by the thread that serves all connections: they must not wait.
pub trait Welcome: Send + Sync + 'static {
    /// This end, as peers are to see it.
    fn me(&self) -> Member;

    /// Whether a peer that has proven who it is may enter; otherwise the reason that it is told. Two links of the same
    /// peer and role are nothing unusual: one of them may be of an attempt that the peer gave up.
    fn judge(&self, peer: &PeerId) -> Result<(), Reason>;

    /// A new link to a peer that was let in. It may have sent packets by then.
    fn linked(&self, link: Arc<dyn Link>);
}

/// A place where others can connect. Dropping it ends that.
pub trait Listening: Send + Sync {
    /// Where it is; with TCP the real port, also if port 0 was asked for.
    fn address(&self) -> Address;
}
