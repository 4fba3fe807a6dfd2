//! A connection that was accepted and has not proven who it is.

use std::io::IoSlice;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::Result;
use kreon_wire::{Reason, Role, Violation};

use super::inbox::Inbox;
use super::registry::{Registry, challenge, prepare};
use super::transfer::{Moved, write};
use super::waiting::{READ, Token};
use crate::bytes::Bytes;
use crate::fabric::Welcome;
use crate::handshake::{Acceptor, Answer, Failure, refuse};
use crate::peer::PeerId;

/// A connection that was accepted and has not proven who it is.
pub(super) struct Greeting {
    socket: TcpStream,
    token: Token,
    inbox: Inbox,
    acceptor: Acceptor,
    judge: Arc<dyn Welcome>,
    /// It is dropped then.
    pub(super) until: Instant,
}

impl Greeting {
    pub(super) fn new(
        socket: TcpStream,
        judge: &Arc<dyn Welcome>,
        registry: &Registry,
    ) -> Result<Self> {
        prepare(&socket, &registry.settings)?;
        let token = registry.next_token();
        registry.around.sockets.add(&socket, token)?;
        registry.around.sockets.watch(&socket, token, READ)?;
        let proof = Duration::from_millis(registry.settings.proof_ms.into());
        Ok(Self {
            acceptor: Acceptor::new(judge.me(), &registry.credentials, challenge()?)?,
            socket,
            token,
            inbox: Inbox::new(Role::BeforeProof),
            judge: judge.clone(),
            until: Instant::now() + proof,
        })
    }

    pub(super) fn token(&self) -> Token {
        self.token
    }

    /// Reads what came and answers. None when it has become a link, or nothing.
    pub(super) fn progress(mut self, registry: &Registry) -> Option<Self> {
        let mut packets = Vec::new();
        let outcome = match self.inbox.fill(&self.socket) {
            Moved::Bytes(_) => self.inbox.take(&mut packets).map_err(Failure::from),
            Moved::End | Moved::Failed(_) => {
                registry.around.counts.not_finished.add_one();
                return None;
            }
        };
        match outcome.and_then(|()| self.answer(&packets)) {
            Ok(None) => {
                let sockets = &registry.around.sockets;
                match sockets.watch(&self.socket, self.token, READ) {
                    Ok(()) => Some(self),
                    Err(_) => None,
                }
            }
            Ok(Some((peer, proof))) => {
                self.judge(peer, &proof, registry);
                None
            }
            Err(failure) => {
                self.fail(&failure, registry);
                None
            }
        }
    }

    /// Answers each packet; a peer that is proven is to be judged, and has sent nothing behind its proof.
    fn answer(&mut self, packets: &[Bytes]) -> Result<Option<(PeerId, Vec<u8>)>, Failure> {
        for (number, packet) in packets.iter().enumerate() {
            match self.acceptor.take(packet)? {
                Answer::Send(packet) if self.send(&packet) => {}
                Answer::Send(_) => return Err(Failure::Refuse(Reason::Busy)),
                Answer::Judge(peer, proof) => {
                    let is_last = number + 1 == packets.len() && !self.inbox.is_within_packet();
                    return match is_last {
                        true => Ok(Some((peer, proof))),
                        false => Err(Violation::KindForState.into()),
                    };
                }
            }
        }
        Ok(None)
    }

    /// Sends all of a small packet: a new socket has room for it.
    fn send(&self, packet: &[u8]) -> bool {
        write(&self.socket, &[IoSlice::new(packet)]) == Moved::Bytes(packet.len())
    }

    fn judge(self, peer: PeerId, proof: &[u8], registry: &Registry) {
        let counts = &registry.around.counts;
        if registry.is_full() {
            counts.over_limit.add_one();
            return self.refuse(Reason::Busy);
        }
        if let Err(reason) = self.judge.judge(&peer) {
            counts.refused.add_one();
            return self.refuse(reason);
        }
        if !self.send(proof) {
            return counts.not_finished.add_one();
        }
        let judge = self.judge;
        match registry.link(self.socket, self.token, peer, self.inbox) {
            Ok(link) => judge.linked(Arc::new(link)),
            Err(_) => counts.not_finished.add_one(),
        }
    }

    fn fail(&self, failure: &Failure, registry: &Registry) {
        let counts = &registry.around.counts;
        match failure {
            Failure::Violation(violation) => counts.violations.count(*violation),
            Failure::Refuse(reason) => {
                counts.not_proven.add_one();
                self.refuse(*reason);
            }
            Failure::Refused(_) => counts.not_finished.add_one(),
        }
    }

    fn refuse(&self, reason: Reason) {
        self.send(&refuse(reason));
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}
