//! Messages of the cluster as bytes: packets of streams, control messages, the nodes of the coordinator, and the checks
//! that all of them pass.
//!
//! No I/O. `decode` returns a [`Violation`] for bytes that are not right; none panics, whatever the bytes are, and none
//! allocates for what it has not checked. Integers are little endian.
#![forbid(unsafe_code)]

mod counts;
mod fields;
mod frame;
mod header;
mod ids;
mod inlet;
mod kind;
pub mod limits;
mod outlet;
mod progress;
mod role;
mod room;
mod stream;
mod violation;

pub use counts::ViolationCounts;
pub use frame::{Address, Encoded, Frame};
pub use header::Header;
pub use ids::{
    BeatNumber, FlushNumber, GrantBytes, GroupId, Member, ProcessId, QuestionNumber, ServerId,
    StreamNumber, Term,
};
pub use inlet::Inlet;
pub use kind::{Kind, Presence, Shape};
pub use outlet::Outlet;
pub use progress::Progress;
pub use role::{Role, State};
pub use room::{Room, Spent};
pub use stream::{ByteRange, LSN_MAX, StreamPacket};
pub use violation::Violation;
