//! What a backup has received, what it does next, and what it may answer. No I/O and no clock.
//!
//! Invariants:
//! - packets take effect in the order of their numbers, one piece of work at a time. Log alone may wait, until it is long or
//!   old enough, a flush comes, or a packet behind it changes the same bytes: so neither does a page overtake log that it
//!   replaces, nor log a page;
//! - a flush is answered when it has ended and everything before it, log included, was written before it began;
//! - after the seal nothing is received any more, and what was received becomes durable.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use kreon_base::{Error, Lsn, Result, planted};
use kreon_wire::{
    FlushNumber, Frame, GroupId, Inlet, Progress, Room, State, StreamNumber, StreamPacket, Term,
    Violation,
};

use super::capacity::{Capacity, Freed, first_room};
use super::doing::{Doing, Sealing};
use super::log_course::LogCourse;
use super::log_tail::LogTail;
use super::taken::{Taken, What, overlap};
use super::touched::Touched;
use super::work::{Piece, Work};

/// Log is written when there is so much of it. Larger: rarer writes, and more to be written at a flush.
pub const LOG_BATCH_BYTES: usize = 256 << 10;

/// Log is written when it is so old: what a power cut everywhere takes of acknowledged writes.
pub const LOG_DELAY: Duration = Duration::from_millis(100);

/// Most bytes of pages in one call. Larger: log behind them waits longer.
const PAGES_BATCH_BYTES: u64 = 1 << 20;

/// See the module's text. A copy of it is what it was, for tests that go on from one moment in several ways.
#[derive(Clone, Debug)]
pub struct Follower {
    group: GroupId,
    inlet: Inlet,
    capacity: Capacity,
    queue: VecDeque<Taken>,
    /// Bytes of log in the queue.
    queued_log_bytes: usize,
    /// Of a joiner: what is newer than copies.
    touched: Option<Touched>,
    course: LogCourse,
    log: LogTail,
    /// Log is to be written by then.
    log_due: Option<Instant>,
    /// The work under way.
    doing: Option<Doing>,
    applied: StreamNumber,
    flushed: FlushNumber,
    log_durable: Lsn,
    /// Bytes that left memory, by class.
    freed: Freed,
    /// Bytes of allocations that were received.
    asked_bytes: u64,
    ballast_used_bytes: u64,
    sealing: Sealing,
    refused: Option<StreamNumber>,
}

impl Follower {
    /// The end of a new stream of an in-sync backup, whose volume has this length and the log up to `log_durable`, durable.
    pub fn new(
        (group, term): (GroupId, Term),
        volume_bytes: u64,
        log_durable: Lsn,
        capacity: Capacity,
    ) -> Self {
        let inlet = Inlet::following(group, term, volume_bytes, first_room(capacity));
        Self::with(group, inlet, log_durable, capacity)
    }

    /// The end of a new stream of a joiner, whose file is empty but for its length and has no superblock. Copied blocks count
    /// as long as nothing else was sent for them.
    pub fn joining((group, term): (GroupId, Term), volume_bytes: u64, capacity: Capacity) -> Self {
        let inlet = Inlet::joining(group, term, volume_bytes, first_room(capacity));
        Self {
            touched: Some(Touched::default()),
            course: LogCourse::of_joiner(),
            ..Self::with(group, inlet, Lsn(0), capacity)
        }
    }

    fn with(group: GroupId, inlet: Inlet, log_durable: Lsn, capacity: Capacity) -> Self {
        Self {
            group,
            inlet,
            capacity,
            queue: VecDeque::new(),
            queued_log_bytes: 0,
            touched: None,
            course: LogCourse::behind(log_durable),
            log: LogTail::new(log_durable),
            log_due: None,
            doing: None,
            applied: StreamNumber(0),
            flushed: FlushNumber(0),
            log_durable,
            freed: Freed::default(),
            asked_bytes: 0,
            ballast_used_bytes: 0,
            sealing: Sealing::No,
            refused: None,
        }
    }

    /// The log before this is in the file when this is sealed; `None`: not known, as of a joiner whose copy is not complete.
    pub fn followed(&self) -> Option<Lsn> {
        let is_joining = self.inlet.state() == State::Joining;
        self.course.end().filter(|_| !is_joining)
    }

    /// The group of the stream.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The term of the stream.
    pub fn term(&self) -> Term {
        self.inlet.term()
    }

    /// Takes the next packet into memory: from then on [`progress`](Self::progress) acknowledges it.
    ///
    /// # Errors
    /// The packet is not right: nothing was taken, and the link is to be closed.
    pub fn take(&mut self, frame: &Frame<'_>, now: Instant) -> Result<(), Violation> {
        let packet = self.inlet.admit(frame)?;
        if let StreamPacket::Log { lsn, offset, bytes } = packet {
            let end = packet.log_end().unwrap_or(lsn);
            let is_joining = self.inlet.state() == State::Joining;
            let len_bytes = bytes.len() as u64;
            self.course
                .follow((lsn, offset), (end, len_bytes), is_joining)?;
            self.log_due.get_or_insert(now + LOG_DELAY);
            self.queued_log_bytes += bytes.len();
        }
        self.touch(&packet);
        let is_granted = self.is_granted(&packet);
        let taken = Taken {
            number: self.inlet.last(),
            what: What::of(&packet, is_granted, self.touched.as_ref()),
        };
        planted!(PageAfterItsLog => if self.jump_queue(&taken) { return Ok(()) });
        self.queue.push_back(taken);
        Ok(())
    }

    /// Of a joiner: what this packet changes, later copies do not. Packets take effect in their order, so what counts is which
    /// of them came first.
    fn touch(&mut self, packet: &StreamPacket<'_>) {
        let Some(touched) = &mut self.touched else {
            return;
        };
        let is_change = matches!(
            packet,
            StreamPacket::Log { .. } | StreamPacket::Pages { .. } | StreamPacket::Discard { .. }
        );
        if let Some(range) = packet.range().filter(|_| is_change) {
            touched.add(&(range.offset..range.offset + range.len_bytes));
        }
    }

    /// For the planted bug `PageAfterItsLog`: log does not wait for pages before it.
    fn jump_queue(&mut self, taken: &Taken) -> bool {
        if let What::Log { lsn, offset, bytes } = &taken.what {
            self.log.append(*lsn, *offset, bytes);
        }
        matches!(taken.what, What::Log { .. })
    }

    /// Whether an allocation is one for which the primary need not wait.
    fn is_granted(&mut self, packet: &StreamPacket<'_>) -> bool {
        let StreamPacket::Allocate { len_bytes, .. } = packet else {
            return false;
        };
        self.asked_bytes = self.asked_bytes.saturating_add(*len_bytes);
        self.asked_bytes <= self.inlet.granted().space.0
    }

    /// What is to be done to the file next; `None`: nothing yet, or the work before has not ended. Ask again when a packet
    /// was taken, at [`due`](Self::due), and after [`done`](Self::done).
    ///
    /// # Errors
    /// The stream contradicts itself: the link is to be closed.
    pub fn next(&mut self, now: Instant) -> Result<Option<Work>, Violation> {
        if self.doing.is_some() || self.sealing == Sealing::Done {
            return Ok(None);
        }
        self.gather_log();
        if self.log.whole_bytes() > 0 {
            // What lay in the queue during a write has not been due since.
            self.log_due.get_or_insert(now + LOG_DELAY);
        }
        let is_much = self.log.whole_bytes() >= LOG_BATCH_BYTES;
        let is_due = self.log_due.is_some_and(|due| due <= now) && self.log.whole_bytes() > 0;
        if is_much || is_due {
            return Ok(self.write_log(false));
        }
        if let Some(first) = self.queue.front() {
            let what = first.what.clone();
            return self.begin(what).map(Some);
        }
        Ok(match self.sealing {
            Sealing::Draining if self.log.len_bytes() > 0 => self.write_log(true),
            Sealing::Draining => {
                self.doing = Some(Doing::Last);
                Some(Work::Flush)
            }
            _ => None,
        })
    }

    /// What needs no work leaves the queue: log goes to the rest of the log, as long as that is short.
    fn gather_log(&mut self) {
        while self.log.whole_bytes() < LOG_BATCH_BYTES
            && let Some(first) = self.queue.front()
        {
            match &first.what {
                What::Log { lsn, offset, bytes } => {
                    self.queued_log_bytes = self.queued_log_bytes.saturating_sub(bytes.len());
                    self.log.append(*lsn, *offset, bytes);
                }
                What::Complete => self.touched = None,
                What::Copy { pieces, len_bytes } if pieces.is_empty() => {
                    self.freed.pages_bytes += *len_bytes;
                }
                _ => return,
            }
            self.applied = first.number;
            self.queue.pop_front();
        }
    }

    /// Begins the first packet, which is not log.
    fn begin(&mut self, what: What) -> Result<Work, Violation> {
        if what
            .changes()
            .iter()
            .any(|changed| self.log.touches(changed))
        {
            return self.write_log(false).ok_or(Violation::Order);
        }
        Ok(match what {
            What::Pages { .. } | What::Copy { .. } => self.write_pages(),
            What::Grow { len_bytes } => self.first(0, Work::Grow { len_bytes }),
            What::Allocate {
                offset,
                len_bytes,
                is_granted,
            } => {
                let work = Work::Allocate {
                    offset,
                    len_bytes,
                    is_granted,
                };
                self.first(len_bytes, work)
            }
            What::Discard { offset, len_bytes } => {
                self.first(0, Work::Discard { offset, len_bytes })
            }
            What::Flush { number, log_upto } => return self.flush(number, log_upto),
            What::Log { .. } | What::Complete => return Err(Violation::KindForState),
        })
    }

    fn first(&mut self, space_bytes: u64, work: Work) -> Work {
        self.doing = Some(Doing::First { space_bytes });
        work
    }

    fn write_log(&mut self, is_last: bool) -> Option<Work> {
        let (pieces, bytes) = self.log.take(is_last);
        let is_log = |taken: &Taken| matches!(taken.what, What::Log { .. });
        if self.log.whole_bytes() == 0 && !self.queue.iter().any(is_log) {
            self.log_due = None;
        }
        if pieces.is_empty() {
            return None;
        }
        self.doing = Some(Doing::Log(bytes));
        Some(Work::Write(pieces))
    }

    /// The pages at the head of the queue, up to the first that overlaps one before it.
    fn write_pages(&mut self) -> Work {
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut packets, mut total) = (0, 0);
        for taken in &self.queue {
            let Some((some, len_bytes)) = taken.what.pieces() else {
                break;
            };
            let is_free = |range: Range<u64>| {
                pieces.iter().all(|other| !overlap(&other.range(), &range))
                    && !self.log.touches(&range)
            };
            let is_too_much = packets > 0 && total + len_bytes > PAGES_BATCH_BYTES;
            if is_too_much || !some.iter().all(|piece| is_free(piece.range())) {
                break;
            }
            packets += 1;
            total += len_bytes;
            pieces.extend(some);
        }
        let bytes = total;
        self.doing = Some(Doing::Pages { packets, bytes });
        Work::Write(pieces)
    }

    /// Log up to `log_upto` ends a block, as all that is made durable does: it is written first.
    fn flush(&mut self, number: FlushNumber, log_upto: Lsn) -> Result<Work, Violation> {
        planted!(FlushAnsweredBeforeItsLog => {
            self.doing = Some(Doing::Flush { number, log: log_upto });
            return Ok(Work::Flush);
        });
        if self.log.whole_bytes() > 0
            && let Some(work) = self.write_log(false)
        {
            return Ok(work);
        }
        let log = self.log.written();
        if log < log_upto {
            return Err(Violation::Order);
        }
        self.doing = Some(Doing::Flush { number, log });
        Ok(Work::Flush)
    }

    /// The work that [`next`](Self::next) gave has ended.
    ///
    /// # Errors
    /// Its own error, unless the stream goes on nonetheless: then [`refusal`](Self::refusal) tells what was refused. After
    /// an error nothing more may be done to the file in this term.
    pub fn done(&mut self, outcome: Result<()>) -> Result<()> {
        match (self.doing.take(), outcome) {
            (Some(Doing::First { space_bytes }), Err(error)) if space_bytes > 0 => {
                self.end_first(space_bytes, Err(error))?;
            }
            (_, Err(error)) => return Err(error),
            (Some(Doing::First { space_bytes }), Ok(())) => self.end_first(space_bytes, Ok(()))?,
            (Some(Doing::Log(bytes)), Ok(())) => self.freed.log_bytes += bytes,
            (Some(Doing::Pages { packets, bytes }), Ok(())) => {
                for taken in self.queue.drain(..packets) {
                    self.applied = taken.number;
                }
                self.freed.pages_bytes += bytes;
            }
            (Some(Doing::Flush { number, log }), Ok(())) => {
                self.end_first(0, Ok(()))?;
                self.flushed = number;
                self.log_durable = self.log_durable.max(log);
            }
            (Some(Doing::Last), Ok(())) => {
                self.log_durable = self.log_durable.max(self.log.written());
                self.sealing = Sealing::Done;
            }
            (None, Ok(())) => {
                return Err(Error::invalid("the end of work that nobody had begun"));
            }
        }
        Ok(())
    }

    /// The first packet was carried out, or refused.
    fn end_first(&mut self, space_bytes: u64, outcome: Result<()>) -> Result<()> {
        let Some(taken) = self.queue.pop_front() else {
            return Err(Error::invalid("a packet ended that nobody had received"));
        };
        self.applied = taken.number;
        self.freed.space_bytes += space_bytes;
        if let Err(error) = outcome {
            let is_granted = matches!(
                taken.what,
                What::Allocate {
                    is_granted: true,
                    ..
                }
            );
            if is_granted || error.kind() != kreon_base::ErrorKind::OutOfSpace {
                return Err(error);
            }
            self.refused = Some(taken.number);
        }
        Ok(())
    }

    /// The allocation under way was granted and took space that was kept for it: so much less is granted from now on.
    pub fn used_ballast(&mut self, len_bytes: u64) {
        self.ballast_used_bytes += len_bytes;
    }

    /// The allocation that the device had no space for, once: to be told before the next answer.
    pub fn refusal(&mut self) -> Option<StreamNumber> {
        self.refused.take()
    }

    /// When [`next`](Self::next) is to be asked again though nothing happens.
    pub fn due(&self) -> Option<Instant> {
        self.log_due.filter(|_| self.log.whole_bytes() > 0)
    }

    /// Whether there is enough log for a write, if nothing stands before it.
    pub fn has_much_log(&self) -> bool {
        self.queued_log_bytes + self.log.len_bytes() >= LOG_BATCH_BYTES
    }

    /// What may be answered now. What it grants, [`take`](Self::take) accepts from then on.
    pub fn progress(&mut self) -> Progress {
        let room = self.room();
        self.inlet.grant(room);
        Progress {
            received: self.inlet.last(),
            written: self.applied.min(self.inlet.last()),
            flushed: self.flushed,
            log_durable: self.log_durable,
            room,
        }
    }

    /// More may be granted than was: copies that changed nothing have left memory without work.
    pub fn has_more_room(&self) -> bool {
        let granted = self.inlet.granted();
        granted.max(self.room()) != granted
    }

    fn room(&self) -> Room {
        self.freed.room(self.capacity, self.ballast_used_bytes)
    }

    /// Takes nothing any more. All that was received becomes durable, and the rest of a block of log with it, zeroes behind;
    /// [`is_sealed`](Self::is_sealed) when that is done.
    pub fn seal(&mut self) {
        self.inlet.seal();
        if self.sealing == Sealing::No {
            self.sealing = Sealing::Draining;
        }
        planted!(DrainSkippedAtSeal => self.sealing = Sealing::Done);
    }

    /// Whether it was sealed and everything that it had received is durable: the end of its log may be computed.
    pub fn is_sealed(&self) -> bool {
        self.sealing == Sealing::Done
    }
}
