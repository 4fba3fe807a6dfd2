//! What takes packets of a stream to a backup.

use std::io::IoSlice;
use std::sync::Arc;

use kreon_base::Result;
use kreon_fabric::Link;

/// Takes packets of one stream to its backup, in the order of the calls.
pub trait Carrier: Send + Sync {
    /// Takes the packet that the parts are. Never waits.
    ///
    /// # Errors
    /// `Busy`: not now, nothing was taken; [`Mirror::room`](super::Mirror::room) is called when it may be tried again. Any
    /// other kind: the stream has ended.
    fn carry(&self, parts: &[IoSlice<'_>]) -> Result<()>;
}

/// A link as a carrier. The streams of several groups share it.
pub struct OnLink(pub Arc<dyn Link>);

impl Carrier for OnLink {
    fn carry(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        self.0.send(parts)
    }
}
