//! What a member that does not count lacks, from the primary's file; and when it counts.
//!
//! A joiner may be slower than the primary writes. What its stream has no room for is owed to it; log whose buffers were
//! used again is owed as blocks, too, and its stream goes on with the log at a later place. It counts only when nothing is
//! owed and its log is in memory: from then on the primary waits for it.

use std::ops::Range;

use kreon_base::{Error, ErrorKind, Lsn, Result};
use kreon_device::{AlignedBuf, Device};
use kreon_sync::MutexGuard;
use kreon_wire::limits::STREAM_DATA_BYTES_MAX;
use kreon_wire::{Member, StreamPacket};

use super::barrier::{Pumped, is_not_in_memory, pump_one};
use super::members::not_there;
use super::stream::{Sent, Stream};
use super::streams::{Mirror, State};

/// Space is asked for in pieces of so many bytes.
const SPACE_BYTES: u64 = kreon_base::SEGMENT_BYTES;

impl Mirror {
    /// Whether a member lacks blocks that were written since it attached, or space for them.
    ///
    /// # Errors
    /// `NotFound`; why its stream has ended; `Closed`.
    pub(crate) fn is_owing(&self, member: Member) -> Result<bool> {
        let mut state = self.state.lock();
        let owed = &live(&mut state, member)?.owed;
        Ok(!(owed.blocks.is_empty() && owed.space.is_empty() && owed.len_bytes.is_none()))
    }

    /// Sends a member some of what it is owed, up to 64 KiB of blocks from `below`, the primary's file; how many. One thread
    /// at a time feeds a member.
    ///
    /// # Errors
    /// Those of the device; `NotFound`; why its stream has ended; `Closed`.
    pub(crate) fn feed(&self, member: Member, below: &dyn Device) -> Result<u64> {
        let mut state = self.state.lock();
        self.feed_space(&mut state, member)?;
        let owed = &mut live(&mut state, member)?.owed;
        let Some(range) = owed.begin_read(u64::from(STREAM_DATA_BYTES_MAX)) else {
            return Ok(0);
        };
        drop(state);
        let bytes = self.read_written(&range, below);
        let mut state = self.state.lock();
        let stream = live(&mut state, member)?;
        let bytes = bytes.inspect_err(|_| {
            stream.owed.reading.remove(&range);
            stream.owed.blocks.add(&range);
        })?;
        self.send_read(&mut state, member, &range, &bytes)?;
        Ok(range.end - range.start)
    }

    /// Reads a range whose writes were begun.
    fn read_written(&self, range: &Range<u64>, below: &dyn Device) -> Result<AlignedBuf> {
        self.await_calls()?;
        let mut bytes = AlignedBuf::new((range.end - range.start) as usize);
        below.read_at(range.start, &mut bytes)?;
        Ok(bytes)
    }

    /// Sends those of the blocks that nothing has changed since the read began.
    fn send_read(
        &self,
        state: &mut MutexGuard<'_, State>,
        member: Member,
        range: &Range<u64>,
        bytes: &[u8],
    ) -> Result<()> {
        loop {
            let stream = live(state, member)?;
            let parts = stream.owed.reading.parts(range, true);
            let Some(part) = parts.first() else {
                return Ok(());
            };
            let (start, end) = (part.start - range.start, part.end - range.start);
            let packet = StreamPacket::Pages {
                offset: part.start,
                bytes: bytes.get(start as usize..end as usize).unwrap_or_default(),
            };
            match stream.send(&packet) {
                Sent::Later => self.changed.wait(state),
                // A superblock slot is filled in at the end.
                Sent::Withheld => stream.owed.reading.remove(part),
                Sent::As(_) | Sent::Ended => {}
            }
        }
    }

    /// Sends the length and the space that a member is owed.
    fn feed_space(&self, state: &mut MutexGuard<'_, State>, member: Member) -> Result<()> {
        loop {
            let stream = live(state, member)?;
            let packet = match (
                stream.owed.len_bytes,
                stream.owed.space.first_run(SPACE_BYTES),
            ) {
                (Some(len_bytes), _) => StreamPacket::Grow { len_bytes },
                (None, Some(range)) => StreamPacket::Allocate {
                    offset: range.start,
                    len_bytes: range.end - range.start,
                },
                (None, None) => return Ok(()),
            };
            if stream.send(&packet) == Sent::Later {
                self.changed.wait(state);
            }
        }
    }

    /// A member is to get these blocks of the primary's file.
    ///
    /// # Errors
    /// `NotFound`; why its stream has ended; `Closed`.
    pub(crate) fn owe(&self, member: Member, ranges: &[Range<u64>]) -> Result<()> {
        let mut state = self.state.lock();
        let stream = live(&mut state, member)?;
        for range in ranges {
            stream.owed.blocks.add(range);
        }
        Ok(())
    }

    /// Where the log stands that a member lacks and that has left memory; `None`: the tap sends what it lacks.
    ///
    /// The block in which its log was cut off is filled: then its log can go on elsewhere.
    ///
    /// # Errors
    /// `NotFound`; why its stream has ended; `Closed`.
    pub(crate) fn log_behind(&self, member: Member) -> Result<Option<Lsn>> {
        let mut state = self.state.lock();
        loop {
            let stream = live(&mut state, member)?;
            let Some(lsn) = stream.owed.log_from else {
                return Ok(None);
            };
            match stream.fill_block() {
                None => return Ok(Some(lsn)),
                Some(Sent::Later) => self.changed.wait(&mut state),
                Some(_) => {}
            }
        }
    }

    /// A member was sent all log before `at`, the border of a block, from the file: the tap sends the rest.
    ///
    /// # Errors
    /// `NotFound`; why its stream has ended; `Closed`.
    pub(crate) fn resume_log(&self, member: Member, at: Lsn) -> Result<()> {
        let mut state = self.state.lock();
        live(&mut state, member)?.resume_log(at);
        self.publish(state);
        Ok(())
    }

    /// The same, but the log from `at` on is not in memory any more, or will not be.
    ///
    /// # Errors
    /// `NotFound`; why its stream has ended; `Closed`.
    pub(crate) fn resume_log_behind(&self, member: Member, at: Lsn) -> Result<()> {
        let mut state = self.state.lock();
        live(&mut state, member)?.owed.log_from = Some(at);
        Ok(())
    }

    /// Lets a member count from now on if it has all, durable, but for what was sent since its last flush and a little log in
    /// memory; it gets superblocks. Comes before the request to add it to the configuration: if its reply is lost, the member
    /// can be promoted. `false`: it was sent too little.
    ///
    /// # Errors
    /// `OutOfSpace`: it has no space for something that it was sent; `NotFound`; why its stream has ended; `Closed`.
    pub(crate) fn try_count(&self, member: Member) -> Result<bool> {
        let mut state = self.state.lock();
        let (flush, is_announcing) = (state.flush, state.is_announcing);
        let stream = live(&mut state, member)?;
        check_space(stream)?;
        // A flush that it was not sent may be the one before a superblock.
        let has_flushes = !is_announcing && stream.flush_sent() == flush;
        let is_whole = stream.owed.is_nothing() && has_flushes && self.has_log(stream)?;
        if !is_whole || !matches!(stream.send(&StreamPacket::Complete), Sent::As(_)) {
            return Ok(false);
        }
        stream.count();
        self.publish(state);
        // What waits for log that a flush covered before this member got it, waits for this one now.
        self.begin_barrier()?;
        self.await_calls()?;
        Ok(true)
    }

    /// Whether all committed log could be sent to a member.
    fn has_log(&self, stream: &mut Stream) -> Result<bool> {
        let Some(source) = self.source.get() else {
            return Ok(true);
        };
        match pump_one(stream, &**source, Lsn::MAX) {
            Ok(pumped) => Ok(pumped == Pumped::All),
            Err(error) if is_not_in_memory(&error) => {
                stream.fall_behind();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// A member that has begun to count has got everything that was written until then: from now on it is never behind.
    ///
    /// # Errors
    /// `OutOfSpace`: it has no space for something that it was sent; `NotFound`; why its stream has ended; `Closed`.
    pub(crate) fn end_trial(&self, member: Member) -> Result<()> {
        let mut state = self.state.lock();
        let stream = live(&mut state, member)?;
        check_space(stream)?;
        stream.is_on_trial = false;
        Ok(())
    }
}

fn live(state: &mut State, member: Member) -> Result<&mut Stream> {
    state.check_open()?;
    let stream = state.stream(member).ok_or_else(|| not_there(member))?;
    match stream.ended() {
        Some(error) => Err(error.clone()),
        None => Ok(stream),
    }
}

fn check_space(stream: &Stream) -> Result<()> {
    match stream.lacks_space() {
        true => Err(Error::new(
            ErrorKind::OutOfSpace,
            "the device of a joiner is full",
        )),
        false => Ok(()),
    }
}
