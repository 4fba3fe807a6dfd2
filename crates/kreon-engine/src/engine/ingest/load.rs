//! A load from its beginning to its end.

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
use crate::spill::{LEAF_FILL, Spilled};
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
    charges: Charges<'a>,
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
            let change = Spilled {
                levels: Levels::clone(&view.levels),
                kept: Vec::new(),
                dropped: Vec::new(),
                charges: Default::default(),
            };
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
            moved.inspect_err(|error| self.parts.poison.set(error))?;
        }
        let last = match Bug::LoadSeenBySnapshots.is_planted() {
            true => Lsn(0),
            false => Lsn(log.tail().0.saturating_sub(1)),
        };
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
    let rules = MergeRules {
        snapshots: &[],
        last_level: true,
        fill: LEAF_FILL,
        rewrites_all: false,
        filter_bits_per_key: core.options.filter_bits_per_key,
    };
    let nodes = core.nodes_of_level(region.id, 1);
    let mut pointed = Pointed(Charges::new(&parts.log));
    let empty = TreeRecord::default();
    let record = tree::merge(&nodes, &mut sink, &empty, incoming, &rules, &mut pointed)?;
    Ok(record.root.is_some().then_some(Built {
        record,
        pages,
        charges: pointed.0,
    }))
}

/// Counts what the fresh tree points at.
struct Pointed<'a>(Charges<'a>);

impl Changes for Pointed<'_> {
    fn freed(&mut self, _page: PageNo) {}

    fn referenced(&mut self, record: Reference) {
        self.0.add(&record);
    }

    fn dropped(&mut self, _record: Reference) {}
}

impl Ground<'_> {
    /// Makes the tree durable, then visible.
    fn commit(&self, built: Built<'_>) -> Result<()> {
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
        let curtain = Curtain::drawn();
        let levels = self.levels_with(&core.parts.views.load(), &built.record, &curtain);
        let change = Spilled {
            levels,
            kept: built.pages.finish()?,
            dropped: Vec::new(),
            charges: built.charges.finish(),
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
