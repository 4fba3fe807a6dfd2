//! Who is at the other end of a link.

use std::fmt;

/// Number of a server in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u32);

/// 128 random bits that a process draws when it starts: one that was started again is another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u128);

impl fmt::Debug for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {:032x}", self.0)
    }
}

/// What a process may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A server of the cluster.
    Server,
    /// A client; its server number is 0 and means nothing.
    Client,
}

/// What a link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Streams of groups: packets of at most 64 KiB.
    Streams,
    /// Beats, seals and other messages that must not queue behind pages.
    Control,
    /// Requests of a client and their answers.
    Requests,
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerId {
    /// What it may ask for.
    pub role: Role,
    /// Its number.
    pub server: ServerId,
    /// Which start of it.
    pub process: ProcessId,
}

/// What the connecting end says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hello {
    /// Who connects.
    pub me: PeerId,
    /// What the link is for.
    pub channel: Channel,
}
