//! Background work: L0 becomes full, is frozen and spilled, and what nobody reaches is given back.

use crate::sync::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Bug, ErrorKind, PAGE_BYTES, PageNo, Result, SEGMENT_PAGES};

use super::core::Core;
use crate::checkpoint::{self, Change};
use crate::level::{Frozen, View};
use crate::options::{Background, Work};
use crate::spill::{self, Orders, Spilled};
use crate::state::Ledger;
use crate::volume::page_runs::discard;
use crate::volume::{L0sReserve, Reserve};

/// L0' is taken to grow by this from one look at the space to the next, which comes with each 256 KiB of the log.
const L0_AHEAD_BYTES: usize = 2 << 20;

/// Records of so many bytes may be in the log and not in L0' yet.
const IN_FLIGHT_BYTES: u64 = 16 << 10;

/// Without threads so many rounds of collection at the most come with a spill.
const ROUNDS_INLINE: u32 = 3;

impl Core {
    /// Freezes L0' as L0 if it is full or hides too much, and asks for its spill.
    pub fn rotate(self: &Arc<Self>) {
        let is_due = self.collector.is_freeze_due(self.parts.log.tail());
        let bytes_min = match is_due && self.hides_too_much() {
            true => 0,
            false => self.split.l0_bytes,
        };
        if self.freeze(bytes_min) {
            self.want_spill();
        }
    }

    /// Freezes L0' if it has at least `bytes_min` bytes and no L0 is being spilled.
    pub fn freeze(&self, bytes_min: usize) -> bool {
        let _rotation = self.rotation.lock();
        let view = self.parts.views.load_full();
        let active = &view.active;
        if view.frozen.is_some() || active.is_empty() || !active.is_full(bytes_min) {
            return false;
        }
        let hidden_max = self.hidden_max();
        let _closed = self.gate.close();
        let end = self.parts.log.tail();
        let moved_end = self.collector.inserted();
        self.parts.log.restrain();
        self.collector.frozen_at(end, hidden_max);
        self.parts.views.change(|view| {
            let frozen = Frozen {
                l0: Arc::clone(&view.active),
                end,
                moved_end,
            };
            (
                Arc::new(view.active.successor()),
                Some(Arc::new(frozen)),
                Arc::clone(&view.levels),
            )
        });
        true
    }

    /// Has the frozen L0 spilled, by whoever does the background work.
    pub fn want_spill(self: &Arc<Self>) {
        match self.options.background {
            Background::Threads => self.spill_wanted.call(),
            // The outcome stands in `pressure`: the next write that needs room gets it.
            Background::Inline => {
                drop(self.spill_frozen().and_then(|()| self.merge_due()));
                for _ in 0..ROUNDS_INLINE {
                    if !matches!(self.collect_lazily(), Ok(true)) {
                        break;
                    }
                }
                drop(self.reorganise_all());
            }
            Background::Driven => {}
        }
    }

    /// Does a piece of background work in the calling thread.
    pub fn background(self: &Arc<Self>, work: Work) -> Result<()> {
        self.check_open()?;
        match work {
            Work::Spill => self.spill_frozen().and_then(|()| self.give_back()),
            Work::Merge => self.merge_due(),
            Work::Collect => self.collect_driven().and_then(|()| self.give_back()),
            Work::Reorganise => self.reorganise_all().map(|_| ()),
            Work::WriteOut => {
                let log = &self.parts.log;
                log.write_out(log.tail())
                    .inspect_err(|error| self.parts.poison.set(error))
            }
            Work::Image => self.take_image(1).and_then(|_| self.give_back()),
            Work::Prepare => self.prepare_some(),
        }
    }

    /// Whether a spill is wanted or under way.
    pub fn is_spill_due(&self) -> bool {
        self.parts.views.load().frozen.is_some()
    }

    /// The body of the thread that spills.
    pub fn spill_loop(self: &Arc<Self>) {
        const PATIENCE: Duration = Duration::from_millis(200);
        while !self.closed.load(Ordering::Acquire) {
            self.spill_wanted.wait(PATIENCE);
            if self.parts.views.load().frozen.is_some() && self.parts.poison.check().is_ok() {
                // Told to waiting writers through `pressure`; out of space is tried again.
                let _ = self.spill_frozen();
            }
            let _ = self.give_back();
        }
    }

    /// Spills the frozen L0, if there is one, and makes the result durable.
    pub fn spill_frozen(&self) -> Result<()> {
        let upkeep = self.upkeep.lock();
        self.parts.poison.check()?;
        let view = self.parts.views.load_full();
        let Some(frozen) = view.frozen.clone() else {
            return Ok(());
        };
        let outcome = self.spill_and_commit(&view, &frozen);
        drop((view, frozen));
        if let Err(error) = &outcome {
            tracing::warn!(%error, "a spill failed");
            if error.kind() != ErrorKind::OutOfSpace {
                self.parts.poison.set(error);
            }
        }
        // Before the next spill starts, whose pace this would end.
        self.pressure.spill_ended(&outcome);
        drop(upkeep);
        if self.options.background == Background::Threads && self.is_merge_due() {
            self.merge_wanted.call();
        }
        outcome.and_then(|()| self.give_back())
    }

    fn spill_and_commit(&self, view: &Arc<View>, frozen: &Frozen) -> Result<()> {
        // Snapshots that open from now on lie behind `frozen.end` and need only newest versions.
        let snapshots = self.snapshots.list();
        let regions = self.parts.ledger.lock().with_made(&self.parts.made).regions;
        let exists = |region| regions.contains(region);
        self.pressure.spill_starts(frozen.l0.len() as u64);
        let orders = Orders {
            exists: &exists,
            snapshots: &snapshots,
            filter_bits_per_key: self.options.filter_bits_per_key,
            workers: self.options.spill_workers(),
            progress: &self.pressure.progress,
            rewrites_all: self.options.full_compaction,
        };
        let spilled = spill::spill(&self.parts, frozen, &view.levels, &orders)?;
        self.pressure.commit_starts();
        let marker = match Bug::MarkerTooFar.is_planted() {
            true => self.parts.log.tail(),
            false => frozen.end,
        };
        let (written, read) = (spilled.kept.len(), spilled.dropped.len());
        let moved_marker = frozen.moved_end;
        let advance = |ledger: &mut Ledger| {
            ledger.marker = marker;
            ledger.moved_marker = moved_marker;
        };
        self.commit_spill(spilled, advance, false)?;
        self.merges.count_spill(read, written);
        self.note_erased(view, frozen);
        Ok(())
    }

    /// Tells those who build on the trees what ranges the spill of `frozen` took out of them; `view` has the trees as
    /// they were. Into the first one spills go, so nobody merges it beside them.
    fn note_erased(&self, view: &Arc<View>, frozen: &Frozen) {
        let lower_roots = |view: &View, region| -> BTreeSet<PageNo> {
            let lower = view.levels.of(region).iter().skip(1);
            lower.filter_map(|tree| Some(tree.root?.page)).collect()
        };
        let (ranges, now) = (frozen.l0.ranges(), self.parts.views.load());
        for region in ranges.regions() {
            if let Some(ranges) = ranges.of(region) {
                let gone = &lower_roots(view, region) - &lower_roots(&now, region);
                self.holds.erased(region, ranges, &gone, view);
            }
        }
    }

    /// Makes a change of levels durable and shows it to readers. `keep_frozen` leaves L0 in the view.
    pub fn commit_spill(
        &self,
        spilled: Spilled,
        change_ledger: impl FnOnce(&mut Ledger),
        keep_frozen: bool,
    ) -> Result<()> {
        let Spilled {
            levels,
            kept,
            dropped,
            charges,
        } = spilled;
        let levels = Arc::new(levels);
        let mut ledger = self.parts.ledger.lock();
        let mut changed = ledger.with_made(&self.parts.made);
        change_ledger(&mut changed);
        let fresh = kept.clone();
        let change = Change {
            levels: Arc::clone(&levels),
            ledger: changed,
            kept,
            dropped,
            charges,
        };
        let unreachable = match checkpoint::commit(&self.parts, &mut ledger, change) {
            Ok(unreachable) => unreachable,
            Err(error) => {
                self.forget(&fresh)?;
                return Err(error);
            }
        };
        self.parts.views.change(|view| {
            let frozen = view.frozen.clone().filter(|_| keep_frozen);
            (Arc::clone(&view.active), frozen, levels)
        });
        let soon_free = unreachable.pages.len() as u64;
        self.parts
            .views
            .retire(unreachable.pages, unreachable.segments);
        drop(ledger);
        self.set_reserve_but(soon_free);
        self.plan_space();
        Ok(())
    }

    /// Gives back fresh pages of a change that did not happen.
    pub(super) fn forget(&self, fresh: &[PageNo]) -> Result<()> {
        discard(&self.parts.mapping, fresh);
        self.parts.allocator.lock().release_pages(fresh)?;
        self.set_reserve();
        Ok(())
    }

    /// Gives back the pages and segments that no reader reaches any more.
    pub fn give_back(&self) -> Result<()> {
        let _alone = self.giving_back.lock();
        let reclaimed = self.parts.views.reclaim();
        if reclaimed.is_empty() {
            return Ok(());
        }
        for retired in reclaimed {
            discard(&self.parts.mapping, &retired.pages);
            for segment in &retired.segments {
                self.parts
                    .mapping
                    .discard(segment.first_page(), SEGMENT_PAGES);
                self.parts.log.release(*segment)?;
            }
            let mut allocator = self.parts.allocator.lock();
            allocator.release_pages(&retired.pages)?;
            self.collector.count_freed(retired.segments.len());
            for segment in retired.segments {
                allocator.reuse_segment(segment)?;
            }
        }
        self.set_reserve();
        self.plan_space();
        self.parts.allocator.lock().trim()
    }

    /// Keeps as much space in reserve as the next spill and the merges beside it may need: every node of regions with
    /// several trees written anew, once, of others as many as L0s have entries for, and the leaves that L0s add.
    pub fn set_reserve(&self) {
        self.set_reserve_but(0);
    }

    /// What a spill of L0s may need, with what they take until the log asks for more room.
    pub(super) fn l0s_reserve(&self) -> L0sReserve {
        let view = self.parts.views.load();
        let l0s = || std::iter::once(&view.active).chain(view.frozen.iter().map(|f| &f.l0));
        let since_freeze = self.collector.active_bytes(self.parts.log.tail());
        let in_flight = since_freeze.min(IN_FLIGHT_BYTES);
        L0sReserve {
            entries: l0s().map(|l0| l0.len() as u64).sum(),
            pages: l0s().map(|l0| (l0.bytes() / PAGE_BYTES) as u64).sum(),
            granted_bytes: self.parts.log.granted_bytes() + in_flight,
        }
    }

    /// How much L0' may grow until somebody asks again.
    pub(super) fn l0_ahead_bytes(&self) -> usize {
        (self.split.l0_bytes / 8)
            .max(L0_AHEAD_BYTES)
            .min(self.split.l0_bytes)
    }

    /// The same; so many pages of it will be free as soon as no reader reaches them.
    fn set_reserve_but(&self, soon_free: u64) {
        let view = self.parts.views.load();
        let sums = view.levels.sums();
        let reserve = Reserve {
            spilled_pages: sums.pages - sums.merged_pages,
            merged_pages: sums.merged_pages,
            soon_free_pages: soon_free,
            l0s: self.l0s_reserve(),
        };
        self.parts.allocator.lock().set_reserve(reserve);
    }
}
