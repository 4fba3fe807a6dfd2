//! The kinds of packets, and what the header of each must hold.

use crate::limits::{CLUSTER_NAME_BYTES_MAX, NODE_BYTES_MAX, REQUEST_BYTES_MAX, STREAM_BYTES_MAX};
use crate::violation::Violation;

/// Whether packets of a kind have a certain field of the header; without it, the field is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// Never.
    None,
    /// Always.
    Some,
    /// It depends.
    Any,
}

impl Presence {
    /// Whether a field may hold `value`.
    pub const fn fits(self, value: u64) -> bool {
        match self {
            Self::None => value == 0,
            Self::Some => value != 0,
            Self::Any => true,
        }
    }
}

/// What the header of a kind must hold.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Fewest bytes behind the header.
    pub body_bytes_min: u32,
    /// Most bytes behind the header.
    pub body_bytes_max: u32,
    /// Whether it names a group.
    pub group: Presence,
    /// Whether it names a term.
    pub term: Presence,
    /// Whether it has a number.
    pub number: Presence,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $least:expr, $most:expr,
        $group:ident $term:ident $number:ident;)+) => {
        /// What a packet is. The code stands in its header.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind { $($(#[doc = $doc])+ $name = $code,)+ }

        impl Kind {
            /// All kinds, in the order of their codes.
            pub const ALL: [Self; 27] = [$(Self::$name,)+];

            /// The kind with this code. `UnknownKind` if there is none.
            pub const fn of(code: u8) -> Result<Self, Violation> {
                match code {
                    $($code => Ok(Self::$name),)+
                    _ => Err(Violation::UnknownKind),
                }
            }

            /// What the header of this kind must hold.
            pub const fn shape(self) -> Shape {
                match self { $(Self::$name => Shape {
                    body_bytes_min: $least,
                    body_bytes_max: $most,
                    group: Presence::$group,
                    term: Presence::$term,
                    number: Presence::$number,
                },)+ }
            }
        }
    };
}

/// Bytes of the fixed fields of `Hello`, in front of the name of the cluster.
const HELLO_BYTES: u32 = 56;

/// Bytes of the configuration of a group with one member and no range.
const CONFIG_BYTES_MIN: u32 = 44;

/// Bytes of the four superblocks.
const SUPERBLOCKS_BYTES: u32 = 4 * 4096;

kinds! {
    /// Who I am, what the link is to be, and my challenge.
    Hello = 0x01, HELLO_BYTES + 1, HELLO_BYTES + CLUSTER_NAME_BYTES_MAX as u32, None None None;
    /// The answer to the challenge of the other side.
    Proof = 0x02, 32, 32, None None None;
    /// A packet or question is not acted upon.
    Refused = 0x03, 16, 16, Any Any Any;
    /// Bytes of the log.
    Log = 0x10, 24, STREAM_BYTES_MAX, Some Some Some;
    /// Blocks of pages.
    Pages = 0x11, 8 + 4096, STREAM_BYTES_MAX - 8, Some Some Some;
    /// The volume becomes longer.
    Grow = 0x12, 8, 8, Some Some Some;
    /// Blocks are allocated for a range.
    Allocate = 0x13, 16, 16, Some Some Some;
    /// A range is released.
    Discard = 0x14, 16, 16, Some Some Some;
    /// All before it is to become durable.
    Flush = 0x15, 16, 16, Some Some Some;
    /// Blocks as they are, for a joiner.
    Copy = 0x16, 8 + 4096, STREAM_BYTES_MAX - 8, Some Some Some;
    /// All was copied; the next checkpoint completes the volume of the joiner.
    Complete = 0x17, 0, 0, Some Some Some;
    /// How far the follower is.
    Progress = 0x18, 56, 56, Some Some None;
    /// Opens the stream of an in-sync backup.
    Open = 0x20, 24 + CONFIG_BYTES_MIN, 24 + NODE_BYTES_MAX, Some Some Some;
    /// The stream is open.
    Opened = 0x21, 40, 40, Some Some Some;
    /// Are you there, in this term?
    Beat = 0x22, 0, 0, Some Some Some;
    /// Yes.
    Beaten = 0x23, 8, 8, Some Some Some;
    /// Nothing of lower terms counts from now on.
    Seal = 0x24, 0, 0, Some Some Some;
    /// What the sealed member has.
    Sealed = 0x25, 40, 40, Some Some Some;
    /// Take these superblocks, and have the log up to this end.
    Equalise = 0x26, 24, 24 + SUPERBLOCKS_BYTES, Some Some Some;
    /// What the member has now, durable.
    Equal = 0x27, 24, 24, Some Some Some;
    /// Prepare a copy of the store from its beginning.
    Attach = 0x28, 32 + CONFIG_BYTES_MIN, 32 + NODE_BYTES_MAX, Some Some Some;
    /// The joiner is prepared.
    Attached = 0x29, 32, 32, Some Some Some;
    /// Read the configuration of the group anew.
    Look = 0x2a, 0, 0, Some Any None;
    /// How is the group at your place?
    Status = 0x2b, 0, 0, Some Any Some;
    /// So it is.
    Standing = 0x2c, 56, 56, Some Any Some;
    /// What a client asks for.
    Request = 0x30, 1, REQUEST_BYTES_MAX, Any Any Some;
    /// The answer to it.
    Reply = 0x31, 1, REQUEST_BYTES_MAX, Any Any Some;
}
