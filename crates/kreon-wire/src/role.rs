//! What may come in on a link: by its role, and by the state of the receiver.

use crate::kind::Kind;
use crate::limits::{CONTROL_BYTES_MAX, REQUEST_BYTES_MAX, STREAM_BYTES_MAX, UNPROVEN_BYTES_MAX};
use crate::violation::Violation;

/// What a link is for. Both sides agree on it in their `Hello`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Neither side has proved who it is.
    BeforeProof,
    /// A client and a server.
    Client,
    /// Two servers: the streams of all groups between them.
    PeerStream,
    /// Two servers: control messages of all groups between them.
    PeerControl,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [
        Self::BeforeProof,
        Self::Client,
        Self::PeerStream,
        Self::PeerControl,
    ];

    /// Most bytes behind the header of a packet.
    pub const fn body_bytes_max(self) -> u32 {
        match self {
            Self::BeforeProof => UNPROVEN_BYTES_MAX,
            Self::Client => REQUEST_BYTES_MAX,
            Self::PeerStream => STREAM_BYTES_MAX,
            Self::PeerControl => CONTROL_BYTES_MAX,
        }
    }

    /// Whether packets of this kind may come in, in some state.
    pub const fn allows(self, kind: Kind) -> bool {
        use Kind::*;
        match self {
            Self::BeforeProof => matches!(kind, Hello | Proof | Refused),
            Self::Client => matches!(kind, Request | Reply | Status | Standing | Refused),
            Self::PeerStream => {
                matches!(
                    kind,
                    Log | Pages | Grow | Allocate | Discard | Flush | Copy | Complete
                ) || matches!(kind, Progress | Refused)
            }
            Self::PeerControl => {
                matches!(
                    kind,
                    Open | Opened | Beat | Beaten | Seal | Sealed | Equalise
                ) || matches!(kind, Equal | Attach | Attached | Look | Status | Standing)
                    || matches!(kind, Refused)
            }
        }
    }
}

/// The state of a receiver within the role of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waits for the `Hello` of the other side.
    Greeting,
    /// Has it, and waits for the `Proof`.
    Proving,
    /// A server, to its client.
    Answering,
    /// A client, to its server.
    Asking,
    /// The stream of an in-sync backup, at the backup.
    Following,
    /// The stream of a joiner until it is complete, at the joiner.
    Joining,
    /// A stream of a term that is sealed, at the backup: nothing of it counts any more.
    Sealed,
    /// The stream of a backup, at the primary.
    Shipping,
    /// Control messages, both ways.
    Talking,
}

impl State {
    /// All states.
    pub const ALL: [Self; 9] = [
        Self::Greeting,
        Self::Proving,
        Self::Answering,
        Self::Asking,
        Self::Following,
        Self::Joining,
        Self::Sealed,
        Self::Shipping,
        Self::Talking,
    ];

    /// The role of links on which a receiver has this state.
    pub const fn role(self) -> Role {
        match self {
            Self::Greeting | Self::Proving => Role::BeforeProof,
            Self::Answering | Self::Asking => Role::Client,
            Self::Following | Self::Joining | Self::Sealed | Self::Shipping => Role::PeerStream,
            Self::Talking => Role::PeerControl,
        }
    }

    /// Whether packets of this kind may come in.
    pub const fn allows(self, kind: Kind) -> bool {
        use Kind::*;
        match self {
            Self::Greeting => matches!(kind, Hello | Refused),
            Self::Proving => matches!(kind, Proof | Refused),
            Self::Answering => matches!(kind, Request | Status),
            Self::Asking => matches!(kind, Reply | Standing | Refused),
            Self::Following => {
                matches!(kind, Log | Pages | Grow | Allocate | Discard | Flush)
            }
            Self::Joining => Self::Following.allows(kind) || matches!(kind, Copy | Complete),
            Self::Sealed => false,
            Self::Shipping => matches!(kind, Progress | Refused),
            Self::Talking => Role::PeerControl.allows(kind),
        }
    }

    /// `KindForState` for kinds that may not come in.
    pub const fn check(self, kind: Kind) -> Result<(), Violation> {
        match self.allows(kind) {
            true => Ok(()),
            false => Err(Violation::KindForState),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_state_allows_what_its_role_forbids() {
        for state in State::ALL {
            for kind in Kind::ALL {
                let allowed = state.allows(kind);
                assert!(!allowed || state.role().allows(kind), "{state:?} {kind:?}");
            }
        }
    }

    #[test]
    fn every_kind_that_a_role_allows_is_allowed_in_one_of_its_states() {
        for role in Role::ALL {
            for kind in Kind::ALL.into_iter().filter(|kind| role.allows(*kind)) {
                let states = State::ALL.into_iter().filter(|state| state.role() == role);
                assert!(
                    states.into_iter().any(|state| state.allows(kind)),
                    "{role:?} {kind:?}"
                );
            }
        }
    }
}
