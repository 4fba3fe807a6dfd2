//! Messages of the cluster as bytes: packets of streams, control messages, the nodes of the coordinator, and the checks
//! that all of them pass.
//!
//! No I/O. `decode` returns a [`Violation`] for bytes that are not right; none panics, whatever the bytes are, and none
//! allocates for what it has not checked. Integers are little endian.
#![forbid(unsafe_code)]

mod backups;
mod bounds;
mod codes;
mod config;
mod control;
mod counts;
mod failure;
mod fields;
mod found;
mod frame;
mod header;
mod hello;
mod ids;
mod inlet;
mod keys;
mod kind;
pub mod limits;
mod many;
mod node;
mod nodes;
mod operations;
mod order;
mod outlet;
mod packet;
mod progress;
mod refused;
mod reply;
mod request;
mod role;
mod room;
mod scan_part;
mod slot;
mod standing;
mod stream;
mod violation;

pub use backups::{Backup, Backups, Digests, backups_body, digests_body};
pub use bounds::Bounds;
pub use config::{GroupConfig, KeyRange};
pub use control::{Attach, Control, Equalise, Open};
pub use counts::ViolationCounts;
pub use failure::{Failure, FailureKind};
pub use found::{Page, PageBody, Values, ValuesBody};
pub use frame::{Address, Encoded, Frame};
pub use header::Header;
pub use hello::{Hello, Proof};
pub use ids::{
    BeatNumber, FlushNumber, GrantBytes, GroupId, Member, ProcessId, QuestionNumber, ServerId,
    SnapshotId, StreamNumber, Term,
};
pub use inlet::Inlet;
pub use keys::{KeyList, Keys};
pub use kind::{Kind, Presence, Shape};
pub use nodes::{FormatNode, LimitsNode, ServerNode, TableNode};
pub use operations::{Change, Durability, Operation, Operations, Tables, Write, WriteBody};
pub use order::{Order, OrderKind, SplitList, Splits};
pub use outlet::Outlet;
pub use packet::Packet;
pub use progress::Progress;
pub use refused::{Reason, Refused};
pub use reply::{Compared, Reply, ReplyKind, Verified};
pub use request::{Request, RequestKind};
pub use role::{Role, State};
pub use room::{Room, Spent};
pub use scan_part::ScanPart;
pub use slot::{Extent, Slot, Superblocks};
pub use standing::{Stage, Standing};
pub use stream::{ByteRange, LSN_MAX, StreamPacket};
pub use violation::Violation;
