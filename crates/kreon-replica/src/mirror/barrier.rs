//! Flushes: all committed log, then a packet that asks for durability, then the wait for all counted members.

use kreon_base::{Error, ErrorKind, Lsn, Result};
use kreon_format::{lsn_at, place_of};
use kreon_sync::{MutexGuard, Ordering};
use kreon_wire::limits::BLOCK_BYTES;
use kreon_wire::{FlushNumber, Member, StreamPacket};

use super::source::LogSource;
use super::stream::{Sent, Stream};
use super::streams::{Mirror, State};

/// Most payload of one packet of log: with a segment's header it still fits a packet.
const RUN_BYTES: u32 = 60 << 10;

/// How far the log was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pumped {
    /// All that is committed, to all counted members.
    All,
    /// A counted member has no room.
    Blocked,
}

impl Mirror {
    /// Sends all log that is committed by now, and the flush behind it.
    ///
    /// # Errors
    /// `Closed`.
    pub(super) fn begin_barrier(&self) -> Result<FlushNumber> {
        // Without a log there is nothing of it to be sent.
        let tail = self.source.get().and_then(|source| source.tail().ok());
        let upto = tail.unwrap_or(Lsn(0));
        self.ship_log(upto)?;
        self.announce(upto)
    }

    /// Waits until all counted members have answered the flush.
    ///
    /// # Errors
    /// `Closed`.
    pub(super) fn await_flush(&self, number: FlushNumber) -> Result<()> {
        self.await_counted(|stream| stream.flushed() >= number)
    }

    /// Everything written before this call is durable on all counted members when it returns.
    ///
    /// # Errors
    /// `Closed`.
    pub fn barrier(&self) -> Result<()> {
        let number = self.begin_barrier()?;
        self.await_flush(number)
    }

    /// Everything sent to a member before this call is durable there when it returns.
    ///
    /// # Errors
    /// `NotFound`; why its stream has ended; `Closed`.
    pub(crate) fn flush_member(&self, member: Member) -> Result<()> {
        // One whose link was busy has not got the first one.
        loop {
            let number = self.begin_barrier()?;
            let flushed =
                self.await_member(member, |stream| match stream.flush_sent() >= number {
                    true => (stream.flushed() >= number).then_some(true),
                    false => Some(false),
                })?;
            if flushed {
                return Ok(());
            }
        }
    }

    /// Sends the committed log before `upto` to all members, and waits for the credit of those that count.
    ///
    /// # Errors
    /// `Closed`; or the log cannot be had any more.
    fn ship_log(&self, upto: Lsn) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            state.check_open()?;
            if self.pump(&mut state, upto)? == Pumped::All {
                return Ok(());
            }
            self.changed.wait(&mut state);
        }
    }

    /// Sends the committed log before `upto` as far as there is credit.
    fn pump(&self, state: &mut MutexGuard<'_, State>, upto: Lsn) -> Result<Pumped> {
        let Some(source) = self.source.get() else {
            return Ok(Pumped::All);
        };
        let (mut pumped, mut is_blocked) = (Pumped::All, false);
        for stream in &mut state.streams {
            match pump_one(stream, &**source, upto) {
                Ok(Pumped::Blocked) => {
                    is_blocked = true;
                    if stream.is_counted {
                        pumped = Pumped::Blocked;
                    }
                }
                Ok(Pumped::All) => {}
                // A joiner was slower than the buffers of the log are used again.
                Err(error) if !stream.is_counted && is_not_in_memory(&error) => {
                    stream.fall_behind();
                }
                Err(error) if stream.is_counted && !stream.is_on_trial => return Err(error),
                Err(error) => stream.end(error),
            }
        }
        // Behind `upto` it may still be.
        state.is_log_blocked = is_blocked || (state.is_log_blocked && upto != Lsn::MAX);
        self.fail_trials(state);
        self.room_for_copies(state);
        Ok(pumped)
    }

    /// Sends all that can be sent now; for the tap.
    pub(super) fn pump_all(&self) -> Result<()> {
        match self.pump_committed()? {
            true => self
                .announce(Lsn(self.wanted.load(Ordering::Acquire)))
                .map(drop),
            false => Ok(()),
        }
    }

    /// The same, but for flushes: whether one is due.
    pub(super) fn pump_committed(&self) -> Result<bool> {
        self.has_grown.swap(false, Ordering::AcqRel);
        self.is_owed.swap(false, Ordering::AcqRel);
        let mut state = self.state.lock();
        if state.closed.is_some() || state.tap_from.is_none() {
            return Ok(false);
        }
        self.pump(&mut state, Lsn::MAX)?;
        // A flush that somebody will ask for begins as soon as its log is under way.
        let wanted = Lsn(self.wanted.load(Ordering::Acquire));
        let has_all = |stream: &Stream| stream.log_sent.is_some_and(|sent| sent >= wanted);
        let is_new = wanted > state.flush_upto;
        let is_due = is_new && state.streams.iter().filter(|s| s.is_counted).all(has_all);
        drop(state);
        if self.has_failed_trial.swap(false, Ordering::AcqRel)
            && let Some(source) = self.source.get()
        {
            source.landed();
        }
        Ok(is_due)
    }

    /// Sends a flush of everything before it, the log up to `upto` included, to all members. One at a time: each member gets
    /// flushes in the order of their numbers.
    fn announce(&self, upto: Lsn) -> Result<FlushNumber> {
        let mut state = self.state.lock();
        while state.is_announcing {
            state.check_open()?;
            self.changed.wait(&mut state);
        }
        state.check_open()?;
        state.is_announcing = true;
        let number = state.flush.next();
        state.flush = number;
        let outcome = self.send_flush(&mut state, number, upto);
        state.flush_upto = state.flush_upto.max(block_border(upto));
        state.is_announcing = false;
        drop(state);
        self.changed.notify_all();
        outcome.map(|()| number)
    }

    fn send_flush(
        &self,
        state: &mut MutexGuard<'_, State>,
        number: FlushNumber,
        upto: Lsn,
    ) -> Result<()> {
        let mut sent = Vec::new();
        loop {
            state.check_open()?;
            let mut is_done = true;
            for stream in &mut state.streams {
                if sent.contains(&stream.member) {
                    continue;
                }
                let log_upto = block_border(upto.min(stream.log_packets_end));
                match stream.send(&StreamPacket::Flush { number, log_upto }) {
                    Sent::As(_) => sent.push(stream.member),
                    // Others do not wait for a member that does not count; it gets the next one.
                    Sent::Later if !stream.is_counted => stream.give_up(),
                    Sent::Later => is_done = false,
                    Sent::Ended | Sent::Withheld => {}
                }
            }
            self.fail_trials(state);
            if is_done {
                return Ok(());
            }
            self.changed.wait(state);
        }
    }

    /// See [`LogMirror::sync`](kreon_engine::LogMirror::sync).
    pub(super) fn sync_log(&self, upto: Lsn) -> Result<Lsn> {
        let state = self.state.lock();
        state.check_open()?;
        if state.tap_from.is_none() {
            let equal_upto = state.equal_upto;
            return match upto <= equal_upto {
                true => Ok(equal_upto),
                false => Err(Error::invalid(format!(
                    "the log is to be durable up to {upto} before its tap starts at {equal_upto}"
                ))),
            };
        }
        drop(state);
        if block_border(upto) != upto {
            return Err(Error::invalid(format!(
                "a mirror is to make the middle of a block durable, {upto}"
            )));
        }
        self.ship_log(upto)?;
        if self.state.lock().flush_upto < upto {
            self.announce(upto)?;
        }
        self.await_counted(|stream| stream.log_durable() >= upto)?;
        Ok(self.durable().max(upto))
    }
}

/// Whether committed log has left memory.
pub(super) fn is_not_in_memory(error: &Error) -> bool {
    error.kind() == ErrorKind::InvalidArgument
}

/// Sends committed log before `upto` to one member.
pub(super) fn pump_one(stream: &mut Stream, source: &dyn LogSource, upto: Lsn) -> Result<Pumped> {
    while stream.ended().is_none()
        && let Some(from) = stream.log_sent
        && from < upto
    {
        let mut sent = Sent::Ended;
        let has_any = source.run(from, RUN_BYTES, &mut |run| {
            sent = stream.send(&StreamPacket::Log {
                lsn: from,
                offset: run.offset,
                bytes: run.bytes,
            });
            Ok(())
        })?;
        match (has_any, sent) {
            (true, Sent::As(_)) => {}
            (true, Sent::Later) => return Ok(Pumped::Blocked),
            _ => break,
        }
    }
    Ok(Pumped::All)
}

/// The border of a block at or before a position.
pub(crate) fn block_border(at: Lsn) -> Lsn {
    let (sequence, within) = place_of(at);
    lsn_at(sequence, within - within % BLOCK_BYTES as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_of_blocks_are_those_of_the_volume() {
        assert_eq!(block_border(lsn_at(5, 4096)), lsn_at(5, 4096));
        assert_eq!(block_border(lsn_at(5, 8184)), lsn_at(5, 4096));
        assert_eq!(block_border(lsn_at(5, 8192)), lsn_at(5, 8192));
        assert_eq!(block_border(Lsn(0)), Lsn(0));
    }
}
