//! Messages of the cluster as bytes: packets of streams, control messages, the nodes of the coordinator, and the checks
//! that all of them pass.
//!
//! No I/O. `decode` returns a [`Violation`] for bytes that are not right; none panics, whatever the bytes are, and none
//! allocates for what it has not checked. Integers are little endian.
#![forbid(unsafe_code)]

mod codes;
mod config;
mod control;
mod counts;
mod fields;
mod frame;
mod header;
mod hello;
mod ids;
mod inlet;
mod kind;
pub mod limits;
mod node;
mod nodes;
mod outlet;
mod packet;
mod progress;
mod refused;
mod role;
mod room;
mod slot;
mod standing;
mod stream;
mod violation;

pub use config::{GroupConfig, KeyRange};
pub use control::{Attach, Control, Equalise, Open};
pub use counts::ViolationCounts;
pub use frame::{Address, Encoded, Frame};
pub use header::Header;
pub use hello::{Hello, Proof};
pub use ids::{
    BeatNumber, FlushNumber, GrantBytes, GroupId, Member, ProcessId, QuestionNumber, ServerId,
    StreamNumber, Term,
};
pub use inlet::Inlet;
pub use kind::{Kind, Presence, Shape};
pub use nodes::{FormatNode, ServerNode, TableNode};
pub use outlet::Outlet;
pub use packet::Packet;
pub use progress::Progress;
pub use refused::{Reason, Refused};
pub use role::{Role, State};
pub use room::{Room, Spent};
pub use slot::{Extent, Slot, Superblocks};
pub use standing::{Stage, Standing};
pub use stream::{ByteRange, LSN_MAX, StreamPacket};
pub use violation::Violation;
