//! What takes packets of a stream to a backup.

use std::io::IoSlice;
use std::sync::Arc;

use kreon_base::Result;
use kreon_fabric::Link;

use super::share::Share;

/// Takes packets of one stream to its backup, in the order of the calls.
pub trait Carrier: Send + Sync {
    /// Takes the packet that the parts are. Never waits.
    ///
    /// # Errors
    /// `Busy`: not now, nothing was taken; [`Mirror::room`](super::Mirror::room) is called when it may be tried again. Any
    /// other kind: the stream has ended.
    fn carry(&self, parts: &[IoSlice<'_>]) -> Result<()>;

    /// The turns of what other streams carry over the same link; `None` if there are no others.
    fn share(&self) -> Option<&Arc<Share>> {
        None
    }
}

/// A link as a carrier, for the stream of one group.
pub struct OnLink(pub Arc<dyn Link>);

impl Carrier for OnLink {
    fn carry(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        self.0.send(parts)
    }
}

/// A link as the carrier of several groups' streams: the copy of one group leaves half of it to the other groups, too.
pub struct SharedLink {
    link: Arc<dyn Link>,
    share: Arc<Share>,
}

impl SharedLink {
    /// Over `link`; all streams get handles of the same carrier.
    pub fn new(link: Arc<dyn Link>) -> Self {
        Self {
            link,
            share: Arc::default(),
        }
    }
}

impl Carrier for SharedLink {
    fn carry(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        self.link.send(parts)
    }

    fn share(&self) -> Option<&Arc<Share>> {
        Some(&self.share)
    }
}
