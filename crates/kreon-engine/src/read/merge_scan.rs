//! One step of a scan: the next visible entries of a region, merged from L0', L0 and the levels.

use std::ops::Bound;

use kreon_base::{Lsn, PageNo, RegionId, Result};

use super::covering::DeadKeys;
use super::scan_source::{Located, Source};
use crate::keys::Direction;
use crate::level::{MappedNodes, View};
use crate::regions::gaps::{DeadRun, Gap, Passing};
use crate::tree;

/// One step of a scan.
pub struct Step<'a> {
    /// Of which region.
    pub region: RegionId,
    /// At which snapshot.
    pub at: Lsn,
    /// Which way.
    pub direction: Direction,
    /// Where it starts, in its direction.
    pub start: &'a Bound<Vec<u8>>,
    /// Where the scan ends.
    pub end: &'a Bound<Vec<u8>>,
    /// Most entries to fetch.
    pub entries_max: usize,
    /// Bytes of keys and values after which it stops.
    pub bytes_max: usize,
    /// Most dead entries to pass.
    pub dead_max: u64,
    /// Gaps of the region.
    pub gaps: &'a [Gap],
}

/// What a step went over.
#[derive(Default)]
pub struct Walked {
    /// There is nothing behind.
    pub is_exhausted: bool,
    /// The first long run of dead entries, if any.
    pub run: Option<DeadRun>,
    /// Dead entries that were passed one by one.
    pub dead_entries: u64,
}

/// Hands the visible entries of the step to `found`, in order, until its end or a limit, each with the leaf of the
/// lowest tree where that walk is.
pub fn run<'a>(
    step: &Step<'_>,
    view: &'a View,
    nodes: &'a [MappedNodes<'a>],
    mut found: impl FnMut(&[u8], Located, Option<PageNo>),
) -> Result<Walked> {
    let Step {
        at, direction, end, ..
    } = *step;
    let passing = Passing::new(step.gaps, at, direction);
    let mut walked = Walked::default();
    let mut run = DeadRun::new(direction);
    let past_gap = passing.start(step.start);
    let start = match &past_gap {
        None => {
            if *step.start == Bound::Unbounded {
                run.begin_in_front();
            }
            step.start
        }
        Some(None) => {
            walked.is_exhausted = true;
            return Ok(walked);
        }
        Some(Some(start)) => {
            run.pass_gap(start);
            start
        }
    };
    let mut dead = DeadKeys::of(view, step.region, at);
    let mut sources = open(view, step, nodes);
    for source in &mut sources {
        source.start(start, direction)?;
        source.leave_dead(&mut dead, direction)?;
    }
    let (mut entries, mut bytes) = (0, 0);
    let mut key = Vec::new();
    while entries < step.entries_max
        && bytes < step.bytes_max
        && walked.dead_entries < step.dead_max
    {
        if !next_key(&sources, direction, &mut key) || is_behind(&key, end, direction) {
            walked.is_exhausted = true;
            break;
        }
        let leaf = sources.last().and_then(Source::leaf);
        let Some(located) = take(&mut sources, &key, step, &mut dead)? else {
            walked.dead_entries += 1;
            let past_gap = passing.behind(&key);
            run.pass(&mut key);
            match past_gap {
                None => continue,
                Some(Some(start)) => {
                    run.pass_gap(&start);
                    skip_to(&mut sources, &start, direction, &mut dead)?;
                    continue;
                }
                Some(None) => {
                    walked.is_exhausted = true;
                    break;
                }
            }
        };
        walked.note(&mut run);
        entries += 1;
        bytes += key.len() + value_bytes(&located);
        found(&key, located, leaf);
    }
    walked.note(&mut run);
    Ok(walked)
}

/// Moves all sources behind `key`; its value at the step's snapshot, if it has one.
fn take(
    sources: &mut [Source<'_>],
    key: &[u8],
    step: &Step<'_>,
    dead: &mut DeadKeys,
) -> Result<Option<Located>> {
    let mut located = None;
    let deleted = dead.newest(key);
    for source in sources {
        if source.key() == Some(key) {
            match located {
                Some(_) => source.pass(key, step.direction)?,
                None => located = source.take(key, step.at, deleted, step.direction)?,
            }
            source.leave_dead(dead, step.direction)?;
        }
    }
    Ok(located.filter(|located| *located != Located::Deleted))
}

fn skip_to(
    sources: &mut [Source<'_>],
    start: &Bound<Vec<u8>>,
    direction: Direction,
    dead: &mut DeadKeys,
) -> Result<()> {
    for source in sources {
        source.skip_to(start, direction)?;
        source.leave_dead(dead, direction)?;
    }
    Ok(())
}

fn value_bytes(located: &Located) -> usize {
    match located {
        Located::Inline(value) => value.len(),
        Located::Logged { value_bytes, .. } => *value_bytes as usize,
        Located::Deleted => 0,
    }
}

impl Walked {
    /// The run ends here.
    fn note(&mut self, run: &mut DeadRun) {
        if run.is_long() && self.run.is_none() {
            self.run = Some(run.clone());
        }
        run.end();
    }
}

/// Newest source first.
fn open<'a>(view: &'a View, step: &Step<'_>, nodes: &'a [MappedNodes<'a>]) -> Vec<Source<'a>> {
    let region = step.region;
    let mut sources = vec![Source::in_l0(&view.active, region)];
    if let Some(frozen) = &view.frozen {
        sources.push(Source::in_l0(&frozen.l0, region));
    }
    for (level, record) in view.levels.seen(region, step.at) {
        if let Some(nodes) = nodes.get(usize::from(level) - 1) {
            let cursor = tree::Cursor::new(nodes, record);
            sources.push(Source::Level(cursor));
        }
    }
    sources
}

/// Puts the nearest key of all sources into `key`; false if there is none.
fn next_key(sources: &[Source<'_>], direction: Direction, key: &mut Vec<u8>) -> bool {
    let keys = sources.iter().filter_map(Source::key);
    let nearest = match direction {
        Direction::Forward => keys.min(),
        Direction::Backward => keys.max(),
    };
    key.clear();
    key.extend_from_slice(nearest.unwrap_or_default());
    nearest.is_some()
}

fn is_behind(key: &[u8], end: &Bound<Vec<u8>>, direction: Direction) -> bool {
    match (end, direction) {
        (Bound::Unbounded, _) => false,
        (Bound::Included(end), Direction::Forward) => key > end.as_slice(),
        (Bound::Excluded(end), Direction::Forward) => key >= end.as_slice(),
        (Bound::Included(end), Direction::Backward) => key < end.as_slice(),
        (Bound::Excluded(end), Direction::Backward) => key <= end.as_slice(),
    }
}
