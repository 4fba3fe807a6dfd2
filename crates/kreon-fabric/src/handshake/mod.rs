//! Two processes prove to each other that they have the key of the cluster.
//!
//! ```text
//! connector                                   acceptor
//!   Hello: role, member, challenge, cluster ->
//!                     <- Hello: same role, member, challenge, cluster
//!   Proof ->                                    who is it? may it enter?
//!                     <- Proof, or Refused
//! ```
//!
//! A proof is the HMAC-SHA-256 under the key of: which end proves, the connector's `Hello`, the acceptor's `Hello`. So it
//! fits no other pair of challenges, no other role or process, and not the other end: what was recorded cannot be played
//! again, and an echo proves nothing. The acceptor proves last, to nobody who has not.
//!
//! What follows is neither encrypted nor signed, and whoever stands between the two ends can let them prove themselves and
//! then speak for both. It keeps strangers out of a network that is trusted, nothing else.
//!
//! No I/O: packets come in, packets go out.

mod acceptor;
mod connector;
mod key;
#[cfg(test)]
mod tests;

pub use acceptor::{Acceptor, Answer};
pub use connector::{Connector, Next};
pub use key::Key;

use hmac::Mac;
use kreon_base::Result;
use kreon_wire::{
    Address, Control, Frame, Hello, Kind, Packet, Proof, Reason, Refused, Role, State, Violation,
};

/// Random bytes of one end for one link.
pub type Challenge = [u8; 32];

/// What a process brings: the name of its cluster and its key.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub cluster: String,
    pub key: Option<Key>,
}

impl Credentials {
    /// The key, or what stands for none.
    fn proving(&self) -> Result<Key> {
        self.key.clone().map_or_else(Key::none, Ok)
    }
}

/// Why there is no link.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The other end sends what it must not.
    Violation(Violation),
    /// This end refuses.
    Refuse(Reason),
    /// The other end refuses.
    Refused(Reason),
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

/// The end that proves.
#[derive(Clone, Copy)]
enum Side {
    Connector,
    Acceptor,
}

/// Both `Hello`s, as they were sent: bodies without headers.
struct Hellos {
    connector: Vec<u8>,
    acceptor: Vec<u8>,
}

impl Hellos {
    fn code(&self, side: Side, key: &Key) -> hmac::Hmac<sha2::Sha256> {
        let label: &[u8] = match side {
            Side::Connector => b"kreon handshake 1, connector",
            Side::Acceptor => b"kreon handshake 1, acceptor",
        };
        key.over(&[label, &self.connector, &self.acceptor])
    }

    fn prove(&self, side: Side, key: &Key) -> Vec<u8> {
        let code = self.code(side, key).finalize().into_bytes().into();
        Proof { code }.encode().to_vec()
    }

    /// Whether `proof` is the one of that end; takes the same time whatever is wrong with it.
    fn is_proven(&self, side: Side, key: &Key, proof: &Proof) -> bool {
        self.code(side, key).verify_slice(&proof.code).is_ok()
    }
}

/// The packet, if it may come in this state.
fn open(bytes: &[u8], state: State) -> Result<Frame<'_>, Failure> {
    let frame = Frame::open(bytes, Role::BeforeProof)?;
    match state.allows(frame.header().kind) {
        true => Ok(frame),
        false => Err(Violation::KindForState.into()),
    }
}

/// What both ends ask of the other's `Hello`.
fn check_hello(
    hello: &Hello<'_>,
    mine: &Credentials,
    challenge: &Challenge,
) -> Result<(), Failure> {
    if hello.cluster != mine.cluster {
        return Err(Failure::Refuse(Reason::OtherCluster));
    }
    let is_echo = hello.challenge == *challenge;
    match is_echo || hello.keyed != mine.key.is_some() {
        true => Err(Failure::Refuse(Reason::NotProven)),
        false => Ok(()),
    }
}

/// The reason of a `Refused`; `None` for other packets.
fn refusal(frame: &Frame<'_>) -> Result<Option<Reason>, Failure> {
    match Packet::decode(frame)? {
        Packet::Control(Control::Refused(refused)) => Ok(Some(refused.reason)),
        _ => Ok(None),
    }
}

/// The packet by which a link is refused.
pub fn refuse(reason: Reason) -> Vec<u8> {
    let refused = Refused {
        reason,
        kind: Kind::Hello,
        term: Default::default(),
    };
    Control::Refused(refused).encode(&Address::default())
}
