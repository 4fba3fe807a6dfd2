//! The end that connects.

use kreon_base::Result;
use kreon_wire::limits::HEADER_BYTES;
use kreon_wire::{Hello, Proof, State};

use super::{Challenge, Credentials, Failure, Hellos, Key, Side, check_hello, open, refusal};
use crate::peer::PeerId;

/// The connecting end of one link that is to be.
pub struct Connector {
    me: PeerId,
    credentials: Credentials,
    key: Key,
    challenge: Challenge,
    hello: Vec<u8>,
    /// Both, and who the other end says it is, once it has.
    known: Option<(Hellos, PeerId)>,
}

/// What is to be done after a packet.
pub enum Next {
    /// Send this, and wait.
    Send(Vec<u8>),
    /// There is a link, to this peer.
    Linked(PeerId),
}

impl Connector {
    /// An end, and its first packet.
    pub fn new(
        me: PeerId,
        credentials: &Credentials,
        challenge: Challenge,
    ) -> Result<(Self, Vec<u8>)> {
        let hello = Hello {
            role: me.role,
            keyed: credentials.key.is_some(),
            sender: me.member,
            challenge,
            cluster: &credentials.cluster,
        };
        let packet = hello.encode().to_vec();
        let end = Self {
            me,
            credentials: credentials.clone(),
            key: credentials.proving()?,
            challenge,
            hello: packet[HEADER_BYTES..].to_vec(),
            known: None,
        };
        Ok((end, packet))
    }

    /// Takes the next packet of the other end.
    pub fn take(&mut self, packet: &[u8]) -> Result<Next, Failure> {
        match self.known.take() {
            None => self.take_hello(packet).map(Next::Send),
            Some((hellos, peer)) => self
                .take_proof(packet, &hellos)
                .map(|()| Next::Linked(peer)),
        }
    }

    fn take_hello(&mut self, packet: &[u8]) -> Result<Vec<u8>, Failure> {
        let frame = open(packet, State::Greeting)?;
        if let Some(reason) = refusal(&frame)? {
            return Err(Failure::Refused(reason));
        }
        let hello = Hello::decode(&frame)?;
        check_hello(&hello, &self.credentials, &self.challenge)?;
        if hello.role != self.me.role {
            return Err(kreon_wire::Violation::FieldValue.into());
        }
        let peer = PeerId {
            member: hello.sender,
            role: hello.role,
        };
        let hellos = Hellos {
            connector: self.hello.clone(),
            acceptor: frame.body().to_vec(),
        };
        let proof = hellos.prove(Side::Connector, &self.key);
        self.known = Some((hellos, peer));
        Ok(proof)
    }

    fn take_proof(&self, packet: &[u8], hellos: &Hellos) -> Result<(), Failure> {
        let frame = open(packet, State::Proving)?;
        if let Some(reason) = refusal(&frame)? {
            return Err(Failure::Refused(reason));
        }
        let proof = Proof::decode(&frame)?;
        match hellos.is_proven(Side::Acceptor, &self.key, &proof) {
            true => Ok(()),
            false => Err(Failure::Refuse(kreon_wire::Reason::NotProven)),
        }
    }
}
