//! The sending half of a connection: who writes, and who leaves it to another.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};
use kreon_sync::{Mutex, MutexGuard};
use rustix::io::Errno;

use super::outbox::Outbox;
use super::transfer::{Moved, PARTS_MAX};

/// A small packet so soon after a write is left to the progress thread, which writes all that has come by then at once.
pub(super) const SOON: Duration = Duration::from_micros(5);

/// From this length on a packet is worth a write of its own.
const LARGE_BYTES: usize = 16 << 10;

/// The progress thread writes no more of one connection while others wait.
const TURN_BYTES: usize = 1 << 20;

/// Held packets leave at the latest when there is so much of them.
const HELD_BYTES_MAX: usize = 64 << 10;

/// What the caller is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Todo {
    /// Have the progress thread call [`Sending::progress`] when the socket takes bytes.
    pub(super) watch: bool,
    /// Wake who polls: there is room for somebody who wanted it.
    pub(super) ring: bool,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Closed here; the rest is sent until then.
    Closing {
        until: Instant,
        is_drained: bool,
    },
    /// What waited is lost. Over when the last handle is dropped.
    Lost {
        is_released: bool,
    },
}

/// What who polls is to know.
pub(super) struct News {
    pub(super) has_room: bool,
    /// Why it was closed here, if it was.
    pub(super) closed: Option<Error>,
}

/// The sending half of a connection. One thread at a time writes, without the lock; others leave their packets behind it.
pub(super) struct Sending {
    state: Mutex<State>,
    window_bytes: usize,
    soon: Duration,
}

struct State {
    outbox: Outbox,
    /// In the outbox and in the hands of who writes.
    waiting_bytes: usize,
    is_writing: bool,
    /// The progress thread will come.
    is_watched: bool,
    is_room_wanted: bool,
    has_room: bool,
    written_at: Instant,
    /// Nothing more is taken.
    ended: Option<Error>,
    /// It was closed here: the rest is sent until then.
    closing_until: Option<Instant>,
    is_lost: bool,
    /// Why a write failed, unless it was because the peer reads nothing any more.
    failed: Option<Error>,
    is_released: bool,
}

impl State {
    fn lose(&mut self, error: Error) {
        self.ended.get_or_insert(error);
        self.is_lost = true;
        self.outbox = Outbox::default();
        self.waiting_bytes = 0;
    }

    /// After a write of some of `taken`, without the lock.
    fn wrote(&mut self, moved: Moved, mut taken: Outbox) {
        self.is_writing = false;
        self.written_at = Instant::now();
        match moved {
            _ if self.is_lost => {}
            Moved::Bytes(bytes) => {
                taken.advance(bytes);
                self.waiting_bytes -= bytes;
                self.outbox.put_before(taken);
            }
            Moved::End => self.outbox.put_before(taken),
            Moved::Failed(e) => {
                let error = Error::io("send", e.into());
                self.failed = Some(error.clone()).filter(|_| e != Errno::PIPE);
                self.lose(error);
            }
        }
    }

    fn todo(&mut self, window_bytes: usize) -> Todo {
        let ring = self.is_room_wanted && self.waiting_bytes <= window_bytes / 2;
        if ring {
            self.is_room_wanted = false;
            self.has_room = true;
        }
        let watch = !self.outbox.is_empty() && !self.is_watched && !self.is_writing;
        self.is_watched |= watch;
        Todo { watch, ring }
    }
}

impl Sending {
    /// A half with this window; `soon` is mostly [`SOON`].
    pub(super) fn new(window_bytes: usize, soon: Duration) -> Self {
        Self {
            state: Mutex::new(State {
                outbox: Outbox::default(),
                waiting_bytes: 0,
                is_writing: false,
                is_watched: false,
                is_room_wanted: false,
                has_room: false,
                written_at: Instant::now(),
                ended: None,
                closing_until: None,
                is_lost: false,
                failed: None,
                is_released: false,
            }),
            window_bytes,
            soon,
        }
    }

    /// Sends a packet of `bytes` bytes, `write` being a write to the socket.
    pub(super) fn send(
        &self,
        parts: &[IoSlice<'_>],
        bytes: usize,
        mut write: impl FnMut(&[IoSlice<'_>]) -> Moved,
    ) -> Result<Todo> {
        let mut state = self.state.lock();
        if let Some(error) = &state.ended {
            return Err(error.clone());
        }
        if state.waiting_bytes > 0 && state.waiting_bytes + bytes > self.window_bytes {
            state.is_room_wanted = true;
            let text = format!("{} bytes wait to be sent", state.waiting_bytes);
            return Err(Error::new(ErrorKind::Busy, text));
        }
        let is_behind = state.waiting_bytes > 0 || state.is_writing;
        let is_left = bytes < LARGE_BYTES && state.written_at.elapsed() < self.soon;
        state.waiting_bytes += bytes;
        if is_behind || is_left || parts.len() > PARTS_MAX {
            state.outbox.push(parts, 0);
            return Ok(state.todo(self.window_bytes));
        }
        state.is_writing = true;
        drop(state);
        let moved = write(parts);
        let mut rest = Outbox::default();
        let written = match moved {
            Moved::Bytes(written) => written,
            Moved::End | Moved::Failed(_) => 0,
        };
        // The rest is all that is copied: mostly nothing.
        rest.push(parts, written);
        let mut state = self.state.lock();
        match moved {
            Moved::Bytes(written) if !state.is_lost => {
                state.waiting_bytes -= written;
                state.wrote(Moved::Bytes(0), rest);
            }
            moved => state.wrote(moved, rest),
        }
        match written == bytes && !state.is_watched {
            // What others have left meanwhile goes along.
            true => Ok(self.write_all(state, write)),
            false => Ok(state.todo(self.window_bytes)),
        }
    }

    /// Takes a packet of `bytes` bytes that is to leave together with others: [`flush`](Self::flush) follows. False: there is
    /// too much for that, and nothing was taken.
    pub(super) fn hold(&self, parts: &[IoSlice<'_>], bytes: usize) -> Result<bool> {
        let mut state = self.state.lock();
        if let Some(error) = &state.ended {
            return Err(error.clone());
        }
        let has_room = state.waiting_bytes + bytes <= HELD_BYTES_MAX.min(self.window_bytes);
        if has_room {
            state.waiting_bytes += bytes;
            state.outbox.push(parts, 0);
        }
        Ok(has_room)
    }

    /// Writes what was held, unless somebody else is writing, who takes it along.
    pub(super) fn flush(&self, write: impl FnMut(&[IoSlice<'_>]) -> Moved) -> Todo {
        self.write_all(self.state.lock(), write)
    }

    /// Writes what waits, as long as the socket takes it. For the progress thread.
    pub(super) fn progress(&self, write: impl FnMut(&[IoSlice<'_>]) -> Moved) -> Todo {
        let mut state = self.state.lock();
        state.is_watched = false;
        self.write_all(state, write)
    }

    fn write_all<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        mut write: impl FnMut(&[IoSlice<'_>]) -> Moved,
    ) -> Todo {
        let mut turn_bytes = 0;
        // Who writes at the moment has it watched again if something is left.
        while turn_bytes < TURN_BYTES && !state.outbox.is_empty() && !state.is_writing {
            let taken = state.outbox.take();
            state.is_writing = true;
            drop(state);
            let moved = write(&taken.parts());
            state = self.state.lock();
            let written = match moved {
                Moved::Bytes(written) => written,
                Moved::End | Moved::Failed(_) => 0,
            };
            state.wrote(moved, taken);
            turn_bytes += written;
            if written == 0 {
                break;
            }
        }
        state.todo(self.window_bytes)
    }

    /// Takes nothing more; what waits is sent until then. Nothing happens if it has ended before.
    pub(super) fn close(&self, why: Error, until: Instant) {
        let mut state = self.state.lock();
        if state.ended.is_none() {
            state.ended = Some(why);
            state.closing_until = Some(until);
        }
    }

    /// Takes nothing more, and what waits is lost.
    pub(super) fn lose(&self, error: Error) {
        self.state.lock().lose(error);
    }

    /// Why a write failed, if one did. The kernel tells it once, and then only that the connection has ended.
    pub(super) fn failure(&self) -> Option<Error> {
        self.state.lock().failed.clone()
    }

    /// No handle is left.
    pub(super) fn release(&self) {
        self.state.lock().is_released = true;
    }

    pub(super) fn phase(&self) -> Phase {
        let state = self.state.lock();
        match (state.is_lost, state.closing_until) {
            (true, _) => Phase::Lost {
                is_released: state.is_released || state.closing_until.is_some(),
            },
            (false, Some(until)) => Phase::Closing {
                until,
                is_drained: state.waiting_bytes == 0,
            },
            (false, None) => Phase::Open,
        }
    }

    pub(super) fn news(&self) -> News {
        let mut state = self.state.lock();
        let is_closed = state.closing_until.is_some();
        News {
            has_room: std::mem::take(&mut state.has_room) && !is_closed,
            closed: state.ended.clone().filter(|_| is_closed),
        }
    }
}
