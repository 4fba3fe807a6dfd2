//! What a coordinator is asked, and what it answers.

use std::sync::Arc;

/// Version of a node: 0 when it is made, one more with each change of its data. It starts anew when a node is deleted and
/// made again, so nodes that are compared by version are never deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u64);

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its content.
    pub data: Arc<[u8]>,
    /// Its version.
    pub version: Version,
}

/// How long a node stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Until it is deleted.
    Persistent,
    /// Until it is deleted or the session that made it ends.
    Ephemeral,
    /// The same, and its name gets a number of ten digits that grows: for elections.
    EphemeralSequential,
}

/// A part of a [`Command::Multi`]: all are carried out, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The node has this version.
    Check(String, Version),
    /// Replace the data of a node of this version.
    Set(String, Arc<[u8]>, Version),
    /// Make a node.
    Create(String, Arc<[u8]>, Mode),
    /// Delete a node of this version.
    Delete(String, Version),
}

/// A question or an order to the coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Later reads of this session see at least what was written anywhere before this was carried out.
    Sync,
    /// A node, as the server of this session has it: it may lag behind.
    Get {
        /// Its path.
        path: String,
        /// Tell this session once when it is made, changed or deleted.
        watch: bool,
    },
    /// Names of the nodes directly below a path, ascending, as the server of this session has them.
    Children {
        /// The path.
        path: String,
        /// Tell this session once when one is made or deleted, or the path is; not if the answer is [`Reply::Missing`].
        watch: bool,
    },
    /// Make a node, below one that exists and is not ephemeral.
    Create(String, Arc<[u8]>, Mode),
    /// Replace the data of a node if it has this version: compare-and-set.
    Set(String, Arc<[u8]>, Version),
    /// Delete a node if it has this version.
    Delete(String, Version),
    /// All of it or nothing.
    Multi(Vec<Operation>),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To [`Command::Sync`].
    Synced,
    /// To [`Command::Get`].
    Node(Node),
    /// To [`Command::Children`].
    Children(Vec<String>),
    /// The node was made under this path.
    Created(String),
    /// The node has this version now.
    Written(Version),
    /// The node was deleted.
    Deleted,
    /// All parts were carried out; one reply for each, `Synced` for a check.
    Done(Vec<Reply>),
    /// There is no such node; to a creation: there is no node above it.
    Missing,
    /// There is such a node already.
    Exists,
    /// The node has another version; nothing was changed.
    Conflict,
    /// The node to be deleted has nodes below it; nothing was changed.
    HasChildren,
    /// The node above the one to be made is ephemeral; nothing was changed.
    Childless,
    /// A part of a multi could not be carried out: its number from 0 on, and why. Nothing was changed.
    Refused(usize, Box<Reply>),
    /// The session is over; its ephemeral nodes are gone. This command was not carried out.
    Expired,
    /// No answer came: the command may have been carried out, or not, or may be yet, even after the end of its session.
    Unknown,
}
