//! A tree: what a user of it sees.

use std::collections::HashMap;
use std::sync::atomic::{Ordering::Acquire, fence};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwap;
use kreon_base::{Epoch, Error, ErrorKind, Lsn, PageNo, Result, SegmentId};
use kreon_sync::Mutex;

use super::counters::TreeStats;
use super::gate::Gate;
use super::generation::Generation;
use super::known::KnownKeys;
use super::node::{Body, Fences, NodeState, OldNode, OpenNode};
use super::parts::{Parts, TreeHome};
use super::past::Past;
use super::publish;
use super::scan::{Cursor, Direction, Scan, ScanRange, View};
use super::snapshot::{Frozen, Held, Snapshot, check_key, value_of};
use super::writing::{self, Applied, Written};
use crate::format::{Location, NodeHeader, NodePointer};
use crate::log::{Placed, Record, RecordLog};

/// The root of a tree whose nodes are all published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeRoot {
    /// Where it is.
    pub pointer: NodePointer,
    /// Its height above the leaves.
    pub level: u8,
}

/// What a publication changed: for the commit that makes it durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The last epoch that is part of it.
    pub epoch: Epoch,
    /// The root at its end.
    pub root: TreeRoot,
    /// Pages that have become part of the tree.
    pub kept: Vec<PageNo>,
    /// Pages that are part of the tree no more; perhaps some of those that have become part of it.
    pub dropped: Vec<PageNo>,
    /// How the bytes of each log segment that leaves point at have changed.
    pub charges: Vec<(SegmentId, i64)>,
}

/// A copy-on-write B+-tree over a log: any number of threads read and write it.
///
/// A write is visible when its call returns. Nothing is durable before the nodes that it changed are
/// [published](Self::publish_frozen) and the device has flushed them.
pub struct Tree<L> {
    parts: Parts<L>,
    gate: Gate,
    current: ArcSwap<Generation>,
    /// Held while nodes are published, by one thread at a time.
    publishing: Mutex<()>,
    past: Past,
    /// Why no write is taken any more.
    poison: OnceLock<Error>,
}

impl<L: RecordLog> Tree<L> {
    /// A tree without keys, which changes in `epoch` first.
    ///
    /// # Errors
    /// `OutOfSpace` without a frame or page for its first leaf.
    pub fn new(home: TreeHome<L>, epoch: Epoch) -> Result<Self> {
        let region = home.region;
        let parts = Parts::new(home);
        let mut spare = parts.spare(epoch)?;
        let header = NodeHeader {
            pointer: spare.pointer,
            region,
            level: 0,
        };
        header.begin(spare.bytes());
        let state = NodeState {
            body: Body::Open(spare.take()),
            level: 0,
            fences: Fences::default(),
            children: Vec::new(),
            deleted: Default::default(),
        };
        let root = OpenNode::new(spare.pointer, state);
        Ok(Self::of(parts, Generation::of_new_tree(root)))
    }

    /// The tree with this root, which changes in `epoch` next: a later one than that of the root.
    ///
    /// # Errors
    /// `InvalidArgument` if the epoch is not later.
    pub fn open(home: TreeHome<L>, root: TreeRoot, epoch: Epoch) -> Result<Self> {
        if root.pointer.epoch >= epoch {
            return Err(Error::invalid(format!(
                "a tree of {} cannot change in {epoch}",
                root.pointer.epoch
            )));
        }
        let parts = Parts::new(home);
        parts.published.set(root.pointer.epoch);
        let start = OldNode {
            pointer: root.pointer,
            level: root.level,
            frozen: None,
        };
        Ok(Self::of(parts, Generation::new(epoch, start)))
    }

    fn of(parts: Parts<L>, generation: Generation) -> Self {
        Self {
            parts,
            gate: Gate::default(),
            current: ArcSwap::from_pointee(generation),
            publishing: Mutex::new(()),
            past: Past::default(),
            poison: OnceLock::new(),
        }
    }

    /// Gives a key a value. Returns whether it had one.
    ///
    /// # Errors
    /// `InvalidArgument` for a key of more than [`TREE_KEY_BYTES_MAX`](super::TREE_KEY_BYTES_MAX) bytes, or a record that is too long for the log.
    /// `OutOfSpace` if the log, the pages or the frames for changed nodes are used up: nothing has changed, and the next
    /// [`publish_frozen`](Self::publish_frozen) makes frames free. `Poisoned` after nodes could not be published.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let region = self.parts.seal.region;
        let value = Some(value);
        let record = Record { region, key, value };
        Ok(self.write(&record, &mut None, || Ok(()))?.existed)
    }

    /// Deletes a key. Returns whether it had a value.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        let removed = self.remove(key, &mut None, || Ok(()))?;
        Ok(removed.is_some_and(|written| written.existed))
    }

    /// [`delete`](Self::delete); `None` if the key was not there: that leaves no trace, in the log neither.
    pub(crate) fn remove(
        &self,
        key: &[u8],
        appended: &mut Option<Lsn>,
        admit: impl Fn() -> Result<()>,
    ) -> Result<Option<Written>> {
        if !self.contains(key)? {
            // The key may be gone because what `admit` asks for is gone.
            admit()?;
            return Ok(None);
        }
        let (region, value) = (self.parts.seal.region, None);
        let record = Record { region, key, value };
        self.write(&record, appended, admit).map(Some)
    }

    /// Writes a record. Tells where it was appended the last time: after an error it is in no tree, but a replay would find it there.
    /// `admit` is asked before, within the gate: what it saw is true until [`wait_for_writers`](Self::wait_for_writers) returns.
    pub(crate) fn write(
        &self,
        record: &Record<'_>,
        appended: &mut Option<Lsn>,
        admit: impl Fn() -> Result<()>,
    ) -> Result<Written> {
        check_key(record.key)?;
        loop {
            self.check()?;
            // Outside of the gate: a freeze does not wait for these.
            self.parts.log.make_room(record)?;
            // Held until the record is applied: so long no other record comes to the place of one whose key is known.
            let likely = self.parts.misses.are_likely();
            let ahead = likely.then(|| self.current.load());
            let mut known = match &ahead {
                Some(generation) => writing::look_ahead(&self.parts, generation, record.key)?,
                None => KnownKeys::default(),
            };
            let _inside = self.gate.enter();
            admit()?;
            let (generation, known) = (self.current.load(), &mut known);
            if let Some(written) =
                writing::write(&self.parts, &generation, (record, known), appended)?
            {
                return Ok(written);
            }
        }
    }

    /// Applies a record that is in the log already, and that is newer than all that were applied before.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(crate) fn replay(&self, record: &Record<'_>, placed: &Placed) -> Result<()> {
        self.check()?;
        let _inside = self.gate.enter();
        let generation = self.current.load();
        let known = &mut KnownKeys::default();
        match writing::apply(&self.parts, &generation, (record, known), placed)? {
            Applied::Done(_) => Ok(()),
            Applied::Outdated => Err(Error::corruption(format!(
                "the record at {} comes after one that follows it in the log",
                placed.location.offset
            ))),
        }
    }

    /// Lets a leaf that points at the record of `key` at `from` point at its copy `to`. False if none does.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(crate) fn relocate(&self, key: &[u8], from: Location, to: Location) -> Result<bool> {
        self.check()?;
        let _inside = self.gate.enter();
        writing::relocate(&self.parts, &self.current.load(), key, (from, to))
    }

    /// Whether a leaf points at the record of `key` at `location`.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub(crate) fn points_at(&self, key: &[u8], location: Location) -> Result<bool> {
        writing::points_at(&self.parts, &self.current.load(), key, location)
    }

    /// Waits for the writers that are at work. Those that come later see what the caller did before.
    pub(crate) fn wait_for_writers(&self) {
        drop(self.gate.close());
    }

    fn check(&self) -> Result<()> {
        match self.poison.get() {
            Some(cause) => Err(Error::new(ErrorKind::Poisoned, cause.to_string())),
            None => Ok(()),
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Lends the value of a key to `use_value`.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub fn get_with<R>(&self, key: &[u8], use_value: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        value_of(&self.parts, &self.current.load(), key, use_value)
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        self.get_with(key, |_| ()).map(|found| found.is_some())
    }

    /// The pairs of a range, as they are when the scan comes to their leaf.
    pub fn scan(&self, range: ScanRange, direction: Direction) -> Scan<'_, L> {
        let view = View::Newest(&self.current);
        Scan::new(&self.parts, view, range, direction)
    }

    /// Lends the next pair of a scan of the newest state to `take`.
    ///
    /// # Errors
    /// As [`Scan::next_pair`].
    pub(crate) fn next<T>(
        &self,
        cursor: &mut Cursor,
        take: impl Fn(&[u8], &[u8]) -> T,
    ) -> Result<Option<T>> {
        cursor.next(&self.parts, View::Newest(&self.current), take)
    }

    /// A state of this tree that was kept.
    pub(crate) fn at(&self, state: &Frozen) -> Snapshot<'_, L> {
        Snapshot {
            parts: &self.parts,
            generation: Arc::clone(&state.0),
        }
    }

    /// Ends an epoch: what was written before the call is in the snapshot, nothing that is written after it. Waits for the
    /// writers that are at work, and makes others wait for them.
    pub fn freeze(&self) -> Snapshot<'_, L> {
        self.freeze_with(|| ()).0
    }

    /// The same; `note` is called while no writer is at work.
    pub(crate) fn freeze_with<T>(&self, note: impl FnOnce() -> T) -> (Snapshot<'_, L>, T) {
        let end = || {
            let begun = Instant::now();
            let closed = self.gate.close();
            let noted = note();
            let generation = self.current.load_full();
            let next = Generation::new(generation.epoch.next(), generation.end());
            self.current.store(Arc::new(next));
            drop(closed);
            self.parts.counters.add_freeze(begun.elapsed());
            (generation, noted)
        };
        let (generation, noted) = self.past.freeze(end);
        let snapshot = Snapshot {
            parts: &self.parts,
            generation,
        };
        (snapshot, noted)
    }

    /// Keeps what the newest state reaches as it is, as a reader does that takes its time.
    pub(crate) fn hold(&self) -> Held {
        Held {
            _generation: self.current.load_full(),
        }
    }

    /// Makes the nodes that were changed before the last [`freeze`](Self::freeze) pages of the mapping, and has them written
    /// to the device, without a flush. `None` if nothing was frozen since the last call.
    /// [`committed`](Self::committed) follows when all of it is durable.
    ///
    /// # Errors
    /// Those of the device. The tree takes no more writes then.
    pub fn publish_frozen(&self) -> Result<Option<Publication>> {
        self.publish_up_to(Epoch(u64::MAX))
    }

    /// The same for what was changed up to the end of an epoch. Another thread may have ended a later one since: what was
    /// written in that, and the records of it, are none of this publication's.
    ///
    /// # Errors
    /// As [`publish_frozen`](Self::publish_frozen).
    pub fn publish_up_to(&self, end: Epoch) -> Result<Option<Publication>> {
        let _turn = self.publishing.lock();
        // Freezes go on meanwhile.
        let frozen = self.past.frozen_up_to(end);
        let (mut kept, mut dropped, mut charges) = (Vec::new(), Vec::new(), HashMap::new());
        for generation in &frozen {
            let epoch = generation.epoch;
            let pages = publish::publish(&self.parts, generation)
                .inspect_err(|error| drop(self.poison.set(error.clone())))?;
            tracing::debug!(epoch = epoch.0, nodes = pages.len(), "nodes published");
            kept.extend(pages);
            // Nodes that came and went in one epoch were never part of a state.
            let old = generation.replaced().into_iter();
            dropped.extend(old.filter(|node| node.epoch != epoch).map(|node| node.page));
            generation.charges.add_to(&mut charges);
            self.past.oldest_is_published();
        }
        let Some(last) = frozen.last() else {
            return Ok(None);
        };
        let root = last.end();
        Ok(Some(Publication {
            epoch: last.epoch,
            root: TreeRoot {
                pointer: root.pointer,
                level: root.level,
            },
            kept,
            dropped,
            charges: charges.into_iter().collect(),
        }))
    }

    /// A publication is durable: gives pages back that neither the durable state nor a reader nor a snapshot reaches any
    /// more. Returns the last epoch whose readers are all gone: nobody reaches what was replaced up to it.
    pub fn committed(&self, publication: &Publication) -> Epoch {
        self.set_committed(publication);
        self.release_passed().0
    }

    /// A publication is durable.
    pub(crate) fn set_committed(&self, publication: &Publication) {
        self.past.commit(publication.epoch);
    }

    /// Gives pages back that neither the durable state nor a reader nor a snapshot reaches any more. Returns the last epoch whose
    /// readers are all gone, and how many pages.
    pub(crate) fn release_passed(&self) -> (Epoch, usize) {
        let (passed, over) = self.past.take_passed();
        // All that their readers did comes before their pages are used again.
        fence(Acquire);
        let mut released = 0;
        for generation in over {
            let replaced: Vec<PageNo> = generation.replaced().iter().map(|n| n.page).collect();
            for page in &replaced {
                self.parts.mapping.discard(*page, 1);
            }
            self.parts.pages.release(&replaced);
            released += replaced.len();
        }
        (passed, released)
    }

    /// Whether anything was written that no publication contains.
    pub fn has_changes(&self) -> bool {
        let is_changed = || self.current.load().open_root().is_some();
        self.past.has_frozen_or(is_changed)
    }

    /// Whether changed nodes have so many frames that it is time to publish some: three quarters of the most.
    pub fn wants_freeze(&self) -> bool {
        let mapping = &self.parts.mapping;
        mapping.stats().frames_open * 4 > mapping.open_frames_max() as u64 * 3
    }

    /// Its parts and its newest generation.
    #[cfg(test)]
    pub(super) fn inside(&self) -> (&Parts<L>, Arc<Generation>) {
        (&self.parts, self.current.load_full())
    }

    /// What it did.
    pub fn stats(&self) -> TreeStats {
        self.parts.counters.stats()
    }
}
