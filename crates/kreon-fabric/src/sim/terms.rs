//! What tests say of a simulated network.

use crate::address::Address;
use crate::peer::PeerId;

/// When packets arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// By [`Sim::deliver`](super::Sim::deliver) only.
    ByHand,
    /// Each so long after it was sent, by chance, and never before one that was sent earlier on its link. With 0 and 0
    /// it is there when `send` returns.
    After {
        /// Shortest time.
        us_min: u64,
        /// Longest time.
        us_max: u64,
    },
}

/// What is the same for all links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimSettings {
    /// When packets arrive.
    pub delivery: Delivery,
    /// Bytes that were sent and not polled by the receiver, above which an end is busy.
    pub window_bytes: u32,
    /// Whether a poll without an event waits, for as long as it may by the real clock: for tests with several threads. If
    /// not it returns at once, and a test in one thread is the same each time.
    pub is_parking: bool,
    /// Whether all that was sent before a close arrives, as it mostly does; otherwise a prefix, by chance.
    pub is_close_orderly: bool,
}

impl Default for SimSettings {
    /// 20 to 200 microseconds, windows of 1 MiB, one thread, prefixes.
    fn default() -> Self {
        Self {
            delivery: Delivery::After {
                us_min: 20,
                us_max: 200,
            },
            window_bytes: 1 << 20,
            is_parking: false,
            is_close_orderly: false,
        }
    }
}

/// A link of a [`Sim`](super::Sim). Later ones have larger numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(super) u64);

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The one that connected.
    Connector = 0,
    /// The one that listened.
    Acceptor = 1,
}

/// A link as the test sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimLinkInfo {
    /// Which.
    pub id: LinkId,
    /// The servers of connector and acceptor.
    pub hosts: [Address; 2],
    /// The connector.
    pub connector: PeerId,
    /// Packets under way from connector and acceptor.
    pub packets: [usize; 2],
}
