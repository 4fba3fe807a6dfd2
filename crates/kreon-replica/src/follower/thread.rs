//! The thread that does a follower's work.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use kreon_base::{Error, ErrorKind, Lsn, Result};
use kreon_device::Device;
use kreon_sync::{Condvar, Mutex, MutexGuard};
use kreon_wire::{
    Address, Control, Frame, Kind, Progress, Reason, Refused, StreamNumber, Violation,
};

use super::ballast::Ballast;
use super::core::Follower;
use super::early_flush::EarlyFlush;
use super::work::Work;

/// What the follower has to tell its primary.
#[derive(Clone, Debug)]
pub enum Answer {
    /// How far it is.
    Progress(Progress),
    /// The device has no space for the allocation with this number, which nobody had granted. The stream goes on.
    NoSpace(StreamNumber),
    /// The stream has ended: the device failed, or a packet contradicted what came before. The link is to be closed.
    Ended(Error),
}

impl Answer {
    /// The packet, as a follower of `to`'s group and term sends it; none for the end of a stream.
    pub fn encode(&self, to: &Address) -> Option<Vec<u8>> {
        match self {
            Self::Progress(progress) => Some(progress.encode(to.group, to.term).to_vec()),
            Self::NoSpace(number) => {
                let refused = Refused {
                    reason: Reason::NoSpace,
                    kind: Kind::Allocate,
                    term: to.term,
                };
                let to = Address {
                    number: number.0,
                    ..*to
                };
                Some(Control::Refused(refused).encode(&to))
            }
            Self::Ended(_) => None,
        }
    }
}

type Tell = Box<dyn Fn(Answer) + Send + Sync>;

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    device: Arc<dyn Device>,
    ballast: Option<Ballast>,
    tell: Tell,
}

struct State {
    follower: Follower,
    /// The thread waits until log is due: more log is no reason to wake it, until there is enough for a write.
    is_timed: bool,
    /// Nothing more is done to the file.
    ended: Option<Error>,
}

/// A follower with the thread that writes its file. Packets come from the thread that polls the link.
pub struct FollowerThread {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl FollowerThread {
    /// Starts the thread. `tell` is called for each answer, in order, and must not wait.
    ///
    /// # Errors
    /// `Io`: no thread can be started.
    pub fn start(
        follower: Follower,
        device: Arc<dyn Device>,
        ballast: Option<Ballast>,
        tell: impl Fn(Answer) + Send + Sync + 'static,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                follower,
                is_timed: false,
                ended: None,
            }),
            changed: Condvar::new(),
            device,
            ballast,
            tell: Box::new(tell),
        });
        let mine = Arc::clone(&shared);
        let thread = Builder::new()
            .name("kreon-follower".into())
            .spawn(move || mine.run())
            .map_err(|error| Error::io("start a follower's thread", error))?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Takes the next packet into memory. Does no storage work.
    ///
    /// # Errors
    /// The packet is not right: the link is to be closed.
    pub fn take(&self, frame: &Frame<'_>) -> Result<(), Violation> {
        let mut state = self.shared.state.lock();
        state.follower.take(frame, Instant::now())?;
        let is_log = frame.header().kind == Kind::Log;
        let may_wait = state.is_timed && is_log && !state.follower.has_much_log();
        drop(state);
        if !may_wait {
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    /// Tells how far the follower is: after one or some [`take`](Self::take).
    pub fn acknowledge(&self) {
        let mut state = self.shared.state.lock();
        self.shared.tell_progress(&mut state);
    }

    /// See [`Follower::followed`].
    pub fn followed(&self) -> Option<Lsn> {
        self.shared.state.lock().follower.followed()
    }

    /// Takes nothing any more and makes durable all that was received. On return nothing is under way in the file.
    ///
    /// # Errors
    /// The device failed, now or before.
    pub fn seal(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        state.follower.seal();
        self.shared.changed.notify_all();
        while !state.follower.is_sealed() && state.ended.is_none() {
            self.shared.changed.wait(&mut state);
        }
        let outcome = match (&state.ended, state.follower.is_sealed()) {
            (Some(error), false) => Err(error.clone()),
            _ => Ok(()),
        };
        drop(state);
        self.stop();
        outcome
    }

    /// Ends the work where it is: the file stays as a whole older state of the volume. On return nothing is under way in it.
    pub fn stop(&self) {
        let closed = || Error::new(ErrorKind::Closed, "the follower was stopped");
        self.shared.state.lock().ended.get_or_insert_with(closed);
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("a follower's thread had panicked");
        }
    }
}

impl Drop for FollowerThread {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn run(&self) {
        let mut early = EarlyFlush::default();
        let mut state = self.state.lock();
        while state.ended.is_none() && !state.follower.is_sealed() {
            match state.follower.next(Instant::now()) {
                Ok(Some(work)) => {
                    let outcome = MutexGuard::unlocked(&mut state, || {
                        work.perform(&*self.device)?;
                        match early.is_due_behind(&work) {
                            true => self.device.flush(),
                            false => Ok(()),
                        }
                    });
                    self.end_work(&mut state, &work, outcome);
                }
                Ok(None) => {
                    // No work ends that would tell it, and the primary may wait for it and send nothing more.
                    if state.follower.has_more_room() {
                        self.tell_progress(&mut state);
                    }
                    self.wait(&mut state);
                }
                Err(violation) => self.end(&mut state, violation.into()),
            }
        }
        self.changed.notify_all();
    }

    fn wait(&self, state: &mut MutexGuard<'_, State>) {
        match state.follower.due() {
            Some(due) => {
                state.is_timed = true;
                self.changed.wait_until(state, due);
                state.is_timed = false;
            }
            None => self.changed.wait(state),
        }
    }

    fn end_work(&self, state: &mut State, work: &Work, outcome: Result<()>) {
        let outcome = outcome.or_else(|error| self.use_ballast(state, work, error));
        match state.follower.done(outcome) {
            Ok(()) => {
                if let Some(number) = state.follower.refusal() {
                    (self.tell)(Answer::NoSpace(number));
                }
                self.tell_progress(state);
            }
            Err(error) => self.end(state, error),
        }
    }

    /// Tries a granted allocation again, with the space that was kept for it.
    fn use_ballast(&self, state: &mut State, work: &Work, error: Error) -> Result<()> {
        let Work::Allocate {
            len_bytes,
            is_granted: true,
            ..
        } = work
        else {
            return Err(error);
        };
        let Some(ballast) = &self.ballast else {
            return Err(error);
        };
        ballast.give(*len_bytes)?;
        work.perform(&*self.device)?;
        state.follower.used_ballast(*len_bytes);
        Ok(())
    }

    fn tell_progress(&self, state: &mut State) {
        if state.ended.is_none() {
            let progress = state.follower.progress();
            (self.tell)(Answer::Progress(progress));
        }
    }

    fn end(&self, state: &mut State, error: Error) {
        if state.ended.is_none() {
            tracing::warn!(%error, "a follower ends");
            state.ended = Some(error.clone());
            (self.tell)(Answer::Ended(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use kreon_sim::{SimDevice, SimOptions};
    use kreon_wire::{GroupId, Role, StreamPacket, Term};

    use super::super::capacity::Capacity;
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn room_of_copies_that_change_nothing_is_told_though_nothing_else_comes() {
        const TOTAL_BYTES: u64 = 4 << 20;
        let (ids, capacity) = ((GroupId(1), Term(2)), Capacity::default());
        let (told, answers) = channel();
        let tell = move |answer| _ = told.send(answer);
        let device = Arc::new(SimDevice::new(SimOptions::default()));
        let follower = Follower::joining(ids, 0, capacity);
        let follower = FollowerThread::start(follower, device, None, tell).unwrap();
        let mut number = StreamNumber(0);
        let mut take = |packet: &StreamPacket<'_>| {
            number = number.next();
            let bytes = packet.encode(ids.0, ids.1, number).to_vec();
            let frame = Frame::open(&bytes, Role::PeerStream).unwrap();
            follower.take(&frame).unwrap();
            number
        };
        let await_progress = |is_it: &dyn Fn(&Progress) -> bool| loop {
            let answer = answers.recv_timeout(LONG).expect("nothing is told");
            if let Answer::Progress(progress) = answer
                && is_it(&progress)
            {
                return;
            }
        };
        let (offset, len_bytes) = (0, TOTAL_BYTES);
        take(&StreamPacket::Grow { len_bytes });
        // What is copied was freed since it was listed.
        let last = take(&StreamPacket::Discard { offset, len_bytes });
        await_progress(&|progress| progress.written == last);
        let mut sent_bytes = 0;
        for _ in 0..2 {
            for _ in 0..capacity.pages_bytes >> 16 {
                let (offset, bytes) = (sent_bytes, &[1; 64 << 10]);
                take(&StreamPacket::Copy { offset, bytes });
                sent_bytes += 64 << 10;
            }
            let room_bytes = sent_bytes + capacity.pages_bytes;
            await_progress(&|progress| progress.room.pages.0 == room_bytes);
        }
    }
}
