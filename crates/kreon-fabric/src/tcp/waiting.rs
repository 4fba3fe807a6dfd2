//! Waiting for sockets: what of the kernel's interface is used, as calls that know their errors.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use kreon_base::{Error, Result};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::io::Errno;

/// Wakes a thread that waits in [`wait_readable`] or [`Sockets::wait`].
pub(super) struct Bell(OwnedFd);

impl Bell {
    pub(super) fn new() -> Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        fd.map(Self)
            .map_err(|e| Error::io("make an eventfd", e.into()))
    }

    /// Rings, until [`silence`](Self::silence).
    pub(super) fn ring(&self) {
        // It fails only when it has been rung 2^64 times.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(super) fn silence(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Which of two have something to read.
#[derive(Clone, Copy, Default)]
pub(super) struct Readable {
    pub(super) socket: bool,
    pub(super) bell: bool,
}

/// Waits until the socket can be read or has failed, or the bell rings, at most `patience`. May return early.
pub(super) fn wait_readable(
    socket: impl AsFd,
    bell: &Bell,
    patience: Duration,
) -> Result<Readable> {
    let mut fds = [
        PollFd::new(&socket, PollFlags::IN),
        PollFd::new(bell, PollFlags::IN),
    ];
    match rustix::event::poll(&mut fds, Some(&timespec(patience))) {
        Ok(_) => Ok(Readable {
            socket: !fds[0].revents().is_empty(),
            bell: !fds[1].revents().is_empty(),
        }),
        Err(Errno::INTR) => Ok(Readable::default()),
        Err(e) => Err(Error::io("wait for a socket", e.into())),
    }
}

/// Rounded up to the next microsecond, so that nobody wakes in vain just before the end. At most a day.
fn timespec(time: Duration) -> Timespec {
    let micros = time.as_nanos().div_ceil(1000).min(86_400_000_000) as i64;
    Timespec {
        tv_sec: micros / 1_000_000,
        tv_nsec: (micros % 1_000_000) * 1000,
    }
}

/// Which socket is meant.
pub(super) type Token = u64;

/// The sockets that the progress thread or a gathering waits for. For the progress thread each is watched for one event at a
/// time and then no more, until it is watched again.
pub(super) struct Sockets(OwnedFd);

impl Sockets {
    pub(super) fn new() -> Result<Self> {
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC);
        fd.map(Self)
            .map_err(|e| Error::io("make an epoll", e.into()))
    }

    /// Adds a socket that is not watched for anything.
    pub(super) fn add(&self, socket: impl AsFd, token: Token) -> Result<()> {
        let flags = EventFlags::ONESHOT;
        let added = epoll::add(&self.0, socket, EventData::new_u64(token), flags);
        added.map_err(|e| Error::io("add a socket to an epoll", e.into()))
    }

    /// Adds one that is watched for reading until it is removed.
    pub(super) fn keep(&self, source: impl AsFd, token: Token) -> Result<()> {
        let added = epoll::add(&self.0, source, EventData::new_u64(token), EventFlags::IN);
        added.map_err(|e| Error::io("add a socket to an epoll", e.into()))
    }

    /// Watches it until it can be read or written, as asked, or has failed.
    pub(super) fn watch(&self, socket: impl AsFd, token: Token, events: EventFlags) -> Result<()> {
        let flags = events | EventFlags::ONESHOT;
        let changed = epoll::modify(&self.0, socket, EventData::new_u64(token), flags);
        changed.map_err(|e| Error::io("watch a socket", e.into()))
    }

    /// Forgets a socket. One that is closed is forgotten without.
    pub(super) fn remove(&self, socket: impl AsFd) {
        let _ = epoll::delete(&self.0, socket);
    }

    /// Waits until something happens to a watched socket, at most `patience` if there is one.
    pub(super) fn wait(&self, ready: &mut Vec<Token>, patience: Option<Duration>) -> Result<()> {
        let mut events = Vec::with_capacity(64);
        let timeout = patience.map(timespec);
        let buffer = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.0, buffer, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {
                ready.extend(events.iter().map(|event| event.data.u64()));
                Ok(())
            }
            Err(e) => Err(Error::io("wait for sockets", e.into())),
        }
    }
}

pub(super) const READ: EventFlags = EventFlags::IN;
pub(super) const WRITE: EventFlags = EventFlags::OUT;
