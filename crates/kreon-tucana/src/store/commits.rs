//! How a state becomes durable (`Tucana 2.2.3`).
//!
//! Nodes and log are on the device, unflushed, before: then come bitmap and catalogue, a flush, the superblock, a flush. A
//! page of the durable state is never written before a later state is durable, nor is a segment of the log that it reaches.

use kreon_base::{Epoch, Error, ErrorKind, Lsn, PageNo, Result, SEGMENT_PAGES, SegmentId, planted};
use kreon_format::{encode_chain, pages_needed};
use kreon_sync::{
    AtomicU64, Mutex, MutexGuard,
    Ordering::{Acquire, Relaxed, Release},
};
use kreon_volume::page_io::write_pages;
use kreon_volume::{Purpose, Reserve};

use super::catalogue;
use super::durable::{Durable, is_used_up};
use super::group_flush::GroupFlush;
use super::home::{Home, LOG, MOVED};
use super::log_mark::LogMark;
use super::superblocks;
use super::volume_log::VolumeLog;
use crate::format::{COMMIT_MAX, Superblock};
use crate::tree::{Held, Publication, Snapshot, Tree};

/// Pages that new data leaves to deletions and collection: a segment for the nodes that they copy until a commit frees the old
/// ones. Records that are moved have a segment on standby.
const RESERVE_PAGES: u64 = SEGMENT_PAGES;

/// Commits one after the other.
pub(super) struct Commits {
    /// Held by the thread that commits.
    durable: Mutex<Durable>,
    /// Commits that have begun.
    begun: AtomicU64,
    /// The marker of the last one that ended.
    marker: AtomicU64,
    /// Pages and segments that were given back.
    given_back: AtomicU64,
}

/// What commits work on.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub home: &'a Home,
    pub log: &'a VolumeLog,
    pub tree: &'a Tree<VolumeLog>,
    pub flushes: &'a GroupFlush,
}

/// The snapshot of a commit, with what is durable by it: no other commit is made meanwhile.
pub(super) struct Kept<'a> {
    pub snapshot: Snapshot<'a, VolumeLog>,
    pub durable: MutexGuard<'a, Durable>,
}

impl Commits {
    pub(super) fn new(durable: Durable) -> Self {
        Self {
            durable: Mutex::new(durable),
            begun: AtomicU64::new(0),
            marker: AtomicU64::new(0),
            given_back: AtomicU64::new(0),
        }
    }

    /// The position in the log behind which nothing is in the last commit.
    pub(super) fn marker(&self) -> Lsn {
        Lsn(self.marker.load(Acquire))
    }

    /// What is durable; no commit is made while it is held.
    pub(super) fn durable(&self) -> MutexGuard<'_, Durable> {
        self.durable.lock()
    }

    /// Keeps the segment number `sequence` of a log as it is while the result lives. `None` if it holds nothing, or was given
    /// back.
    pub(super) fn hold(
        &self,
        parts: Parts<'_>,
        (segment, sequence): (SegmentId, u64),
    ) -> Option<Held> {
        // A commit under way has ended an earlier epoch: it could find the segment dead, and would not wait for this one.
        let _durable = self.durable.lock();
        let is_it = parts.log.table.sequence(segment) == Some(sequence);
        let is_live = parts.home.allocator.lock().live_bytes(segment) > 0;
        (is_it && is_live).then(|| parts.tree.hold())
    }

    /// Makes everything durable that was written before the call. Another commit that began later suffices.
    ///
    /// # Errors
    /// `OutOfSpace`: nothing has happened. Others: what is durable is unknown, and the store takes no more writes.
    pub(super) fn commit(&self, parts: Parts<'_>) -> Result<()> {
        let wanted = self.begun.load(Acquire) + 1;
        let mut durable = self.durable.lock();
        if durable.number >= wanted {
            return Ok(());
        }
        parts.home.standby.fill(&parts.home.allocator);
        self.make(parts, &mut durable, || parts.log.mark(), drop)
    }

    /// The same for a state behind which the log goes on at `mark`, that of an earlier opening. Takes nothing on standby: what is
    /// replayed needs the space first.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(super) fn commit_at(&self, parts: Parts<'_>, mark: LogMark) -> Result<()> {
        let mut durable = self.durable.lock();
        self.make(parts, &mut durable, || mark, drop)
    }

    /// Commits, and keeps the state.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(super) fn commit_and_keep<'a>(&'a self, parts: Parts<'a>) -> Result<Kept<'a>> {
        let mut durable = self.durable.lock();
        let keep = std::convert::identity;
        parts.home.standby.fill(&parts.home.allocator);
        let snapshot = self.make(parts, &mut durable, || parts.log.mark(), keep)?;
        Ok(Kept { snapshot, durable })
    }

    /// Takes the pages that a commit needs, so that one can be made whatever takes the others. Later every commit leaves them.
    ///
    /// # Errors
    /// `OutOfSpace`; those of the device.
    pub(super) fn stock(&self, parts: Parts<'_>) -> Result<()> {
        stock_pages(parts.home, &mut self.durable.lock())
    }

    /// Gives back what nobody reaches any more, because readers and snapshots have gone since the last commit.
    ///
    /// # Errors
    /// None that a retired segment can have.
    pub(super) fn give_back(&self, parts: Parts<'_>) -> Result<()> {
        let mut durable = self.durable.lock();
        let passed = parts.tree.release_passed();
        self.reuse_withheld(parts.log, &mut durable, passed)
    }

    /// How many pages and segments were given back so far.
    pub(super) fn given_back(&self) -> u64 {
        self.given_back.load(Relaxed)
    }

    /// Gives segments back that nobody reaches any more.
    fn reuse_withheld(
        &self,
        log: &VolumeLog,
        durable: &mut Durable,
        (passed, pages): (Epoch, usize),
    ) -> Result<()> {
        let is_passed = |(epoch, _): &mut (Epoch, Vec<SegmentId>)| *epoch <= passed;
        let free: Vec<_> = durable.withheld.extract_if(.., is_passed).collect();
        let segments: usize = free.iter().map(|(_, segments)| segments.len()).sum();
        self.given_back
            .fetch_add((pages + segments) as u64, Relaxed);
        free.iter()
            .try_for_each(|(_, segments)| log.reuse(segments))
    }

    /// Commits. What the snapshot of the commit shows takes space as long as it lives: `keep` drops it unless it is wanted.
    fn make<'a, K>(
        &self,
        parts: Parts<'a>,
        durable: &mut Durable,
        mark: impl FnOnce() -> LogMark,
        keep: impl FnOnce(Snapshot<'a, VolumeLog>) -> K,
    ) -> Result<K> {
        parts.home.poison.check()?;
        // Publications that were taken and are not in the bitmap would be missing in the next one.
        let _whole = parts.home.poison.on_panic();
        stock_pages(parts.home, durable)?;
        let number = self.begun.fetch_add(1, Relaxed) + 1;
        let (snapshot, mark) = parts.tree.freeze_with(mark);
        let epoch = snapshot.epoch();
        let kept = keep(snapshot);
        let outcome = publish_and_commit(parts, durable, epoch, mark);
        let passed = parts.home.poison.note(outcome)?;
        durable.number = number;
        self.marker.store(mark.marker.0, Release);
        let given = self.reuse_withheld(parts.log, durable, passed);
        parts.home.poison.note(given)?;
        // Of a catalogue that has grown, the next one needs more than the last one left. It asks again.
        let _ = stock_pages(parts.home, durable);
        // What the reserve was taken for is done.
        let mut allocator = parts.home.allocator.lock();
        allocator.set_reserve(Reserve {
            merged_pages: RESERVE_PAGES,
            ..Reserve::default()
        });
        Ok(kept)
    }
}

/// Pages for the next catalogue: one more than the last one took, as the volume may grow.
fn spare_wanted(durable: &Durable) -> usize {
    pages_needed(durable.superblock.catalogue_bytes as usize) + 1
}

/// Takes pages for the catalogue while nothing depends on it.
fn stock_pages(home: &Home, durable: &mut Durable) -> Result<()> {
    let wanted = spare_wanted(durable);
    let mut allocator = home.allocator.lock();
    while durable.spare_pages.len() < wanted {
        let missing = (wanted - durable.spare_pages.len()) as u64;
        let (first, count) = allocator.allocate_pages(missing, Purpose::Maintenance)?;
        let pages = (first.0..first.0 + count).map(PageNo);
        durable.spare_pages.extend(pages);
    }
    Ok(())
}

/// Returns what [`Tree::release_passed`] returns.
fn publish_and_commit(
    parts: Parts<'_>,
    durable: &mut Durable,
    epoch: Epoch,
    mark: LogMark,
) -> Result<(Epoch, usize)> {
    let home = parts.home;
    if is_used_up(epoch, home.incarnation) {
        return Err(Error::new(
            ErrorKind::OutOfSpace,
            "this opening has used its epochs: open the store again",
        ));
    }
    // Every record that the frozen nodes point at was appended before the freeze.
    let log_end = parts.log.write_out()?;
    let Some(publication) = parts.tree.publish_up_to(epoch)? else {
        return Err(Error::invalid(
            "an epoch that has ended was published by others",
        ));
    };
    planted!(PageFreedBeforeCommit => {
        parts.tree.set_committed(&publication);
        parts.tree.release_passed();
        // The catalogue takes what is free now, not what was set aside for it.
        let spare = std::mem::take(&mut durable.spare_pages);
        home.allocator.lock().release_pages(&spare)?
    });
    let catalogue_pages = commit(home, durable, &publication, (mark, log_end))?;
    parts.log.set_durable(log_end);
    parts.flushes.advance(log_end);
    parts.tree.set_committed(&publication);
    let passed = parts.tree.release_passed();
    durable.spare_pages.extend(catalogue_pages);
    let wanted = spare_wanted(durable).min(durable.spare_pages.len());
    let unneeded = durable.spare_pages.split_off(wanted);
    home.allocator.lock().release_pages(&unneeded)?;
    Ok(passed)
}

/// Makes a publication durable, whose nodes and log up to `log_end` were written. Returns the pages of the catalogue
/// before, which nobody needs any more.
///
/// # Errors
/// `OutOfSpace`; those of the device. What is durable is unknown then.
fn commit(
    home: &Home,
    durable: &mut Durable,
    publication: &Publication,
    (mark, log_end): (LogMark, Lsn),
) -> Result<Vec<PageNo>> {
    let number = durable.superblock.commit + 1;
    if number > COMMIT_MAX {
        return Err(Error::new(ErrorKind::OutOfSpace, "all commits were used"));
    }
    // A commit within a replay records the log of an earlier opening, which nobody has flushed.
    let is_own = mark.incarnation == home.incarnation;
    let log_end = if is_own { log_end } else { mark.marker };
    let mut catalogue = catalogue::compose(&publication.root, &mark, log_end);
    let (pages, mut written, segments) = {
        let mut allocator = home.allocator.lock();
        let spare = &mut durable.spare_pages;
        let pages = catalogue::take_pages(&mut allocator, &mut catalogue, spare)?;
        allocator.keep_pages(&publication.kept)?;
        allocator.keep_pages(&pages)?;
        allocator.drop_pages(&publication.dropped)?;
        allocator.drop_pages(&durable.catalogue_pages)?;
        for (segment, bytes) in &publication.charges {
            allocator.charge(*segment, *bytes)?;
            durable.live_bytes = durable.live_bytes.wrapping_add_signed(*bytes);
        }
        // Segments behind the mark may hold records of the next commit.
        let mut dead = allocator.retire_dead_log_segments(LOG, mark.open.sequence)?;
        dead.extend(allocator.retire_dead_log_segments(MOVED, mark.moved_from)?);
        durable.withheld.push((publication.epoch, dead));
        let bitmap = allocator.encode_changed(home.store, publication.epoch);
        catalogue.groups = allocator.pointers();
        (pages, bitmap, allocator.segment_count())
    };
    let stream = catalogue.encode();
    let (chain, head) = encode_chain(home.store, publication.epoch, &stream, &pages)?;
    written.extend(chain);
    let superblock = Superblock {
        store: home.store,
        commit: number,
        epoch: publication.epoch,
        incarnation: home.incarnation,
        segments,
        catalogue: head,
        catalogue_bytes: stream.len() as u64,
    };
    planted!(SuperblockBeforeCatalogue => superblocks::commit(home.device.as_ref(), &superblock, || home.flush())?);
    write_pages(home.device.as_ref(), &written)?;
    home.flush()?;
    superblocks::commit(home.device.as_ref(), &superblock, || home.flush())?;
    durable.superblock = superblock;
    durable.mark = Some(mark);
    Ok(std::mem::replace(&mut durable.catalogue_pages, pages))
}
