//! Background work at moments that a seed decides.
//!
//! Two threads use one device: the *fore*, which carries out the steps of a script, and the *back*,
//! which spills, writes the log out, syncs and checkpoints. The back waits before each call of the
//! device, and within each write and flush, until the fore lets it make a few more; so between any two
//! I/Os of a spill there may be puts, gets, scans, snapshots, batches, changes of regions and flushes,
//! and writes and flushes of both overlap. Only one of the two runs at a time, but for what needs no
//! device. Who waits for a lock that the other one holds is seen to sleep, and the other goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

use kreon_base::{Error, ErrorKind};
use kreon_engine::{Engine, Work};
use kreon_sim::{Dice, Moment, Turns};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::watchdog::without_panic;

/// What the back does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// See [`Work::Spill`].
    Spill,
    /// See [`Work::Merge`].
    Merge,
    /// See [`Work::Collect`].
    Collect,
    /// See [`Work::WriteOut`].
    WriteOut,
    /// See [`Work::Image`].
    Image,
    /// See [`Work::Prepare`].
    Prepare,
    /// Makes everything durable.
    Sync,
    /// Spills everything and makes it durable.
    Checkpoint,
}

/// A job that has ended.
pub struct Done {
    /// Which.
    pub job: Job,
    /// What came of it. Outer: what it should never do.
    pub outcome: Result<Result<(), Error>, String>,
    /// Units that were acknowledged when it began.
    pub acknowledged: usize,
}

/// See the module's text. Belongs to the fore.
pub struct Duet {
    stage: Arc<Stage>,
    back: Option<JoinHandle<()>>,
}

/// What both share.
pub struct Stage {
    scene: Mutex<Scene>,
    changed: Condvar,
    fore: Place,
}

struct Scene {
    dice: Dice,
    engine: Option<Arc<Engine>>,
    /// Units that the fore has been told of.
    acknowledged: usize,
    back: Option<Place>,
    /// Waits for the back to take it.
    job: Option<(Job, Arc<Engine>, usize)>,
    is_busy: bool,
    /// The back waits for its turn.
    is_at_gate: bool,
    /// When looked at last, the back slept on something that the fore holds.
    is_blocked: bool,
    /// Calls that the back may make.
    grants: u32,
    /// The back may make all calls.
    is_free: bool,
    /// The fore is in a call of the store, and not waiting for the back.
    is_fore_inside: bool,
    /// Counts what the fore does here: it does nothing if this stays the same.
    moves: u64,
    /// How often one of the two slept on something that the other one held: when that is let go, both run at once up
    /// to the next call of the device.
    meetings: u64,
    is_killed: bool,
    is_over: bool,
    done: Vec<Done>,
}

/// A thread, and where the system tells what it does.
#[derive(Clone)]
struct Place {
    id: ThreadId,
    stat: PathBuf,
}

impl Place {
    fn here() -> Self {
        let link = std::fs::read_link("/proc/thread-self").unwrap_or_default();
        Self {
            id: std::thread::current().id(),
            stat: PathBuf::from("/proc").join(link).join("stat"),
        }
    }

    /// Whether the thread sleeps, and still does a moment later.
    fn is_asleep(&self) -> bool {
        let sleeps = || {
            let stat = std::fs::read_to_string(&self.stat).unwrap_or_default();
            let state = stat.rsplit(')').next().unwrap_or_default();
            matches!(state.trim_start().as_bytes().first(), Some(b'S'))
        };
        let first = sleeps();
        std::thread::sleep(Duration::from_micros(100));
        first && sleeps()
    }
}

/// How long a thread goes without a move before it is looked at.
const PATIENCE: Duration = Duration::from_millis(1);

impl Duet {
    /// The calling thread is the fore. With `has_back` there is background work, as `seed` decides.
    pub fn new(seed: u64, has_back: bool) -> Self {
        let stage = Arc::new(Stage {
            scene: Mutex::new(Scene {
                dice: Dice::new(seed),
                engine: None,
                acknowledged: 0,
                back: None,
                job: None,
                is_busy: false,
                is_at_gate: false,
                is_blocked: false,
                grants: 0,
                is_free: false,
                is_fore_inside: false,
                moves: 0,
                meetings: 0,
                is_killed: false,
                is_over: false,
                done: Vec::new(),
            }),
            changed: Condvar::new(),
            fore: Place::here(),
        });
        let back = has_back.then(|| {
            let stage = Arc::clone(&stage);
            std::thread::spawn(move || stage.work())
        });
        while has_back && stage.scene.lock().back.is_none() {
            std::thread::yield_now();
        }
        Self { stage, back }
    }

    /// What the device asks.
    pub fn turns(&self) -> Arc<dyn Turns> {
        Arc::clone(&self.stage) as Arc<dyn Turns>
    }

    /// Whether there is background work.
    pub fn has_back(&self) -> bool {
        self.back.is_some()
    }

    /// The store that is open now.
    pub fn set_engine(&self, engine: Option<Arc<Engine>>) {
        self.stage.scene.lock().engine = engine;
    }

    /// The fore is about to call the store. `acknowledged` units it has been told of.
    pub fn enter(&self, acknowledged: usize) {
        self.stage.scene.lock().acknowledged = acknowledged;
        self.stage.let_back_go_on(self.has_back());
        self.stage.scene.lock().is_fore_inside = true;
    }

    /// The fore is back from the store; the jobs that have ended.
    pub fn leave(&self) -> Vec<Done> {
        let mut scene = self.stage.scene.lock();
        scene.is_fore_inside = false;
        scene.moves += 1;
        std::mem::take(&mut scene.done)
    }

    /// How often one of the two slept on something that the other one held.
    pub fn meetings(&self) -> u64 {
        self.stage.scene.lock().meetings
    }

    /// Lets the back end what it does.
    pub fn drain(&self) {
        let mut scene = self.stage.scene.lock();
        scene.is_free = true;
        self.stage.wait_until_idle(&mut scene);
        scene.is_free = false;
    }

    /// The process is killed: nothing that it has begun goes on, and `engine` is taken down without
    /// another write.
    pub fn kill(&self, engine: Option<Arc<Engine>>) {
        let mut scene = self.stage.scene.lock();
        scene.is_killed = true;
        scene.engine = None;
        scene.acknowledged = 0;
        self.stage.wait_until_idle(&mut scene);
        scene.done.clear();
        drop(scene);
        drop(engine);
        self.stage.scene.lock().is_killed = false;
    }
}

impl Drop for Duet {
    fn drop(&mut self) {
        self.kill(None);
        self.stage.scene.lock().is_over = true;
        self.stage.changed.notify_all();
        if let Some(back) = self.back.take() {
            // It catches the panics of jobs, and has none of its own.
            drop(back.join());
        }
    }
}

impl Stage {
    /// The back's life.
    fn work(&self) {
        self.scene.lock().back = Some(Place::here());
        while let Some((job, engine, acknowledged)) = self.next_job() {
            let outcome = without_panic(|| {
                Ok(match job {
                    Job::Spill => engine.background(Work::Spill),
                    Job::Merge => engine.background(Work::Merge),
                    Job::Collect => crate::store::collect(&engine),
                    Job::WriteOut => engine.background(Work::WriteOut),
                    Job::Image => engine.background(Work::Image),
                    Job::Prepare => engine.background(Work::Prepare),
                    Job::Sync => engine.sync(),
                    Job::Checkpoint => engine.checkpoint(),
                })
            });
            drop(engine);
            let mut scene = self.scene.lock();
            scene.is_busy = false;
            scene.done.push(Done {
                job,
                outcome,
                acknowledged,
            });
            self.changed.notify_all();
        }
    }

    fn next_job(&self) -> Option<(Job, Arc<Engine>, usize)> {
        let mut scene = self.scene.lock();
        loop {
            if scene.is_over {
                return None;
            }
            if let Some(job) = scene.job.take() {
                scene.is_busy = true;
                return Some(job);
            }
            let moves = scene.moves;
            if self.changed.wait_for(&mut scene, PATIENCE).timed_out()
                && self.is_fore_stuck(&mut scene, moves)
                && let Some(engine) = scene.engine.clone()
            {
                // A writer waits for room.
                scene.meetings += 1;
                scene.job = Some((Job::Spill, engine, 0));
            }
        }
    }

    /// Whether the fore sleeps in a call of the store.
    fn is_fore_stuck(&self, scene: &mut MutexGuard<'_, Scene>, moves: u64) -> bool {
        let is_same = |scene: &Scene| scene.is_fore_inside && scene.moves == moves;
        is_same(scene)
            && MutexGuard::unlocked(scene, || self.fore.is_asleep())
            && is_same(scene)
            && scene.job.is_none()
    }

    /// The back's turn; `false` if it was killed.
    fn wait_back(&self) -> bool {
        let mut scene = self.scene.lock();
        scene.is_at_gate = true;
        self.changed.notify_all();
        loop {
            let may_go = scene.is_killed || scene.is_free || scene.grants > 0;
            let moves = scene.moves;
            if may_go {
                break;
            }
            if self.changed.wait_for(&mut scene, PATIENCE).timed_out()
                && self.is_fore_stuck(&mut scene, moves)
            {
                scene.meetings += 1;
                break;
            }
        }
        scene.grants = scene.grants.saturating_sub(1);
        scene.is_at_gate = false;
        !scene.is_killed
    }

    /// Lets the back make as many calls as the dice say, after it has begun a job if they say so.
    fn let_back_go_on(&self, may_begin: bool) {
        let mut scene = self.scene.lock();
        scene.moves += 1;
        let was_inside = std::mem::replace(&mut scene.is_fore_inside, false);
        self.settle(&mut scene);
        if may_begin && !scene.is_busy {
            scene.job = scene.choose();
            self.settle(&mut scene);
        }
        let grants = match scene.dice.below(10) {
            0..=4 => 0,
            5..=7 => 1,
            8 => 3,
            _ => 12,
        };
        for _ in 0..grants {
            if !scene.is_at_gate {
                break;
            }
            scene.grants = 1;
            self.settle(&mut scene);
        }
        scene.is_fore_inside = was_inside;
        scene.moves += 1;
    }

    /// Waits until the back has come to its next call, or has nothing to do, or sleeps on something
    /// that the fore holds.
    fn settle(&self, scene: &mut MutexGuard<'_, Scene>) {
        self.changed.notify_all();
        loop {
            let is_idle = !scene.is_busy && scene.job.is_none();
            if is_idle || scene.is_at_gate && scene.grants == 0 {
                scene.is_blocked = false;
                return;
            }
            if !scene.is_blocked && !self.changed.wait_for(scene, PATIENCE).timed_out() {
                continue;
            }
            let Some(back) = scene.back.clone().filter(|_| scene.is_busy) else {
                self.changed.wait_for(scene, PATIENCE);
                continue;
            };
            let is_asleep = MutexGuard::unlocked(scene, || back.is_asleep());
            scene.is_blocked = is_asleep && scene.is_busy && !scene.is_at_gate;
            if scene.is_blocked {
                scene.meetings += 1;
                return;
            }
        }
    }

    fn wait_until_idle(&self, scene: &mut MutexGuard<'_, Scene>) {
        let was_inside = std::mem::replace(&mut scene.is_fore_inside, false);
        while scene.is_busy || scene.job.is_some() {
            self.changed.notify_all();
            self.changed.wait_for(scene, PATIENCE);
        }
        scene.is_fore_inside = was_inside;
    }
}

impl Scene {
    /// The next job of the back, or none.
    fn choose(&mut self) -> Option<(Job, Arc<Engine>, usize)> {
        let engine = self.engine.clone()?;
        let job = match self.dice.below(64) {
            0 | 1 => Job::Prepare,
            2..=31 if engine.is_spill_due() => Job::Spill,
            32..=39 => Job::WriteOut,
            40..=43 => Job::Sync,
            44 => Job::Checkpoint,
            45..=50 => Job::Image,
            51..=60 if engine.is_merge_due() => Job::Merge,
            61..=63 => Job::Collect,
            _ => return None,
        };
        Some((job, engine, self.acknowledged))
    }
}

impl Turns for Stage {
    fn wait(&self, _moment: Moment) -> bool {
        let here = std::thread::current().id();
        if here == self.fore.id {
            let scene = self.scene.lock();
            let (is_killed, has_back) = (scene.is_killed, scene.back.is_some());
            drop(scene);
            if has_back && !is_killed {
                self.let_back_go_on(true);
            }
            return !is_killed;
        }
        let is_back = self.scene.lock().back.as_ref().map(|back| back.id) == Some(here);
        !is_back || self.wait_back()
    }
}

/// Whether a job may end so.
pub fn is_harmless(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Closed | ErrorKind::OutOfSpace)
}
