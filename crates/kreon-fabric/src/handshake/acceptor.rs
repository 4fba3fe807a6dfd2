//! The end that listens.

use kreon_base::Result;
use kreon_wire::limits::HEADER_BYTES;
use kreon_wire::{Hello, Member, Proof, Reason, Role, State, Violation};

use super::{Challenge, Credentials, Failure, Hellos, Key, Side, check_hello, open};
use crate::peer::{PeerId, shown};

/// The accepting end of one link that is to be.
pub struct Acceptor {
    me: Member,
    credentials: Credentials,
    key: Key,
    challenge: Challenge,
    known: Option<(Hellos, PeerId)>,
}

/// What is to be done after a packet.
pub enum Answer {
    /// Send this, and wait.
    Send(Vec<u8>),
    /// The peer is who it says. If it may enter, send it this; otherwise a refusal.
    Judge(PeerId, Vec<u8>),
}

impl Acceptor {
    /// An end.
    pub fn new(me: Member, credentials: &Credentials, challenge: Challenge) -> Result<Self> {
        Ok(Self {
            me,
            credentials: credentials.clone(),
            key: credentials.proving()?,
            challenge,
            known: None,
        })
    }

    /// Takes the next packet of the other end.
    pub fn take(&mut self, packet: &[u8]) -> Result<Answer, Failure> {
        match self.known.take() {
            None => self.take_hello(packet).map(Answer::Send),
            Some((hellos, peer)) => self.take_proof(packet, hellos, peer),
        }
    }

    fn take_hello(&mut self, packet: &[u8]) -> Result<Vec<u8>, Failure> {
        let frame = open(packet, State::Greeting)?;
        let theirs = Hello::decode(&frame)?;
        check_hello(&theirs, &self.credentials, &self.challenge)?;
        // A server that meets itself is led through a stranger, or was given a wrong address.
        if theirs.role != Role::Client && theirs.sender == self.me {
            return Err(Failure::Refuse(Reason::NotProven));
        }
        let mine = Hello {
            role: theirs.role,
            keyed: self.credentials.key.is_some(),
            sender: shown(self.me, theirs.role),
            challenge: self.challenge,
            cluster: &self.credentials.cluster,
        };
        let answer = mine.encode().to_vec();
        let hellos = Hellos {
            connector: frame.body().to_vec(),
            acceptor: answer[HEADER_BYTES..].to_vec(),
        };
        let peer = PeerId {
            member: theirs.sender,
            role: theirs.role,
        };
        self.known = Some((hellos, peer));
        Ok(answer)
    }

    fn take_proof(&self, packet: &[u8], hellos: Hellos, peer: PeerId) -> Result<Answer, Failure> {
        let frame = open(packet, State::Proving)?;
        // `Refused` may come in here for a connector's sake.
        let proof = Proof::decode(&frame).map_err(|_| Violation::KindForState)?;
        match hellos.is_proven(Side::Connector, &self.key, &proof) {
            true => Ok(Answer::Judge(peer, hellos.prove(Side::Acceptor, &self.key))),
            false => Err(Failure::Refuse(Reason::NotProven)),
        }
    }
}
