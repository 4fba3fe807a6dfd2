//! The primary's end of all streams of its group: what it writes to its volume and its log, the backups get, too.
//!
//! - [`MirrorDevice`]: the device that the store is opened on
//! - [`Mirror`]: the members with their streams, and what they have; `shipping`: packets to all of them; `barrier`: flushes
//!   that wait for all of them; `members`: who is counted
//! - `tap`: the committed log, in a thread of its own; [`LogSource`]: where it comes from
//! - `stream`: one member; [`Carrier`]: takes packets to it; `share`: what copies leave to other packets of a link
//! - `owed`, `feeding`: nobody waits for a member that does not count: what it was not sent is read from the file

mod barrier;
mod carrier;
mod device;
mod feeding;
mod members;
mod owed;
mod share;
mod shipping;
mod source;
mod stream;
mod streams;
mod tap;
#[cfg(test)]
mod tests;
mod traffic;

pub(crate) use self::barrier::block_border;
pub use self::carrier::{Carrier, OnLink, SharedLink};
pub use self::device::MirrorDevice;
pub use self::members::MemberStanding;
pub(crate) use self::members::Position;
pub(crate) use self::share::Halves;
pub use self::share::Share;
pub use self::source::{Committed, LogSource};
pub use self::streams::Mirror;
pub use self::tap::TapThread;
pub use self::traffic::{BarrierTimes, StreamTraffic};
