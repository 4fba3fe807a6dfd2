//! Who is at the other end of a link.

use kreon_wire::{Member, Role, ServerId};

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerId {
    /// The server in one of its starts. A client is [`ServerId`] 0, and so is, to it, the server.
    pub member: Member,
    /// What the link is for, which is the same at both ends; never [`Role::BeforeProof`].
    pub role: Role,
}

/// A server as it names itself on a link of this role: to a client it is a process without a number.
pub fn shown(me: Member, role: Role) -> Member {
    let server = match role {
        Role::Client => ServerId(0),
        _ => me.server,
    };
    Member { server, ..me }
}
