//! Checkpoints of L0: when images are taken, and how they become part of what is durable.
//!
//! An image is taken beside writers, spills and changes of regions: it takes a moment without writers to
//! know where the log ends, then walks L0 and, while that is being spilled, the frozen L0, and makes the parts
//! count with a checkpoint of its own. A freeze meanwhile changes nothing: a part is of one L0, whether
//! that is frozen or not. A spill that ends meanwhile moves the marker; parts before the new marker are dropped.
//!
//! An image never fails a write: without space it is given up, and so is the image before it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{ErrorKind, Lsn, PAGE_BYTES, PageNo, Result, planted};
use kreon_format::{ImagePart, pages_of};

use super::ground::Ground;
use crate::checkpoint::{self, Change};
use crate::events::Event;
use crate::image::{ImagePages, Stretch, build};
use crate::state::Ledger;
use kreon_sync::{Mutex, Rank, RankedGuard, RankedMutex, Wakeup};

/// A shorter log is not worth an image: it is replayed in a tenth of a second, if its values are not tiny.
pub const LOG_BYTES_MIN: u64 = 64 << 20;

/// With more parts than this the image is written anew: each costs an opening a walk.
const PARTS_MAX: usize = 64;

/// Entries that an image may hold beside those that L0 holds now: what was overwritten since, and more
/// for an L0 that is almost empty.
const SPARE_ENTRIES: u64 = 4096;

/// Takes images of L0, one at a time.
pub struct L0Images {
    on: Ground,
    /// One at a time.
    turn: RankedMutex<()>,
    /// Wakes the thread that takes them: the store is being closed.
    pub wanted: Wakeup,
    taken: Mutex<(u64, Option<Taken>)>,
}

struct Taken {
    bytes: u64,
    took: Duration,
    at: Instant,
}

/// An image of L0 that was taken.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ImageStats {
    /// Bytes that it wrote.
    pub bytes: u64,
    /// How long that took.
    pub seconds: f64,
    /// How long ago that was.
    pub age_seconds: f64,
}

impl L0Images {
    /// None was taken yet.
    pub fn new(on: &Ground) -> Self {
        Self {
            on: on.clone(),
            turn: RankedMutex::new(Rank::L0Image, ()),
            wanted: Wakeup::default(),
            taken: Mutex::default(),
        }
    }

    /// How many were taken since the store was opened, and the last one.
    pub fn taken(&self) -> (u64, Option<ImageStats>) {
        let taken = self.taken.lock();
        let last = taken.1.as_ref().map(|last| ImageStats {
            bytes: last.bytes,
            seconds: last.took.as_secs_f64(),
            age_seconds: last.at.elapsed().as_secs_f64(),
        });
        (taken.0, last)
    }
}

/// What is to be written.
struct Plan {
    stretches: Vec<Stretch>,
    /// The parts go behind those that are there; otherwise in their place.
    adds: bool,
}

/// The stretches that hold anything, up to the first deletion of a range: parts have entries alone, so the replay
/// must begin before it. A spill later there are none left in what an image is of.
fn up_to_range(stretches: impl Iterator<Item = Stretch>) -> Vec<Stretch> {
    let mut kept = Vec::new();
    for mut stretch in stretches {
        let first = stretch.l0.ranges().first_from(stretch.start);
        let is_cut = first.is_some_and(|first| first < stretch.end);
        stretch.end = first.unwrap_or(Lsn::MAX).min(stretch.end);
        if stretch.start < stretch.end {
            kept.push(stretch);
        }
        if is_cut {
            break;
        }
    }
    kept
}

impl L0Images {
    /// Takes an image of L0 if the log has grown by `log_bytes_min` since the last one; whether it did.
    ///
    /// # Errors
    /// Those of a failed write; the store is poisoned then. A full volume is no error.
    pub fn take_image(&self, log_bytes_min: u64) -> Result<bool> {
        let _turn = self.turn.lock();
        self.on.storage.poison.check()?;
        let begun = Instant::now();
        let Some(plan) = self.plan_image(log_bytes_min) else {
            return Ok(false);
        };
        let _span = tracing::debug_span!("image").entered();
        match self.write_image(plan) {
            Ok(None) => Ok(false),
            Ok(Some(bytes)) => {
                let mut taken = self.taken.lock();
                let (took, at) = (begun.elapsed(), Instant::now());
                *taken = (taken.0 + 1, Some(Taken { bytes, took, at }));
                drop(taken);
                self.on.storage.tell(&Event::ImageTaken { bytes, took });
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                tracing::info!(%error, "no space for an image of L0");
                self.drop_image()?;
                Ok(false)
            }
            Err(error) => {
                tracing::warn!(%error, "an image of L0 failed");
                self.on.storage.poison.set(&error);
                Err(error)
            }
        }
    }

    fn plan_image(&self, log_bytes_min: u64) -> Option<Plan> {
        // Everything before `end` is in this view, everything behind comes later.
        let (view, end) = {
            let _closed = self.on.visibility.gate.close();
            (
                self.on.storage.views.load_full(),
                self.on.storage.log.tail(),
            )
        };
        let (marker, covered, entries, parts) = {
            let ledger = self.on.storage.ledger.lock();
            let trees = ledger.image.iter().flat_map(|part| &part.trees);
            let entries: u64 = trees.map(|(_, tree)| tree.entries).sum();
            (
                ledger.marker,
                ledger.replay_start(),
                entries,
                ledger.image.len(),
            )
        };
        if end.0.saturating_sub(covered.0) < log_bytes_min {
            return None;
        }
        let border = view.frozen.as_ref().map_or(Lsn(0), |frozen| frozen.end);
        let l0s = view.frozen.iter().map(|frozen| &frozen.l0);
        let current: u64 = l0s.chain([&view.active]).map(|l0| l0.len() as u64).sum();
        let adds = parts < PARTS_MAX && entries <= current + SPARE_ENTRIES;
        let start = if adds { covered } else { marker };
        let frozen = view.frozen.as_ref().map(|frozen| Stretch {
            l0: Arc::clone(&frozen.l0),
            start,
            end: border,
        });
        let active = Stretch {
            l0: Arc::clone(&view.active),
            start: start.max(border),
            end,
        };
        let stretches = up_to_range(frozen.into_iter().chain([active]));
        (!stretches.is_empty()).then_some(Plan { stretches, adds })
    }

    /// Returns the bytes written; `None` if a spill made all of it superfluous.
    fn write_image(&self, plan: Plan) -> Result<Option<u64>> {
        let (epoch, regions) = {
            let ledger = self.on.storage.ledger.lock();
            let regions = ledger.with_made(&self.on.storage.made).regions;
            (ledger.epoch.next(), regions)
        };
        let exists = |region| regions.contains(region);
        let mut pages = ImagePages::new(&self.on.storage, epoch);
        let mut fresh = Vec::new();
        // Each L0 is let go as soon as its part is there: it may have been spilled meanwhile, and its memory
        // is the next one's.
        let built = plan.stretches.into_iter().try_for_each(|stretch| {
            if stretch.end > self.on.storage.ledger.lock().marker {
                fresh.push(build(&stretch, &exists, &mut pages)?);
            }
            Ok(())
        });
        drop(pages);
        let committed = built.and_then(|()| self.commit_image(&fresh, plan.adds));
        let kept = *committed.as_ref().unwrap_or(&0);
        let lost = fresh.iter().take(fresh.len() - kept);
        self.release_image(lost)?;
        committed?;
        let kept = fresh.iter().rev().take(kept);
        let count = |part: &ImagePart| pages_of(&part.pages).count() as u64;
        let bytes = kept.map(count).sum::<u64>() * PAGE_BYTES as u64;
        Ok((bytes > 0).then_some(bytes))
    }

    /// Makes the last of `fresh` count, as far as no spill has made them superfluous; returns how many.
    fn commit_image(&self, fresh: &[ImagePart], adds: bool) -> Result<usize> {
        let needed = self.on.storage.log.tail();
        self.sync_log(needed)?;
        let mut ledger = self.on.storage.ledger.lock();
        let mut changed = ledger.with_made(&self.on.storage.made);
        let kept = fresh.iter().filter(|part| part.end > ledger.marker);
        let mut kept: Vec<_> = kept.cloned().collect();
        let Some(last) = kept.last_mut() else {
            return Ok(0);
        };
        planted!(ReplayStartTooFar => last.end = needed);
        for part in &mut kept {
            part.needed = needed.max(part.end);
        }
        let pages = |part: &ImagePart| pages_of(&part.pages).collect::<Vec<_>>();
        let mut dropped = Vec::new();
        if !adds {
            dropped.extend(changed.image.drain(..).flat_map(|part| pages(&part)));
        }
        let (count, kept_pages) = (kept.len(), kept.iter().flat_map(pages).collect());
        changed.image.extend(kept);
        self.commit(&mut ledger, changed, (kept_pages, dropped))?;
        Ok(count)
    }

    /// The log that an image leaves out must be durable before the image counts.
    fn sync_log(&self, end: Lsn) -> Result<()> {
        planted!(ImageBeforeLog => return Ok(()));
        self.on.storage.log.sync(end)
    }

    /// Gives its space back.
    fn drop_image(&self) -> Result<()> {
        let mut ledger = self.on.storage.ledger.lock();
        if ledger.image.is_empty() {
            return Ok(());
        }
        let mut changed = ledger.with_made(&self.on.storage.made);
        let parts = changed.image.drain(..);
        let dropped = parts.flat_map(|part| pages_of(&part.pages).collect::<Vec<_>>());
        let dropped = dropped.collect();
        match self.commit(&mut ledger, changed, (Vec::new(), dropped)) {
            Err(error) if error.kind() == ErrorKind::OutOfSpace => Ok(()),
            outcome => outcome,
        }
    }

    /// A checkpoint of the same levels with another image, whose pages are `kept` and `dropped`.
    fn commit(
        &self,
        ledger: &mut RankedGuard<'_, Ledger>,
        changed: Ledger,
        (kept, dropped): (Vec<PageNo>, Vec<PageNo>),
    ) -> Result<()> {
        let storage = &self.on.storage;
        let levels = Arc::clone(&storage.views.load().levels);
        let change = Change {
            kept,
            dropped,
            ..Change::of_ledger(changed, levels)
        };
        let unreachable = checkpoint::commit(storage, ledger, change)?;
        let (pages, segments) = (unreachable.pages, unreachable.segments);
        storage.views.retire(pages, segments);
        Ok(())
    }

    /// Gives back pages of parts that do not count.
    fn release_image<'p>(&self, parts: impl Iterator<Item = &'p ImagePart>) -> Result<()> {
        let pages: Vec<PageNo> = parts.flat_map(|part| pages_of(&part.pages)).collect();
        self.on.storage.allocator.lock().release_pages(&pages)
    }
}
