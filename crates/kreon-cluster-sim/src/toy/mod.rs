//! Toys for what the machines decide about: a volume with a log, and names of servers.

mod volume;

pub use volume::{Entry, Volume, Write};

use kreon_replica::machine::{Member, ProcessId, ServerId};

/// Place of a server in a toy cluster, from 0 on.
pub type Place = usize;

/// The server at `place` in its `start`-th start, from 0 on.
pub fn member(place: Place, start: u8) -> Member {
    let mut process = [0; 16];
    process[0] = start;
    Member {
        server: ServerId(place as u32 + 1),
        process: ProcessId(process),
    }
}

/// Where a member stands.
pub fn place(member: Member) -> Place {
    place_of(member.server)
}

/// Where a server stands.
pub fn place_of(server: ServerId) -> Place {
    server.0 as usize - 1
}

/// Which start of its server a member is.
pub fn start(member: Member) -> u8 {
    member.process.0[0]
}
