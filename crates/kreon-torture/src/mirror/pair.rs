//! A primary and a backup under a script.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kreon_base::{Error, Lsn};
use kreon_engine::{Engine, Options};
use kreon_replica::equalise::{Primary, Tapping};
use kreon_replica::mirror::Mirror;
use kreon_sim::{Image, SimDevice, SimOptions};
use kreon_wire::Term;
use parking_lot::Mutex;

use super::backup::{Backup, Current, GROUP, Moment, member, room};
use super::compare::compare;
use crate::content::Content;
use crate::model::Model;
use crate::progress::Progress;
use crate::script::Step;
use crate::settings::options;
use crate::store::Store;

/// What is done beside the steps of a script, after each of them.
pub type Beside = Box<dyn FnMut(&Engine, &Arc<Mirror>) -> Result<(), String>>;

/// Nothing takes so many looks, one each 20 us or more, unless it hangs. Looks and not time: a process that is stopped
/// does not hang.
const LOOKS_MAX: u32 = 1_000_000;

/// A device with this content.
pub fn device(image: Image, record: bool) -> Arc<SimDevice> {
    let options = SimOptions {
        record,
        len_bytes_max: 256 << 20,
        ..SimOptions::default()
    };
    Arc::new(SimDevice::from_image(image, options))
}

/// How far a store had come when so many packets were sent.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Packets.
    pub packets: usize,
    /// How many of them had arrived when all this was acknowledged.
    pub arrived: usize,
    /// What is acknowledged as durable, and what was begun.
    pub durable: Progress,
    /// What is acknowledged as replicated, and what was begun.
    pub landed: Progress,
}

/// What came of a script.
pub struct Ran {
    /// What the store must hold after each prefix.
    pub model: Model,
    /// After the opening and after each step.
    pub marks: Vec<Mark>,
    /// The backup after each packet; the last one, if others died before.
    pub moments: Vec<Moment>,
    /// How far the store was by itself from so many events of the primary's device on.
    pub timeline: Vec<(usize, Progress)>,
    /// The devices of primary and backup.
    pub devices: (Arc<SimDevice>, Arc<SimDevice>),
}

impl Ran {
    /// What a backup that has received so many packets must hold, and may: by what is acknowledged as replicated, or as
    /// durable.
    pub fn progress(&self, packets: usize, is_sealed: bool) -> Progress {
        let of = |mark: &Mark| match is_sealed {
            true => mark.landed,
            false => mark.durable,
        };
        // A moment comes before the work for its packet, and so before what is told about it.
        let told = |mark: &&Mark| mark.arrived + usize::from(!is_sealed) <= packets;
        let least = self.marks.iter().rev().find(told);
        let most = self.marks.iter().find(|mark| mark.packets >= packets);
        let least = least.map(of).unwrap_or_default();
        let most = most.or(self.marks.last()).map(of).unwrap_or_default();
        Progress {
            begun_units: most.begun_units.max(least.begun_units),
            begun_region_changes: most.begun_region_changes.max(least.begun_region_changes),
            ..least
        }
    }

    /// The same with what a primary may have begun that has sent more packets than arrived.
    pub fn progress_between(&self, arrived: usize, sent: usize) -> Progress {
        let most = self.progress(sent, false);
        Progress {
            begun_units: most.begun_units,
            begun_region_changes: most.begun_region_changes,
            ..self.progress(arrived, false)
        }
    }
}

/// A primary and a backup, equal but for the log that the stream brings first.
pub struct Pair {
    /// The file of the primary.
    pub primary: Arc<SimDevice>,
    /// The file of the backup.
    pub backup: Arc<SimDevice>,
    /// Of the primary; above the superblocks of both.
    pub term: Term,
    /// The backup has the log up to here, durable, not beyond that of the primary.
    pub log_durable: Lsn,
    /// Positions of the log behind the end of a run, up to the border where the next one went on.
    pub seams: Vec<Range<Lsn>>,
    /// What they hold.
    pub content: Content,
}

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Of the backup.
    pub seed: u64,
    /// The log is sent by a thread, and not after each step.
    pub has_tap: bool,
}

impl Pair {
    /// Opens the store on both, and carries out the script. `before` is called when the streams are there, before the
    /// opening; it may send what the backup lacks.
    ///
    /// # Errors
    /// What the store should not have done.
    pub fn run(
        self,
        steps: &[Step],
        manner: Manner,
        before: impl FnOnce(&Mirror) -> Result<(), Error>,
    ) -> Result<Ran, String> {
        let mirror = Mirror::new(GROUP, self.term, self.log_durable);
        let both = (Arc::clone(&self.backup), Arc::clone(&self.primary));
        let backup = Backup::start(both, self.term, self.log_durable, manner.seed);
        backup.answer_to(&mirror);
        let added = mirror.add(member(), backup.clone(), self.log_durable, room());
        added.map_err(|error| format!("add: {error}"))?;
        let current = Arc::new(Mutex::new(backup));
        let mut course = Course::new(&mirror, &current);
        let outcome = before(&mirror)
            .map_err(|error| format!("before the opening: {error}"))
            .and_then(|()| course.run(&self, steps, manner));
        course.end(outcome, &self.primary)
    }

    /// Opens the store on the primary alone, and carries out the script; `beside` joins `joiner` to it, or another one.
    ///
    /// # Errors
    /// What the store should not have done.
    pub fn run_alone(
        self,
        steps: &[Step],
        manner: Manner,
        joiner: &Current,
        (mirror, beside): (&Arc<Mirror>, Beside),
    ) -> Result<Ran, String> {
        let mut course = Course {
            beside,
            ..Course::new(mirror, joiner)
        };
        let outcome = course.run(&self, steps, manner);
        course.end(outcome, &self.primary)
    }
}

struct Course {
    primary: Arc<Mutex<Option<Primary>>>,
    marks: Vec<Mark>,
    mirror: Arc<Mirror>,
    beside: Beside,
    current: Current,
    /// To whom the marks refer.
    marked: Arc<Backup>,
    timeline: Vec<(usize, Progress)>,
}

impl Course {
    fn new(mirror: &Arc<Mirror>, current: &Current) -> Self {
        Self {
            current: Arc::clone(current),
            marked: Arc::clone(&current.lock()),
            timeline: Vec::new(),
            primary: Arc::new(Mutex::new(None)),
            marks: Vec::new(),
            mirror: Arc::clone(mirror),
            beside: Box::new(|_, _| Ok(())),
        }
    }

    fn end(self, outcome: Result<Model, String>, primary: &Arc<SimDevice>) -> Result<Ran, String> {
        self.mirror.close("the script has ended");
        drop(self.primary.lock().take());
        let backup = Arc::clone(&self.current.lock());
        // What the backup says explains what the primary says.
        let moments = backup.end()?;
        Ok(Ran {
            model: outcome?,
            marks: self.marks,
            moments,
            timeline: self.timeline,
            devices: (Arc::clone(primary), Arc::clone(&backup.device)),
        })
    }

    fn run(&mut self, pair: &Pair, steps: &[Step], manner: Manner) -> Result<Model, String> {
        let mut store = self.store(pair, manner);
        store.open().map_err(|error| format!("open: {error}"))?;
        self.mark(&store)?;
        for (number, step) in steps.iter().enumerate() {
            if matches!(step, Step::Reopen | Step::Kill) {
                continue;
            }
            let outcome = store.step(step)?;
            outcome.map_err(|error| format!("step {number}: {error}"))?;
            self.mark(&store)?;
        }
        let engine = store.shared_engine().map_err(|error| error.to_string())?;
        let backup = Arc::clone(&self.current.lock().device);
        let is_same = compare(&engine, (pair, &backup), &self.mirror);
        self.timeline = store.timeline.clone();
        store.abandon();
        is_same?;
        Ok(store.model)
    }

    fn store(&self, pair: &Pair, manner: Manner) -> Store {
        let (mirror, slot) = (Arc::clone(&self.mirror), Arc::clone(&self.primary));
        let tapping = match manner.has_tap {
            true => Tapping::Thread,
            false => Tapping::Driven,
        };
        let mut store = Store::on(Image::default(), &pair.content, false);
        store.device = Arc::clone(&pair.primary);
        let opener = move |device, options| {
            let primary = Primary::open(device, Arc::clone(&mirror), options, tapping)?;
            let engine = Arc::clone(primary.engine());
            *slot.lock() = Some(primary);
            Ok(engine)
        };
        store.with(settings(manner)).opened_by(Arc::new(opener))
    }

    /// Waits until all that was written has landed, as a client does, and notes how far the store is.
    fn mark(&mut self, store: &Store) -> Result<(), String> {
        let engine = store.engine().map_err(|error| error.to_string())?;
        (self.beside)(engine, &self.mirror)?;
        let backup = Arc::clone(&self.current.lock());
        if !Arc::ptr_eq(&backup, &self.marked) {
            // What was marked before, this one is to have from its first packet on.
            let marks = self.marks.iter_mut();
            marks.for_each(|mark| (mark.packets, mark.arrived) = (0, 0));
            self.marked = Arc::clone(&backup);
        }
        let shipped = self.mirror.ship_committed();
        shipped.map_err(|error| format!("the log: {error}"))?;
        let (mut looks, tail) = (0, engine.log_tail());
        while self.mirror.landed() < tail {
            looks += 1;
            if looks > LOOKS_MAX {
                return Err(format!("the log up to {tail} does not land"));
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        let arrived = backup.arrived.load(Ordering::Acquire);
        let standing = self.mirror.standing();
        let packets = standing.first().map_or(0, |first| first.sent.0 as usize);
        let durable = store.progress;
        self.marks.push(Mark {
            packets,
            arrived,
            durable,
            landed: Progress {
                durable_units: durable.begun_units,
                durable_region_changes: durable.begun_region_changes,
                ..durable
            },
        });
        Ok(())
    }
}

/// Of the store: without a tap all that one step appends stays in buffers.
pub fn settings(manner: Manner) -> Options {
    match manner.has_tap {
        true => options(),
        false => Options {
            memory_bytes: 44 << 20,
            log_buffer_bytes: Some(32 << 20),
            ..options()
        },
    }
}
