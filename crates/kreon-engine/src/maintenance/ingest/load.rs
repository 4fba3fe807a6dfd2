//! A load from its beginning to its end.

use std::collections::BTreeSet;
use std::sync::Arc;

use kreon_base::{Attributes, Error, ErrorKind, Lsn, PageNo, RegionId, Result, planted};
use kreon_format::TreeRecord;

use super::super::ground::Ground;
use super::super::merge::Merger;
use super::super::spill::Spiller;
use super::incoming::{Incoming, Pairs, append, record, tell_feed};
use crate::level::{Levels, View, VisibleFrom};
use crate::regions::RegionState;
use crate::spill::sink::FreshNodes;
use crate::spill::{Erasing, LEAF_FILL, Notes, Spilled};
use crate::state::{Ledger, Storage};
use crate::tree::{self, MergeRules};
use crate::tree_locks::{LockReason, TreeLock};
use crate::versions::TREES_MAX;
use kreon_volume::{PageRuns, Purpose};

/// Trees that a load found, with a place for what is spilled meanwhile above them.
struct LoadTarget<'a> {
    loader: &'a Loader,
    kept_log: KeptLog<'a>,
    hold: TreeLock<'a>,
    region: &'a RegionState,
    /// How many there were, counted from the lowest.
    trees: usize,
}

/// Keeps log segments that no tree points at yet from being freed.
struct KeptLog<'a> {
    storage: &'a Storage,
    region: RegionId,
}

impl<'a> KeptLog<'a> {
    /// From the log's tail on.
    fn new(storage: &'a Storage, region: RegionId) -> Self {
        planted!(LoadNotKept => return Self { storage, region });
        let tail = storage.log.tail();
        storage.ledger.lock().loads.insert(region, tail);
        Self { storage, region }
    }
}

impl Drop for KeptLog<'_> {
    fn drop(&mut self) {
        self.storage.ledger.lock().loads.remove(&self.region);
    }
}

/// A finished tree that no checkpoint has.
struct Built<'a> {
    record: TreeRecord,
    pages: PageRuns<'a>,
    /// Pages that it dropped are fresh ones that were part of it.
    notes: Notes<'a>,
}

/// No reader sees the tree yet, and nothing beneath it would be hidden by it.
fn rules(storage: &Storage) -> MergeRules<'static> {
    MergeRules {
        snapshots: &[],
        expired_by: None,
        last_level: true,
        fill: LEAF_FILL,
        rewrites_all: false,
        filter_bits_per_key: storage.options.filter_bits_per_key,
    }
}

/// The value of a record that is only a mark.
const MARK: (&[u8], Attributes) = (b"", Attributes::NONE);

/// Loads sorted pairs past L0.
pub struct Loader {
    on: Ground,
    spiller: Arc<Spiller>,
    merger: Arc<Merger>,
}

impl Loader {
    /// Nothing is being loaded.
    pub fn new(on: &Ground, spiller: &Arc<Spiller>, merger: &Arc<Merger>) -> Self {
        Self {
            on: on.clone(),
            spiller: Arc::clone(spiller),
            merger: Arc::clone(merger),
        }
    }

    /// Loads `pairs` into `region`, all or none; returns how many. Durable when it returns.
    ///
    /// # Errors
    /// `InvalidArgument` if keys do not ascend or are too long, `Busy` during another load into the region,
    /// `OutOfSpace`, `Closed`, `Poisoned`, and those of `pairs`: nothing of the load is there. `Io`: it is not
    /// known whether it will be there when the store is opened again.
    pub fn ingest(&self, region: &RegionState, pairs: &mut impl Pairs) -> Result<u64> {
        self.on.storage.check_writable()?;
        region.check()?;
        let target = self.prepare(region)?;
        let mut incoming = Incoming::new(&self.on, region, pairs);
        let loaded = build(&self.on.storage, region, &mut incoming).and_then(|built| {
            let keys = (incoming.first.as_slice(), incoming.last.as_slice());
            built.map_or(Ok(()), |built| target.commit(built, keys))
        });
        let count = incoming.count;
        let LoadTarget { kept_log, hold, .. } = target;
        drop(kept_log);
        if let Err(error) = &loaded {
            if error.kind() == ErrorKind::Io && !incoming.is_refused {
                self.on.storage.poison.set(error);
            }
            self.reclaim_load(region);
        }
        drop(hold);
        if let Err(error) = self.merger.merge_region(region.id)
            && error.kind() != ErrorKind::Closed
        {
            tracing::warn!(%error, "the trees of a load are merged later");
        }
        loaded.map(|()| count)
    }

    /// Spills what is older than the load, and keeps what comes from now on apart from it.
    fn prepare<'a>(&'a self, region: &'a RegionState) -> Result<LoadTarget<'a>> {
        let may_wait = || self.on.storage.check_writable();
        let hold = self
            .on
            .tree_locks
            .take_whole(region.id, LockReason::Load, may_wait)?;
        if self.on.storage.views.load().levels.of(region.id).len() > TREES_MAX {
            return Err(Error::new(
                ErrorKind::OutOfSpace,
                "earlier loads could not be made one tree with the rest of the region",
            ));
        }
        self.spiller.checkpoint()?;
        let _changes = self.on.versions.lock_changes();
        region.check()?;
        hold.begin_load();
        let target = LoadTarget {
            loader: self,
            // Before the first record, so that no checkpoint frees its segment.
            kept_log: KeptLog::new(&self.on.storage, region.id),
            hold,
            region,
            trees: self.on.versions.put_empty_tree_on(region.id),
        };
        // Tells a repair of a damaged store that older records may be outdated.
        append(&self.on, region, b"", MARK)?;
        Ok(target)
    }

    /// After a failure: the records of the load are dead; a checkpoint with the marker behind them frees
    /// their segments. As well as that goes.
    fn reclaim_load(&self, region: &RegionState) {
        if self.on.storage.check_writable().is_err() {
            return;
        }
        let reclaimed = self.spiller.checkpoint().and_then(|()| {
            let _changes = self.on.versions.lock_changes();
            self.on.versions.tidy(region.id);
            let marker = self.on.versions.quiet_tail();
            let advance = |ledger: &mut Ledger| ledger.advance(marker);
            self.on.versions.install_ledger(advance)
        });
        if let Err(error) = reclaimed.and_then(|()| self.on.versions.reclaim()) {
            tracing::warn!(%error, "the space of a failed load is reclaimed later");
        }
    }

    /// Opens `visible_from` for all but the snapshots that are open.
    fn reveal(&self, region: &RegionState, visible_from: &VisibleFrom) -> Result<()> {
        let _closed = self.on.visibility.gate.close();
        let log = &self.on.storage.log;
        if self.on.visibility.snapshots.newest() == Some(log.tail()) {
            // Later ones would be at the same position.
            let moved = log.append_one(&record(region, b"", MARK));
            moved
                .map_err(not_shown)
                .inspect_err(|error| self.on.storage.poison.set(error))?;
        }
        let last = Lsn(log.tail().0.saturating_sub(1));
        planted!(LoadSeenBySnapshots => let last = Lsn(0));
        // The load adds keys without puts, which cut no gaps.
        region.gaps.clear();
        visible_from.open(last);
        Ok(())
    }
}

/// Builds the tree; none if there are no pairs.
fn build<'a, P: Pairs>(
    storage: &'a Storage,
    region: &RegionState,
    incoming: &mut Incoming<'_, P>,
) -> Result<Option<Built<'a>>> {
    let epoch = storage.ledger.lock().epoch.next();
    let mut pages = PageRuns::with_purpose(&storage.allocator, &storage.mapping, Purpose::Put);
    let mut sink = FreshNodes::new(storage, &mut pages, (epoch, region.id, 1));
    let rules = rules(storage);
    let nodes = storage.nodes_of_level(region.id, 1);
    let mut notes = Notes::new(storage);
    let empty = TreeRecord::default();
    let record = tree::merge(&nodes, &mut sink, &empty, incoming, &rules, &mut notes)?;
    Ok(record.root.is_some().then_some(Built {
        record,
        pages,
        notes,
    }))
}

impl<'a> LoadTarget<'a> {
    /// Makes the tree durable, then visible. `keys` are the first and the last.
    fn commit(&self, mut built: Built<'a>, keys: (&[u8], &[u8])) -> Result<()> {
        let (loader, region) = (self.loader, self.region);
        let log = &loader.on.storage.log;
        let sync = || {
            log.sync(log.tail())
                .inspect_err(|error| loader.on.storage.poison.set(error))
        };
        let _held = tell_feed(&loader.on, region, keys)?;
        // Before the locks are taken; the checkpoint finds little left to do. The notice is durable before the load.
        sync()?;
        loader
            .on
            .storage
            .mapping
            .sync()
            .inspect_err(|error| loader.on.storage.poison.set(error))?;
        let _changes = loader.on.versions.lock_changes();
        loader.on.storage.check_writable()?;
        region.check()?;
        self.erase(&mut built)?;
        if built.record.root.is_none() {
            return Ok(());
        }
        let visible_from = VisibleFrom::drawn();
        let levels = self.levels_with(
            &loader.on.storage.views.load(),
            &built.record,
            &visible_from,
        );
        let Notes {
            charges, dropped, ..
        } = built.notes;
        let freed: BTreeSet<PageNo> = dropped.into_iter().collect();
        let handed_out = built.pages.finish()?.into_iter();
        let (freed, kept) = handed_out.partition::<Vec<_>, _>(|page| freed.contains(page));
        loader.on.versions.discard_fresh(&freed)?;
        let change = Spilled {
            kept,
            charges: charges.finish(),
            ..Spilled::nothing(levels)
        };
        let marker = loader.on.versions.quiet_tail();
        let advance = |ledger: &mut Ledger| {
            ledger.loads.remove(&region.id);
            ledger.advance(marker);
        };
        loader.on.versions.install(change, advance, true)?;
        loader.reveal(region, &visible_from)?;
        // What was written before the load survives if the load does.
        sync()
    }

    /// Takes ranges out of the tree that were deleted while it was built and are in no L0 any more: like a single
    /// deletion, that of a range stands against a load that is under way. The caller holds the right to change the
    /// levels.
    fn erase(&self, built: &mut Built<'a>) -> Result<()> {
        let ranges = self.hold.erased_meanwhile();
        if ranges.is_empty() {
            return Ok(());
        }
        let (storage, region) = (&self.loader.on.storage, self.region.id);
        let epoch = storage.ledger.lock().epoch.next();
        let mut sink = FreshNodes::new(storage, &mut built.pages, (epoch, region, 1));
        let nodes = storage.nodes_of_level(region, 1);
        let mut input = Erasing(Arc::new(ranges));
        let (old, notes) = (&built.record, &mut built.notes);
        built.record = tree::merge(&nodes, &mut sink, old, &mut input, &rules(storage), notes)?;
        Ok(())
    }

    /// The levels with `tree` above the trees that the load found and beneath what came since.
    fn levels_with(&self, view: &View, tree: &TreeRecord, visible_from: &VisibleFrom) -> Levels {
        let mut levels = Levels::clone(&view.levels);
        let mut trees = levels.of(self.region.id).to_vec();
        debug_assert!(trees.len() >= self.trees, "the trees below a load stay");
        let at = trees.len().saturating_sub(self.trees);
        planted!(LoadAboveNewerWrites => let at = 0);
        trees.insert(at, *tree);
        levels.set(self.region.id, trees);
        levels.hide(tree, visible_from.clone());
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
