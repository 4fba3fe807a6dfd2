//! The spill of one region by several threads, each of which takes the next part when it is done.

use std::thread;

use kreon_base::{Error, Result};
use kreon_format::TreeRecord;

use super::run::{Changed, RegionSpill};
use crate::tree::{self, Cut, MergedPart};
use kreon_sync::{AtomicBool, AtomicUsize, Ordering};

/// Shared state of the threads.
struct Shared<'s, 'a> {
    spill: &'s RegionSpill<'a>,
    tree: &'s TreeRecord,
    cut: &'s Cut,
    next: AtomicUsize,
    /// A thread has failed, so the others stop after their part.
    failed: AtomicBool,
}

/// Merges all parts of `cut` and joins them. If a worker fails, the fresh pages of all are released.
pub(super) fn spill_in_parts<'a>(
    spill: &RegionSpill<'a>,
    tree: &TreeRecord,
    cut: &Cut,
    changed: &mut Changed<'a>,
) -> Result<TreeRecord> {
    let shared = Shared {
        spill,
        tree,
        cut,
        next: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
    };
    let workers = spill.orders.workers.min(cut.len());
    let outcomes = thread::scope(|scope| {
        let shared = &shared;
        let start = |number: usize| {
            thread::Builder::new()
                .name(format!("kreon-spill-{number}"))
                .spawn_scoped(scope, move || shared.work())
        };
        // Without a thread the spill only takes longer.
        let others: Vec<_> = (1..workers)
            .filter_map(|number| start(number).ok())
            .collect();
        let mut outcomes = vec![shared.work()];
        for other in others {
            let outcome = other.join();
            outcomes
                .push(outcome.unwrap_or_else(|_| Err(Error::invalid("a spill worker panicked"))));
        }
        outcomes
    });
    let mut merged: Vec<(usize, MergedPart)> = Vec::new();
    for outcome in outcomes {
        let (parts, other) = outcome?;
        merged.extend(parts);
        changed.add(other);
    }
    debug_assert_eq!(merged.len(), cut.len(), "each part is merged once");
    merged.sort_by_key(|(part, _)| *part);
    let merged = merged.into_iter().map(|(_, part)| part).collect();
    let mut sink = spill.sink(&mut changed.pages, 1);
    let (source, rules, notes) = (spill.source(1), &spill.rules, &mut changed.notes);
    tree::join(&source, &mut sink, (tree, cut), merged, rules, notes)
}

impl<'a> Shared<'_, 'a> {
    /// Merges parts until none is left.
    fn work(&self) -> Result<(Vec<(usize, MergedPart)>, Changed<'a>)> {
        let mut changed = Changed::new(self.spill.storage);
        let mut merged = Vec::new();
        while !self.failed.load(Ordering::Relaxed) {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            if part >= self.cut.len() {
                break;
            }
            match self.merge(part, &mut changed) {
                Ok(done) => merged.push((part, done)),
                Err(error) => {
                    self.failed.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok((merged, changed))
    }

    fn merge(&self, part: usize, changed: &mut Changed<'a>) -> Result<MergedPart> {
        let spill = self.spill;
        let mut input = spill.input(self.cut.keys(part));
        let mut sink = spill.sink(&mut changed.pages, 1);
        let (source, rules, notes) = (spill.source(1), &spill.rules, &mut changed.notes);
        let part = (self.tree, self.cut, part);
        tree::merge_part(&source, &mut sink, part, &mut input, rules, notes)
    }
}
