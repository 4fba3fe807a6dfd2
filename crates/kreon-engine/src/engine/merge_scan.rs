//! One step of a scan: the next visible entries of a region, merged from L0', L0 and the levels.

use std::ops::Bound;

use kreon_base::{Lsn, PageNo, RegionId, Result};

use super::covering::DeadKeys;
use super::scan_source::{Direction, Located, Source};
use crate::level::{MappedNodes, View};
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
}

/// Hands the visible entries of the step to `found`, in order, until its end or a limit, each with the leaf of the
/// lowest tree where that walk is. Returns whether the range is exhausted.
pub fn run<'a>(
    step: &Step<'_>,
    view: &'a View,
    nodes: &'a [MappedNodes<'a>],
    mut found: impl FnMut(&[u8], Located, Option<PageNo>),
) -> Result<bool> {
    let Step {
        at, direction, end, ..
    } = *step;
    let mut sources = open(view, step, nodes);
    let mut dead = DeadKeys::of(view, step.region, at);
    for source in &mut sources {
        source.start(step.start, direction)?;
        source.leave_dead(&mut dead, direction)?;
    }
    let (mut entries, mut bytes) = (0, 0);
    let mut key = Vec::new();
    while entries < step.entries_max && bytes < step.bytes_max {
        if !next_key(&sources, direction, &mut key) || is_behind(&key, end, direction) {
            return Ok(true);
        }
        let leaf = sources.last().and_then(Source::leaf);
        let mut located = None;
        let deleted = dead.newest(&key);
        for source in &mut sources {
            if source.key() == Some(key.as_slice()) {
                match located {
                    Some(_) => source.pass(&key, direction)?,
                    None => located = source.take(&key, at, deleted, direction)?,
                }
                source.leave_dead(&mut dead, direction)?;
            }
        }
        let value_bytes = match &located {
            None | Some(Located::Deleted) => continue,
            Some(Located::Inline(value)) => value.len(),
            Some(Located::Logged { value_bytes, .. }) => *value_bytes as usize,
        };
        entries += 1;
        bytes += key.len() + value_bytes;
        if let Some(located) = located {
            found(&key, located, leaf);
        }
    }
    Ok(false)
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
