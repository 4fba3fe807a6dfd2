//! One connection to a proven peer, and the link that is a handle of it.

use std::io::IoSlice;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};
use kreon_wire::Role;
use parking_lot::Mutex;

use super::counts::TcpCounts;
use super::inbox::Inbox;
use super::sending::{Phase, SOON, Sending, Todo};
use super::transfer::{Moved, read, write};
use super::waiting::{Bell, READ, Sockets, Token, WRITE, wait_readable};
use crate::bytes::Bytes;
use crate::link::{Event, Link};
use crate::packet::sendable_bytes;
use crate::peer::PeerId;
use crate::together::{Held, Together};

/// What connections of one process share.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) sockets: Arc<Sockets>,
    pub(super) counts: Arc<TcpCounts>,
    pub(super) window_bytes: usize,
    pub(super) linger: Duration,
}

/// When the progress thread looks again whether a reader has left a closed connection.
const SHORTLY: Duration = Duration::from_millis(1);

/// How a connection stands after the progress thread has served it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Open,
    /// To be served again then at the latest.
    Lingering(Instant),
    /// To be forgotten.
    Over,
}

/// One connection to a proven peer. Who polls reads the socket; who sends writes it, or the progress thread does.
pub(super) struct Connection {
    pub(super) token: Token,
    peer: PeerId,
    socket: TcpStream,
    bell: Bell,
    sending: Sending,
    receiving: Mutex<Receiving>,
    around: Surroundings,
}

struct Receiving {
    inbox: Inbox,
    packets: Vec<Bytes>,
    /// The last read has taken all there was.
    is_dry: bool,
    /// The end, once it was handed out.
    told: Option<Error>,
}

impl Connection {
    /// A connection whose socket does not block and was added to the sockets as `token`.
    pub(super) fn new(
        socket: TcpStream,
        token: Token,
        peer: PeerId,
        mut inbox: Inbox,
        around: Surroundings,
    ) -> Result<Self> {
        inbox.set_role(peer.role);
        Ok(Self {
            token,
            peer,
            socket,
            bell: Bell::new()?,
            sending: Sending::new(around.window_bytes, SOON),
            receiving: Mutex::new(Receiving {
                inbox,
                packets: Vec::new(),
                is_dry: false,
                told: None,
            }),
            around,
        })
    }

    fn follow(&self, todo: Todo) -> Result<()> {
        if todo.ring {
            self.bell.ring();
        }
        match todo.watch {
            true => self.watch(WRITE),
            false => Ok(()),
        }
    }

    fn watch(&self, events: rustix::event::epoll::EventFlags) -> Result<()> {
        let sockets = &self.around.sockets;
        sockets.watch(&self.socket, self.token, events)
    }

    /// Writes what fits. After an error nobody waits for anything of this socket.
    fn write(&self, parts: &[IoSlice<'_>]) -> Moved {
        let moved = write(&self.socket, parts);
        if let Moved::Failed(_) = moved {
            let _ = self.socket.shutdown(Shutdown::Both);
        }
        moved
    }

    /// Takes nothing more; the progress thread sends the rest and then says goodbye.
    pub(super) fn close(&self, why: &str) {
        let until = Instant::now() + self.around.linger;
        let why = Error::new(ErrorKind::Closed, why);
        self.sending.close(why, until);
        self.bell.ring();
        // If this fails the progress thread has forgotten the connection.
        let _ = self.watch(READ | WRITE);
    }

    /// Serves it, in the progress thread.
    pub(super) fn progress(&self, now: Instant) -> Standing {
        let todo = self.sending.progress(|parts| self.write(parts));
        let phase = self.sending.phase();
        if phase == Phase::Open {
            return match self.follow(todo) {
                Ok(()) => Standing::Open,
                Err(_) => Standing::Over,
            };
        }
        let (until, is_drained) = match phase {
            Phase::Closing { until, is_drained } => (until, is_drained),
            Phase::Lost { is_released: false } => return Standing::Open,
            Phase::Lost { is_released: true } | Phase::Open => return Standing::Over,
        };
        if is_drained {
            let _ = self.socket.shutdown(Shutdown::Write);
        }
        // Who polls is leaving and may still read: a part of a packet read here would be a hole there.
        let Some(_reading) = self.receiving.try_lock() else {
            return Standing::Lingering(now + SHORTLY);
        };
        let events = if is_drained { READ } else { READ | WRITE };
        match now >= until || !self.discard() || self.watch(events).is_err() {
            true => Standing::Over,
            false => Standing::Lingering(until),
        }
    }

    /// Reads what nobody wants any more, so that it does not make the kernel drop what the peer has not read yet. False at
    /// the end. Nobody else reads, as whoever polls sees first that the link is closed.
    fn discard(&self) -> bool {
        let mut nowhere = Vec::with_capacity(64 << 10);
        // So often at most: others wait.
        for _ in 0..16 {
            nowhere.clear();
            match read(&self.socket, &mut nowhere) {
                Moved::Bytes(0) => return true,
                Moved::Bytes(_) => {}
                Moved::End | Moved::Failed(_) => return false,
            }
        }
        true
    }

    /// Ends it at once, for the progress thread when it forgets the connection.
    pub(super) fn end(&self) {
        self.sending
            .lose(Error::new(ErrorKind::Closed, "the connection was ended"));
        self.around.sockets.remove(&self.socket);
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Reads once, and hands out what came.
    fn receive(&self, receiving: &mut Receiving, out: &mut Vec<Event>) {
        let error = match receiving.inbox.fill(&self.socket) {
            Moved::Bytes(_) => {
                receiving.is_dry = receiving.inbox.has_space();
                let taken = receiving.inbox.take(&mut receiving.packets);
                out.extend(receiving.packets.drain(..).map(Event::Packet));
                let Err(violation) = taken else {
                    return;
                };
                self.around.counts.violations.count(violation);
                Error::from(violation)
            }
            Moved::End => match (self.sending.failure(), receiving.inbox.is_within_packet()) {
                (Some(error), _) => error,
                (None, true) => Error::new(ErrorKind::Io, "the link ended within a packet"),
                (None, false) => Error::new(ErrorKind::Closed, "the peer has closed the link"),
            },
            Moved::Failed(e) => Error::io("receive", e.into()),
        };
        if error.kind() != ErrorKind::Closed {
            self.around.counts.broken.add_one();
        }
        self.sending.lose(error.clone());
        let _ = self.socket.shutdown(Shutdown::Both);
        receiving.told = Some(error.clone());
        out.push(Event::Closed(error));
    }

    /// Hands out what there is.
    fn tell(&self, receiving: &mut Receiving, out: &mut Vec<Event>) -> Result<()> {
        if let Some(error) = &receiving.told {
            return Err(error.clone());
        }
        let news = self.sending.news();
        if let Some(error) = news.closed {
            receiving.told = Some(error.clone());
            out.push(Event::Closed(error));
            return Ok(());
        }
        if news.has_room {
            out.push(Event::Room);
        }
        if !receiving.is_dry {
            self.receive(receiving, out);
        }
        Ok(())
    }

    /// What a gathering waits for: the socket, and the bell.
    pub(super) fn sources(&self) -> (&TcpStream, &Bell) {
        (&self.socket, &self.bell)
    }

    /// Hands out what there is, for a gathering that was told that there may be something to read, or heard the bell.
    pub(super) fn look(&self, is_readable: bool, out: &mut Vec<Event>) -> Result<()> {
        // The progress thread has it for a moment after a close; then the bell is heard once more.
        let Some(mut receiving) = self.receiving.try_lock_for(SHORTLY) else {
            return Ok(());
        };
        match is_readable {
            true => receiving.is_dry = false,
            false => self.bell.silence(),
        }
        self.tell(&mut receiving, out)
    }

    fn poll(&self, out: &mut Vec<Event>, patience: Duration) -> Result<()> {
        let start = Instant::now();
        let Some(mut receiving) = self.receiving.try_lock_for(patience) else {
            return Ok(());
        };
        let before = out.len();
        loop {
            self.tell(&mut receiving, out)?;
            let left = patience.saturating_sub(start.elapsed());
            if out.len() > before {
                return Ok(());
            }
            if !receiving.is_dry {
                match left.is_zero() {
                    true => return Ok(()),
                    false => continue,
                }
            }
            let readable = wait_readable(&self.socket, &self.bell, left)?;
            if readable.bell {
                self.bell.silence();
            }
            receiving.is_dry = !readable.socket;
            if left.is_zero() && !readable.bell && !readable.socket {
                return Ok(());
            }
        }
    }
}

impl Held for Connection {
    fn flush(&self) {
        let todo = self.sending.flush(|parts| self.write(parts));
        // If this fails the progress thread has forgotten the connection.
        let _ = self.follow(todo);
    }
}

/// A handle of a connection. Dropping the last one closes it.
pub(super) struct TcpLink(pub(super) Arc<Connection>);

impl Link for TcpLink {
    fn peer(&self) -> PeerId {
        self.0.peer
    }

    fn send(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        let connection = &*self.0;
        let bytes = sendable_bytes(parts, connection.peer.role)?;
        // A stream's sender puts together what goes together.
        if connection.peer.role != Role::PeerStream && Together::is_begun() {
            if connection.sending.hold(parts, bytes)? {
                Together::add(&self.0);
                return Ok(());
            }
            connection.flush();
        }
        let todo = connection
            .sending
            .send(parts, bytes, |parts| connection.write(parts))?;
        connection.follow(todo)
    }

    fn poll(&self, out: &mut Vec<Event>, patience: Duration) -> Result<()> {
        self.0.poll(out, patience)
    }

    fn close(&self, why: &str) {
        self.0.close(why);
    }
}

impl Drop for TcpLink {
    fn drop(&mut self) {
        self.0.sending.release();
        self.0.close("its last handle was dropped");
    }
}
