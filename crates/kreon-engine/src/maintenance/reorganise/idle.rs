//! Values are laid together while nobody writes, whether anybody has scanned them or not.
//!
//! A pass goes over all keys in rounds: the values of some leaves that do not lie together are copied in key order, as
//! garbage collection copies them, and all reads of a round are under way at once. It stops when somebody writes, within
//! one round, and goes on there when nobody does. The copies are paid by what users gave ([`WriteBudget`]), take space as
//! those for scans do ([`Excess`](crate::space::Space::excess)), and are spilled when the pass ends: then the old segments
//! are free as a whole. Where everything fits in frames nothing is copied.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{ErrorKind, Lsn, RegionId, Result};
use kreon_sync::{Mutex, Rank, RankedMutex};

use super::super::gc::Gc;
use super::super::ground::Ground;
use super::super::spill::Spiller;
use super::pass::{PASS_BYTES_MIN, Pace, Pass, Quiet, enough};
use super::stats::IdleStats;
use super::walk::{Place, Walk};
use crate::checkpoint::catalogue::MAIN_LOG;
use crate::read::ScatteredValues;
use crate::space::{Flow, SpaceUse, WriteBudget};
use crate::tuning::{IDLE_ROUND_BYTES, IDLE_ROUND_BYTES_BESIDE_READERS};

/// Lays values together in idle time, one round at a time.
pub struct IdleReorganiser {
    on: Ground,
    scattered: Arc<ScatteredValues>,
    spiller: Arc<Spiller>,
    gc: Arc<Gc>,
    /// The log when the store was opened.
    opened_at: Lsn,
    /// One round at a time.
    turn: RankedMutex<State>,
    done: Mutex<IdleStats>,
}

struct State {
    quiet: Quiet,
    pass: Pass,
    pace: Pace,
    budget: WriteBudget,
    /// Copies wait for a spill that nobody has asked for.
    owes_spill: bool,
}

/// What comes after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Another one.
    Round,
    /// Nothing for now.
    Rest,
}

/// What comes now.
enum Now {
    /// A round from here on, of so many bytes.
    Round(Place, u64),
    /// Nothing, before a spill has ended: collection waits, too.
    Wait,
    /// Nothing.
    Rest,
}

impl IdleReorganiser {
    /// Of a store that was just opened.
    pub fn new(
        on: &Ground,
        scattered: &Arc<ScatteredValues>,
        (spiller, gc): (&Arc<Spiller>, &Arc<Gc>),
    ) -> Self {
        let storage = &on.storage;
        let never_copied = {
            let allocator = storage.allocator.lock();
            let segments = allocator.log_segments(MAIN_LOG).into_iter();
            segments
                .map(|(segment, _)| u64::from(allocator.live_bytes(segment)))
                .sum()
        };
        let flow = Flow {
            given: 0,
            written: storage.device.stats().writes.bytes,
        };
        let budget = WriteBudget::new(storage.options.idle_written_max, never_copied, flow);
        let state = State {
            quiet: Quiet::default(),
            pass: Pass::new(never_copied),
            pace: Pace::new(Instant::now()),
            budget,
            owes_spill: false,
        };
        Self {
            on: on.clone(),
            scattered: Arc::clone(scattered),
            spiller: Arc::clone(spiller),
            gc: Arc::clone(gc),
            opened_at: storage.log.tail(),
            turn: RankedMutex::new(Rank::Reorganisation, state),
            done: Mutex::default(),
        }
    }

    /// What was done so far.
    pub fn stats(&self) -> IdleStats {
        self.done.lock().clone()
    }

    /// A round, if it is idle time and there is anything to do; how long to wait for the next one then.
    ///
    /// # Errors
    /// `Corruption` of a tree or a record, `Io`: the pass is given up. `Closed`.
    pub fn step(&self) -> Result<Option<Duration>> {
        let options = &self.on.storage.options;
        let Some(mut state) = self.turn.try_lock().filter(|_| options.uses_idle_time()) else {
            return Ok(None);
        };
        self.spill_copies(&mut state);
        let (now, tail) = (Instant::now(), self.on.storage.log.tail());
        if !state.quiet.lasts(tail, now, options.idle_after) {
            self.on.space.excess().hold(false, Instant::now());
            return Ok(None);
        }
        let early = state.pace.next_at.saturating_duration_since(now);
        if !early.is_zero() {
            return Ok(Some(early));
        }
        let bytes_max = state.pace.round(self.reads());
        let next = self.round(&mut state, bytes_max)?;
        let ended = Instant::now();
        state.pace.ended(now, ended, self.reads());
        let wait = state.pace.next_at.saturating_duration_since(ended);
        Ok((next == Next::Round).then_some(wait))
    }

    /// A round now, for [`Work::LayTogether`](crate::options::Work::LayTogether).
    ///
    /// # Errors
    /// As those of [`step`](Self::step).
    pub fn round_now(&self) -> Result<()> {
        let mut state = self.turn.lock();
        self.spill_copies(&mut state);
        if !self.on.storage.options.uses_idle_time() {
            return Ok(());
        }
        let outcome = self.round(&mut state, IDLE_ROUND_BYTES);
        // Nobody tells when writers come.
        self.on.space.excess().hold(false, Instant::now());
        outcome.map(|_| ())
    }

    /// Reads at the device so far.
    fn reads(&self) -> u64 {
        self.on.storage.device.stats().reads.count
    }

    fn round(&self, state: &mut State, bytes_max: u64) -> Result<Next> {
        let now = self.now(state, bytes_max);
        let excess = self.on.space.excess();
        excess.hold(!matches!(now, Now::Rest), Instant::now());
        let Now::Round(place, bytes_max) = now else {
            return Ok(Next::Rest);
        };
        // What scans read now is laid together anyway.
        self.scattered.queue.open(false);
        let begun = Instant::now();
        let outcome = self.lay(state, place, bytes_max);
        let mut done = self.done.lock();
        done.seconds += begun.elapsed().as_secs_f64();
        done.passes = state.pass.ended;
        outcome.inspect_err(|error| {
            if error.kind() != ErrorKind::Closed {
                tracing::warn!(%error, "laying values together failed");
            }
        })
    }

    /// What is to be done now, if anything.
    fn now(&self, state: &mut State, bytes_max: u64) -> Now {
        let (storage, space) = (&self.on.storage, self.on.space.space_use());
        let least = storage.options.idle_bytes_min;
        if least.is_none() && fits_in_frames(&space, storage.split.mapping_bytes) {
            return Now::Rest;
        }
        let flow = Flow {
            given: storage.log.tail().0.saturating_sub(self.opened_at.0),
            written: storage.device.stats().writes.bytes,
        };
        // What no tree has yet is live for all that is known: else the end of a load would be forgotten.
        let live = space.log_live_bytes + self.unspilled_bytes();
        let left = state.budget.left(flow, live, space.payload_share());
        self.done.lock().budget_bytes = left;
        let enough = enough(live, least.unwrap_or(PASS_BYTES_MIN));
        let is_enough = left >= IDLE_ROUND_BYTES_BESIDE_READERS;
        let is_due = state.pass.is_due(flow.given, enough) && is_enough;
        if is_due && !self.is_unsettled(enough) {
            state.pass.begin(flow.given);
        }
        let Some(place) = state.pass.place().cloned() else {
            // The last copies are on their way into the trees.
            return match state.owes_spill || self.spiller.is_due() {
                true => Now::Wait,
                false => Now::Rest,
            };
        };
        if !is_enough || !self.on.space.has_space_to_reorganise() {
            self.ask_for_spill(state);
            return Now::Rest;
        }
        match self.leaves_l0_to_writers() {
            true => Now::Round(place, bytes_max.min(left)),
            false => Now::Wait,
        }
    }

    /// Whether L0' has room for writers: while L0 is spilled nothing else makes any.
    fn leaves_l0_to_writers(&self) -> bool {
        let storage = &self.on.storage;
        let view = storage.views.load();
        view.frozen.is_none() || view.active.bytes() < storage.split.l0_bytes / 2
    }

    /// Whether spills or merges are due, which come first. Much that is in no tree yet is spilled.
    fn is_unsettled(&self, enough: u64) -> bool {
        if self.spiller.is_due() || self.on.versions.is_merge_due() {
            return true;
        }
        let is_frozen = self.unspilled_bytes() >= enough && self.on.versions.freeze(0);
        if is_frozen {
            self.spiller.ask();
        }
        is_frozen && self.spiller.is_due()
    }

    /// Bytes of the log that no tree has yet.
    fn unspilled_bytes(&self) -> u64 {
        let storage = &self.on.storage;
        let marker = storage.ledger.lock().marker;
        storage.log.tail().0.saturating_sub(marker.0)
    }

    /// Copies what does not lie together from `place` on.
    fn lay(&self, state: &mut State, place: Place, bytes_max: u64) -> Result<Next> {
        let storage = &self.on.storage;
        let round = {
            let view = storage.views.load_full();
            let walk = Walk {
                storage,
                marker: storage.ledger.lock().marker,
                view: &view,
            };
            let round = walk.round(place, &self.regions(), bytes_max);
            round.inspect_err(|_| state.pass.give_up())?
        };
        if round.bytes > 0 {
            let moved = match self.gc.move_in_turn(&round.candidates) {
                Ok(Some(moved)) => moved,
                Ok(None) => return Ok(Next::Rest),
                Err(error) => {
                    // Others lie behind a record that cannot be read.
                    state.pass.go_on(round.next);
                    return Err(error);
                }
            };
            self.on
                .space
                .excess()
                .copied(moved.bytes_copied, Instant::now());
            let mut done = self.done.lock();
            done.records_moved += moved.records;
            done.bytes_copied += moved.bytes_copied;
            if moved.is_cut_short {
                state.pass.give_up();
                return Ok(Next::Rest);
            }
        }
        state.pass.go_on(round.next);
        if state.pass.place().is_some() {
            return Ok(Next::Round);
        }
        self.ask_for_spill(state);
        Ok(Next::Rest)
    }

    /// The regions that may be changed, in the order of their numbers.
    fn regions(&self) -> Vec<RegionId> {
        let regions = self.on.regions.list().into_iter().map(|region| region.id);
        let mut regions: Vec<_> = regions
            .filter(|region| !self.on.tree_locks.is_loading(*region))
            .collect();
        regions.sort_unstable();
        regions
    }

    fn ask_for_spill(&self, state: &mut State) {
        state.owes_spill = true;
        self.spill_copies(state);
    }

    /// Has copies spilled that are to be, once no other spill is under way: then their old places are free.
    fn spill_copies(&self, state: &mut State) {
        if !state.owes_spill || self.spiller.is_due() {
            return;
        }
        state.owes_spill = false;
        let excess = self.on.space.excess();
        if excess.wants_spill(true, Instant::now()) && self.on.versions.freeze(0) {
            self.spiller.ask();
        }
    }
}

/// Whether all live values come from frames, as a rule: an eighth of those stays free of log pages.
fn fits_in_frames(space: &SpaceUse, mapping_bytes: usize) -> bool {
    space.log_live_bytes + space.node_bytes <= mapping_bytes as u64 / 8 * 7
}
