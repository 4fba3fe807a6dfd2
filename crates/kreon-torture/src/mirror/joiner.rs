//! A joiner beside a script: it is attached after a few steps, and copied a little after each of the next. It may be slow, and
//! it may die in the middle: then its next process begins anew, on what a power cut has left of the file. It may take nothing
//! for so long that the log which it lacks leaves the primary's memory.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, ErrorKind};
use kreon_device::Device;
use kreon_engine::Engine;
use kreon_replica::mirror::Mirror;
use kreon_replica::resync::{Resync, blank_slots};
use kreon_sim::{Dice, Image, Keep, SimDevice, SimOptions};
use kreon_wire::{Kind, Term};
use parking_lot::Mutex;

use super::backup::{Backup, Current, Death, Pace, member};
use super::pair::{Beside, device};

/// Steps from the attachment to the end of the copy, at the most.
const STEPS_MAX: u64 = 12;

/// A joiner that takes nothing does so for so many steps, unless the log that it lacks has left memory before.
const STALLED_STEPS_MAX: u64 = 40;

/// How long a write of a slow joiner takes.
const WRITE_TIME: Duration = Duration::from_micros(150);

/// What happens to a joiner.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    /// How often it dies, at the most: it may be complete before.
    pub deaths: u64,
    /// Its window is small, and its device slow.
    pub is_slow: bool,
    /// How often it takes nothing for a while.
    pub stalls: u64,
}

impl Trouble {
    /// Steps for which it takes nothing, at the most: the script is to have so many more.
    pub fn stalled_steps(&self) -> u64 {
        self.stalls * (STALLED_STEPS_MAX + 1)
    }
}

/// A moment at which the log that a joiner lacks has left the primary's memory.
#[derive(Clone, Copy, Debug)]
pub struct Behind {
    /// Packets that the joiner was sent.
    pub packets: usize,
    /// Events of the primary's device.
    pub events: usize,
}

/// What is known of the join.
#[derive(Default)]
pub struct Outcome {
    /// Packets that the joiner had been sent when it was complete.
    pub complete_from: Option<usize>,
    /// Processes that died before.
    pub died: u64,
    /// Those that were slower than the buffers of the log are used again.
    pub too_slow: u64,
    /// Of the last process, after some steps.
    pub behind: Vec<Behind>,
    /// Whether any process ever was.
    pub was_behind: bool,
}

impl Outcome {
    /// Whether it was complete when it had received so many packets.
    ///
    /// # Errors
    /// It never was.
    pub fn is_complete(&self, packets: usize) -> Result<bool, String> {
        let from = self.complete_from;
        from.map(|from| packets > from)
            .ok_or_else(|| "the join did not end with the script".to_owned())
    }
}

/// See the module's text.
pub struct Joiner {
    /// Its process.
    pub current: Current,
    /// How it went.
    pub outcome: Arc<Mutex<Outcome>>,
    primary: Arc<SimDevice>,
    term: Term,
    trouble: Trouble,
    dice: Dice,
    steps: u64,
    attach_after: u64,
    resync: Option<Resync>,
    /// For so many steps it has taken nothing.
    stalled: Option<u64>,
}

impl Joiner {
    /// One whose file holds `image`, of a primary on this device in `term`.
    ///
    /// # Errors
    /// Those of its device.
    pub fn new(
        image: Image,
        primary: &Arc<SimDevice>,
        term: Term,
        (trouble, seed): (Trouble, u64),
    ) -> Result<Self, String> {
        let mut dice = Dice::new(seed);
        let attach_after = 2 + dice.below(5);
        let first = process(image, (primary, term), trouble, &mut dice)?;
        Ok(Self {
            current: Arc::new(Mutex::new(first)),
            outcome: Arc::default(),
            primary: Arc::clone(primary),
            term,
            trouble,
            dice,
            steps: 0,
            attach_after,
            resync: None,
            stalled: None,
        })
    }

    /// What is done after each step of the script, by what tells its answers to `mirror`.
    pub fn beside(mut self, mirror: &Arc<Mirror>) -> Beside {
        self.current.lock().answer_to(mirror);
        Box::new(move |engine, mirror| self.after_step(engine, mirror))
    }

    fn after_step(&mut self, engine: &Engine, mirror: &Arc<Mirror>) -> Result<(), String> {
        self.steps += 1;
        if self.steps < self.attach_after || self.outcome.lock().complete_from.is_some() {
            return Ok(());
        }
        self.note_behind(mirror);
        if self.stalls() {
            // Copies would wait.
            self.attach_after += 1;
            return Ok(());
        }
        let must_end = self.steps >= self.attach_after + STEPS_MAX;
        loop {
            match self.go_on(engine, mirror, must_end) {
                Ok(()) => {}
                Err(error) if self.has_failed(mirror) => self.begin_anew(mirror, &error)?,
                Err(error) => return Err(format!("the join: {error}")),
            }
            if !must_end || self.outcome.lock().complete_from.is_some() {
                return Ok(());
            }
        }
    }

    fn note_behind(&mut self, mirror: &Mirror) {
        let standing = mirror.standing();
        if let Some(first) = standing.first().filter(|first| first.is_log_behind) {
            let mut outcome = self.outcome.lock();
            outcome.was_behind = true;
            outcome.behind.push(Behind {
                packets: first.sent.0 as usize,
                events: self.primary.events(),
            });
        }
    }

    /// Whether it takes nothing during the next step.
    fn stalls(&mut self) -> bool {
        let is_stalled = match self.stalled {
            None => self.trouble.stalls > 0 && self.resync.is_some() && self.dice.below(2) == 0,
            // It stays behind for some steps.
            Some(steps) => {
                let is_behind = !self.outcome.lock().behind.is_empty();
                steps < STALLED_STEPS_MAX && !(is_behind && self.dice.below(3) == 0)
            }
        };
        if is_stalled != self.stalled.is_some() {
            self.trouble.stalls -= u64::from(is_stalled);
            self.current.lock().stall(is_stalled);
        }
        self.stalled = is_stalled.then(|| self.stalled.map_or(0, |steps| steps + 1));
        is_stalled
    }

    fn go_on(
        &mut self,
        engine: &Engine,
        mirror: &Arc<Mirror>,
        must_end: bool,
    ) -> kreon_base::Result<()> {
        let below: &dyn Device = &*self.primary;
        let backup = Arc::clone(&self.current.lock());
        let mut resync = match self.resync.take() {
            Some(resync) => resync,
            None => {
                let room = backup.pace.room();
                mirror.attach(member(), backup.clone(), room, below.len_bytes())?;
                let resync = Resync::list(engine, mirror, member())?;
                resync.reserve(mirror)?;
                resync
            }
        };
        let mut pieces = 1 + self.dice.below(12);
        while (must_end || pieces > 0) && resync.copy(mirror, below)? {
            pieces = pieces.saturating_sub(1);
        }
        if !must_end {
            self.resync = Some(resync);
            return Ok(());
        }
        resync.complete(engine, mirror, below)?;
        if !backup.survive() {
            return Err(Error::new(
                ErrorKind::Closed,
                "it died when it was complete",
            ));
        }
        let backed = engine.occupied()?.backed;
        let backed_bytes: u64 = backed.iter().map(|(_, bytes)| bytes).sum();
        if backup.device.space_bytes() < backed_bytes {
            let text = "a joiner lacks space that nobody will ask it for again";
            return Err(Error::new(ErrorKind::OutOfSpace, text));
        }
        let standing = mirror.standing();
        self.outcome.lock().complete_from = standing.first().map(|first| first.sent.0 as usize);
        Ok(())
    }

    /// Whether it died, or was slower than the buffers of the log are used again.
    fn has_failed(&self, mirror: &Mirror) -> bool {
        let is_too_slow = || {
            let standing = mirror.standing();
            let ended = standing.first().and_then(|first| first.ended.as_ref());
            ended.is_some_and(|error| error.kind() == ErrorKind::InvalidArgument)
        };
        self.current.lock().has_died() || self.trouble.is_slow && is_too_slow()
    }

    fn begin_anew(&mut self, mirror: &Arc<Mirror>, why: &Error) -> Result<(), String> {
        self.resync = None;
        let old = Arc::clone(&self.current.lock());
        let mut outcome = self.outcome.lock();
        match old.has_died() {
            true => outcome.died += 1,
            false => outcome.too_slow += 1,
        }
        outcome.behind.clear();
        drop(outcome);
        let ended = old.end();
        ended.map_err(|what| format!("a joiner that ended with {why}: {what}"))?;
        mirror.remove(member());
        let seed = self.dice.roll();
        let history = old.device.history();
        let left = history.crash().image(&mut Keep::SomeSectors { seed });
        self.trouble.deaths = self.trouble.deaths.saturating_sub(1);
        let primary = (&self.primary, self.term);
        let next = process(left, primary, self.trouble, &mut self.dice)?;
        next.answer_to(mirror);
        *self.current.lock() = next;
        Ok(())
    }
}

/// The next process of a joiner, on what its file holds.
fn process(
    left: Image,
    (primary, term): (&Arc<SimDevice>, Term),
    trouble: Trouble,
    dice: &mut Dice,
) -> Result<Arc<Backup>, String> {
    let file = match trouble.is_slow {
        false => device(left, true),
        true => {
            let options = SimOptions {
                len_bytes_max: 256 << 20,
                write_time: WRITE_TIME,
                ..SimOptions::default()
            };
            Arc::new(SimDevice::from_image(left, options))
        }
    };
    blank_slots(&*file).map_err(|error| format!("blank: {error}"))?;
    let usual = match trouble.is_slow {
        true => Pace::slow(),
        false => Pace::usual(),
    };
    let death = (trouble.deaths > 0).then(|| death(dice));
    let devices = (file, Arc::clone(primary));
    Ok(Backup::join(devices, term, dice.roll(), usual.with(death)))
}

/// Soon after a packet of some kind: while it gets its space, in the middle of the copy, beside a spill of the primary, when the
/// copy is complete and made durable, and when its superblocks come.
fn death(dice: &mut Dice) -> Death {
    let kinds = [Kind::Allocate, Kind::Copy, Kind::Pages, Kind::Complete];
    let kind = kinds[dice.below(kinds.len() as u64) as usize];
    let behind = match kind {
        Kind::Complete => dice.below(8),
        _ => dice.below(20),
    };
    Death { kind, behind }
}
