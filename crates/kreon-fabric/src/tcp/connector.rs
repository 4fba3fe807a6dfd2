//! Connecting, in the thread of who asks for it.

use std::io::IoSlice;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};
use kreon_wire::{Reason, Role};

use super::connection::TcpLink;
use super::inbox::Inbox;
use super::registry::{Registry, challenge, prepare};
use super::transfer::{Moved, write};
use super::waiting::{Bell, wait_readable};
use crate::handshake::{Connector, Failure, Next};
use crate::peer::PeerId;

/// Connects to `to` as `me`, at most `limit`.
pub(super) fn connect(
    registry: &Registry,
    to: SocketAddr,
    me: &PeerId,
    limit: Duration,
) -> Result<TcpLink> {
    if me.role == Role::BeforeProof {
        return Err(Error::invalid("a link has a role"));
    }
    let until = Instant::now() + limit;
    let limit = limit.max(Duration::from_millis(1));
    let socket = TcpStream::connect_timeout(&to, limit).map_err(|e| Error::io("connect", e))?;
    prepare(&socket, &registry.settings)?;
    let proof = Duration::from_millis(registry.settings.proof_ms.into());
    let mut asking = Asking {
        registry,
        socket,
        bell: Bell::new()?,
        inbox: Inbox::new(Role::BeforeProof),
        until: until.min(Instant::now() + proof),
    };
    let peer = asking.ask(me)?;
    let token = registry.next_token();
    registry.around.sockets.add(&asking.socket, token)?;
    registry.link(asking.socket, token, peer, asking.inbox)
}

/// A connection whose other end has not proven who it is.
struct Asking<'a> {
    registry: &'a Registry,
    socket: TcpStream,
    /// Nobody rings it.
    bell: Bell,
    inbox: Inbox,
    until: Instant,
}

impl Asking<'_> {
    /// Both ends prove who they are.
    fn ask(&mut self, me: &PeerId) -> Result<PeerId> {
        let credentials = &self.registry.credentials;
        let (mut connector, hello) = Connector::new(*me, credentials, challenge()?)?;
        self.send(&hello)?;
        loop {
            let packet = self.next_packet()?;
            match connector.take(&packet) {
                Ok(Next::Send(proof)) => self.send(&proof)?,
                Ok(Next::Linked(peer)) => return Ok(peer),
                Err(failure) => return Err(self.failed(failure)),
            }
        }
    }

    fn send(&self, packet: &[u8]) -> Result<()> {
        match write(&self.socket, &[IoSlice::new(packet)]) {
            Moved::Bytes(bytes) if bytes == packet.len() => Ok(()),
            Moved::Failed(e) => Err(Error::io("send to it", e.into())),
            Moved::Bytes(_) | Moved::End => Err(Error::new(ErrorKind::Io, "it takes no bytes")),
        }
    }

    fn next_packet(&mut self) -> Result<Vec<u8>> {
        loop {
            // What comes behind the proof is of the link and stays in the inbox.
            match self.inbox.take_one() {
                Ok(Some(packet)) => return Ok(packet),
                Ok(None) => {}
                Err(violation) => return Err(self.failed(violation.into())),
            }
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.registry.around.counts.not_finished.add_one();
                return Err(Error::new(ErrorKind::Io, "no answer in time"));
            }
            wait_readable(&self.socket, &self.bell, left)?;
            match self.inbox.fill(&self.socket) {
                Moved::Bytes(_) => {}
                Moved::End => {
                    self.registry.around.counts.not_finished.add_one();
                    return Err(Error::new(ErrorKind::Io, "it hangs up"));
                }
                Moved::Failed(e) => return Err(Error::io("receive from it", e.into())),
            }
        }
    }

    fn failed(&self, failure: Failure) -> Error {
        let counts = &self.registry.around.counts;
        match failure {
            Failure::Violation(violation) => {
                counts.violations.count(violation);
                Error::from(violation)
            }
            Failure::Refuse(reason) => {
                counts.not_proven.add_one();
                let text = match reason {
                    Reason::OtherCluster => "it belongs to another cluster",
                    _ => "it has not proven that it has the key, or one of the two has none",
                };
                Error::new(ErrorKind::Closed, text)
            }
            Failure::Refused(reason) => {
                Error::new(ErrorKind::Closed, format!("the peer refuses: {reason:?}"))
            }
        }
    }
}
