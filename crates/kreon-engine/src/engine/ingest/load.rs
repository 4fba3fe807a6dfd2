//! A load from its beginning to its end.

use std::collections::BTreeSet;
use std::sync::Arc;

use kreon_base::{Bug, Error, ErrorKind, Lsn, PageNo, RegionId, Result};
use kreon_format::TreeRecord;

use super::incoming::{Incoming, Pairs, append, record};
use crate::engine::core::Core;
use crate::engine::levels::{Hold, Purpose as HeldFor, TREES_MAX};
use crate::engine::region::RegionState;
use crate::level::{Curtain, Levels, View};
use crate::spill::charges::Charges;
use crate::spill::sink::FreshNodes;
use crate::spill::{Erasing, LEAF_FILL, Spilled};
use crate::tree::{self, Changes, MergeRules, Reference};
use crate::volume::{PageRuns, Purpose};

/// Trees that a load found, with a place for what is spilled meanwhile above them.
struct Ground<'a> {
    core: &'a Core,
    kept_log: KeptLog<'a>,
    hold: Hold<'a>,
    region: &'a RegionState,
    /// How many there were, counted from the lowest.
    trees: usize,
}

/// Keeps log segments that no tree points at yet from being freed.
struct KeptLog<'a> {
    core: &'a Core,
    region: RegionId,
}

impl<'a> KeptLog<'a> {
    /// From the log's tail on.
    fn new(core: &'a Core, region: RegionId) -> Self {
        if !Bug::LoadNotKept.is_planted() {
            let tail = core.parts.log.tail();
            core.parts.ledger.lock().loads.insert(region, tail);
        }
        Self { core, region }
    }
}

impl Drop for KeptLog<'_> {
    fn drop(&mut self) {
        self.core.parts.ledger.lock().loads.remove(&self.region);
    }
}

/// A finished tree that no checkpoint has.
struct Built<'a> {
    record: TreeRecord,
    pages: PageRuns<'a>,
    pointed: Pointed<'a>,
}

/// Nobody sees the tree yet, and nothing is beneath it that it would hide.
fn rules(core: &Core) -> MergeRules<'static> {
    MergeRules {
        snapshots: &[],
        last_level: true,
        fill: LEAF_FILL,
        rewrites_all: false,
        filter_bits_per_key: core.options.filter_bits_per_key,
    }
}

impl Core {
    /// Loads `pairs` into `region`, all or none; returns how many. Durable when it returns.
    ///
    /// # Errors
    /// `InvalidArgument` if keys do not ascend or are too long, `Busy` during another load into the region,
    /// `OutOfSpace`, `Closed`, `Poisoned`, and those of `pairs`: nothing of the load is there. `Io`: it is not
    /// known whether it will be there when the store is opened again.
    pub fn ingest(self: &Arc<Self>, region: &RegionState, pairs: &mut impl Pairs) -> Result<u64> {
        self.check_writable()?;
        region.check()?;
        let ground = self.ground(region)?;
        let mut incoming = Incoming::new(self, region, pairs);
        let loaded = build(self, region, &mut incoming)
            .and_then(|built| built.map_or(Ok(()), |built| ground.commit(built)));
        let count = incoming.count;
        let Ground { kept_log, hold, .. } = ground;
        drop(kept_log);
        if let Err(error) = &loaded {
            if error.kind() == ErrorKind::Io && !incoming.is_refused {
                self.parts.poison.set(error);
            }
            self.give_back_load(region);
        }
        drop(hold);
        if let Err(error) = self.merge_region(region.id)
            && error.kind() != ErrorKind::Closed
        {
            tracing::warn!(%error, "the trees of a load are merged later");
        }
        loaded.map(|()| count)
    }

    /// Spills what is older than the load, and keeps what comes from now on apart from it.
    fn ground<'a>(self: &'a Arc<Self>, region: &'a RegionState) -> Result<Ground<'a>> {
        let may_wait = || self.check_writable();
        let hold = self.holds.take_whole(region.id, HeldFor::Load, may_wait)?;
        if self.parts.views.load().levels.of(region.id).len() > TREES_MAX {
            return Err(Error::new(
                ErrorKind::OutOfSpace,
                "earlier loads could not be made one tree with the rest of the region",
            ));
        }
        self.checkpoint()?;
        let _upkeep = self.upkeep.lock();
        region.check()?;
        hold.begin_load();
        let ground = Ground {
            core: self,
            // Before the first record, so that no checkpoint frees its segment.
            kept_log: KeptLog::new(self, region.id),
            hold,
            region,
            trees: self.put_empty_tree_on(region.id),
        };
        // Tells whoever repairs a damaged store that records from before may be outdated.
        append(self, region, b"", b"")?;
        Ok(ground)
    }

    /// After a failure: the records of the load are dead; a checkpoint with the marker behind them frees
    /// their segments. As well as that goes.
    fn give_back_load(self: &Arc<Self>, region: &RegionState) {
        if self.check_writable().is_err() {
            return;
        }
        let given_back = self.checkpoint().and_then(|()| {
            let _upkeep = self.upkeep.lock();
            self.tidy(region.id);
            let view = self.parts.views.load_full();
            let change = Spilled::nothing(Levels::clone(&view.levels));
            drop(view);
            let marker = self.quiet_tail();
            self.commit_spill(change, |ledger| ledger.advance(marker), true)
        });
        if let Err(error) = given_back.and_then(|()| self.give_back()) {
            tracing::warn!(%error, "the space of a failed load is given back later");
        }
    }

    /// The log's tail, if all that was written is in the levels. The caller holds `upkeep`.
    pub fn quiet_tail(&self) -> Option<Lsn> {
        let _rotation = self.rotation.lock();
        let _closed = self.gate.close();
        let view = self.parts.views.load();
        let is_quiet = view.frozen.is_none() && view.active.is_empty();
        is_quiet.then(|| self.parts.log.tail())
    }

    /// Opens `curtain` for all but the snapshots that are open.
    fn reveal(&self, region: &RegionState, curtain: &Curtain) -> Result<()> {
        let _closed = self.gate.close();
        let log = &self.parts.log;
        if self.snapshots.newest() == Some(log.tail()) {
            // Later ones would be at the same position.
            let moved = log.append_one(&record(region, b"", b""));
            moved
                .map_err(not_shown)
                .inspect_err(|error| self.parts.poison.set(error))?;
        }
        let last = match Bug::LoadSeenBySnapshots.is_planted() {
            true => Lsn(0),
            false => Lsn(log.tail().0.saturating_sub(1)),
        };
        // What it shows nobody put.
        region.gaps.clear();
        curtain.open(last);
        Ok(())
    }
}

/// Builds the tree; none if there are no pairs.
fn build<'a, P: Pairs>(
    core: &'a Core,
    region: &RegionState,
    incoming: &mut Incoming<'_, P>,
) -> Result<Option<Built<'a>>> {
    let parts = &core.parts;
    let epoch = parts.ledger.lock().epoch.next();
    let mut pages = PageRuns::with_purpose(&parts.allocator, &parts.mapping, Purpose::Put);
    let what = (parts.store, epoch, region.id, 1);
    let mut sink = FreshNodes::new(&parts.mapping, &mut pages, what);
    let rules = rules(core);
    let nodes = core.nodes_of_level(region.id, 1);
    let mut pointed = Pointed {
        charges: Charges::new(&parts.log),
        freed: Vec::new(),
    };
    let empty = TreeRecord::default();
    let record = tree::merge(&nodes, &mut sink, &empty, incoming, &rules, &mut pointed)?;
    Ok(record.root.is_some().then_some(Built {
        record,
        pages,
        pointed,
    }))
}

/// Counts what the fresh tree points at.
struct Pointed<'a> {
    charges: Charges<'a>,
    /// Fresh pages that are part of the tree no more.
    freed: Vec<PageNo>,
}

impl Changes for Pointed<'_> {
    fn freed(&mut self, page: PageNo) {
        self.freed.push(page);
    }

    fn referenced(&mut self, record: Reference) {
        self.charges.add(&record);
    }

    fn dropped(&mut self, record: Reference) {
        self.charges.drop(&record);
    }
}

impl<'a> Ground<'a> {
    /// Makes the tree durable, then visible.
    fn commit(&self, mut built: Built<'a>) -> Result<()> {
        let (core, region) = (self.core, self.region);
        let log = &core.parts.log;
        let sync = || {
            log.sync(log.tail())
                .inspect_err(|error| core.parts.poison.set(error))
        };
        // Before the locks are taken; the checkpoint finds little left to do.
        sync()?;
        core.parts
            .mapping
            .sync()
            .inspect_err(|error| core.parts.poison.set(error))?;
        let _upkeep = core.upkeep.lock();
        core.check_writable()?;
        region.check()?;
        self.erase(&mut built)?;
        if built.record.root.is_none() {
            return Ok(());
        }
        let curtain = Curtain::drawn();
        let levels = self.levels_with(&core.parts.views.load(), &built.record, &curtain);
        let Pointed { charges, freed } = built.pointed;
        let freed: BTreeSet<PageNo> = freed.into_iter().collect();
        let handed_out = built.pages.finish()?.into_iter();
        let (freed, kept) = handed_out.partition::<Vec<_>, _>(|page| freed.contains(page));
        core.forget(&freed)?;
        let change = Spilled {
            levels,
            kept,
            dropped: Vec::new(),
            charges: charges.finish(),
        };
        let marker = core.quiet_tail();
        core.commit_spill(
            change,
            |ledger| {
                ledger.loads.remove(&region.id);
                ledger.advance(marker);
            },
            true,
        )?;
        core.reveal(region, &curtain)?;
        // What was written before the load survives if the load does.
        sync()
    }

    /// Takes ranges out of the tree that were deleted while it was built and are in no L0 any more: like a single
    /// deletion, that of a range stands against a load that is under way. The caller holds `upkeep`.
    fn erase(&self, built: &mut Built<'a>) -> Result<()> {
        let ranges = self.hold.erased_meanwhile();
        if ranges.is_empty() {
            return Ok(());
        }
        let (parts, region) = (&self.core.parts, self.region.id);
        let epoch = parts.ledger.lock().epoch.next();
        let what = (parts.store, epoch, region, 1);
        let mut sink = FreshNodes::new(&parts.mapping, &mut built.pages, what);
        let nodes = self.core.nodes_of_level(region, 1);
        let mut input = Erasing(Arc::new(ranges));
        let (old, pointed) = (&built.record, &mut built.pointed);
        built.record = tree::merge(
            &nodes,
            &mut sink,
            old,
            &mut input,
            &rules(self.core),
            pointed,
        )?;
        Ok(())
    }

    /// The levels with `tree` above the trees that the load found and beneath what came since.
    fn levels_with(&self, view: &View, tree: &TreeRecord, curtain: &Curtain) -> Levels {
        let mut levels = Levels::clone(&view.levels);
        let mut trees = levels.of(self.region.id).to_vec();
        let at = match Bug::LoadAboveNewerWrites.is_planted() {
            true => 0,
            false => trees.len().saturating_sub(self.trees),
        };
        trees.insert(at, *tree);
        levels.set(self.region.id, trees);
        levels.hide(tree, curtain.clone());
        levels
    }
}

/// The load is durable already: `OutOfSpace` would say that nothing of it is there.
fn not_shown(error: Error) -> Error {
    match error.kind() {
        ErrorKind::OutOfSpace => Error::new(
            ErrorKind::Io,
            format!("a durable load could not be shown: {error}"),
        ),
        _ => error,
    }
}
