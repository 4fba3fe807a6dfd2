//! One step of a scan: the next visible entries of a region, merged from L0', L0 and the levels.

use std::cmp::Ordering;
use std::ops::Bound;

use kreon_base::{PageNo, Payload, RegionId, Result, Timestamp};

use super::covering::DeadKeys;
use super::scan_source::{Located, Met, Source};
use crate::keys::Direction;
use crate::level::{MappedNodes, View};
use crate::regions::gaps::{DeadRun, Gap, Passing};
use crate::tree;
use crate::visibility::{ReadPoint, Visibility};

/// One step of a scan.
pub struct Step<'a> {
    /// Of which region.
    pub region: RegionId,
    /// Where it looks from.
    pub at: ReadPoint<'a>,
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
    /// Says which values have ended for all readers, so that a run of dead entries may have them. `None`: none.
    pub visibility: Option<&'a Visibility>,
}

impl<'a> Step<'a> {
    /// Everything in a range as it is at `at`, ascending.
    pub fn whole(
        region: RegionId,
        at: ReadPoint<'a>,
        start: &'a Bound<Vec<u8>>,
        end: &'a Bound<Vec<u8>>,
    ) -> Self {
        Self {
            region,
            at,
            direction: Direction::Forward,
            start,
            end,
            entries_max: usize::MAX,
            bytes_max: usize::MAX,
            dead_max: u64::MAX,
            gaps: &[],
            visibility: None,
        }
    }

    /// Values that end by then have ended for all readers.
    fn horizon(&self) -> Timestamp {
        let horizon = self.visibility.map(Visibility::horizon);
        horizon.unwrap_or(Timestamp::MIN)
    }
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
    mut found: impl FnMut(&[u8], Payload<'_>, Option<PageNo>),
) -> Result<Walked> {
    let Step {
        at, direction, end, ..
    } = *step;
    let passing = Passing::new(step.gaps, at.lsn, direction);
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
    let mut dead = DeadKeys::of(view, step.region, at.lsn);
    let mut sources = open(view, step, nodes);
    for source in &mut sources {
        source.start(start, direction)?;
        source.leave_dead(&mut dead, direction)?;
    }
    let (mut entries, mut bytes, mut horizon) = (0, 0, None);
    let mut key = Vec::new();
    while entries < step.entries_max
        && bytes < step.bytes_max
        && walked.dead_entries < step.dead_max
    {
        let nearest = nearest(&sources, direction);
        let Some((nearest, next)) = nearest.filter(|(_, key)| !is_behind(key, end, direction))
        else {
            walked.is_exhausted = true;
            break;
        };
        key.clear();
        key.extend_from_slice(next);
        let leaf = sources.last().and_then(Source::leaf);
        let show = |payload: Payload<'_>| {
            bytes += key.len() + value_bytes(payload);
            found(&key, payload, leaf);
        };
        let met = take(&mut sources, nearest, &key, step, &mut dead, show)?;
        if let Met::Expired(expires) = met
            && expires > *horizon.get_or_insert_with(|| step.horizon())
        {
            // An older snapshot sees it: these keys are no gap.
            walked.dead_entries += 1;
            walked.note(&mut run);
            continue;
        }
        if met != Met::Value {
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
        }
        walked.note(&mut run);
        entries += 1;
    }
    walked.note(&mut run);
    Ok(walked)
}

/// Moves all sources behind `key`; shows its value at the step's snapshot, if it has one.
#[inline]
fn take(
    sources: &mut [Source<'_>],
    nearest: Nearest,
    key: &[u8],
    step: &Step<'_>,
    dead: &mut DeadKeys,
    mut show: impl FnMut(Payload<'_>),
) -> Result<Met> {
    let is_ahead = step.direction == Direction::Forward;
    if let Some(source) = sources.get_mut(nearest.at)
        && nearest.is_sole
        && is_ahead
        && dead.is_empty()
    {
        return source.show_ahead(key, step.at, show);
    }
    let located = take_from_all(sources, key, step, dead)?;
    if let Some(Located::Expired(expires)) = located {
        return Ok(Met::Expired(expires));
    }
    let value = located.as_ref().and_then(Located::value);
    Ok(value.map_or(Met::Dead, |value| {
        show(value);
        Met::Value
    }))
}

fn take_from_all(
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
    Ok(located)
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

fn value_bytes(payload: Payload<'_>) -> usize {
    match payload {
        Payload::Inline { value, .. } => value.len(),
        Payload::Logged { value_bytes, .. } => value_bytes as usize,
        Payload::Tombstone { .. } | Payload::Erased { .. } => 0,
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
    // No more than there are: sources are large.
    let l0s = 1 + usize::from(view.frozen.is_some());
    let mut sources = Vec::with_capacity(l0s + nodes.len());
    sources.push(Source::in_l0(&view.active, region));
    if let Some(frozen) = &view.frozen {
        sources.push(Source::in_l0(&frozen.l0, region));
    }
    for (level, record) in view.levels.seen(region, step.at.lsn) {
        if let Some(nodes) = nodes.get(usize::from(level) - 1) {
            let cursor = tree::Cursor::new(nodes, record);
            sources.push(Source::Level(cursor));
        }
    }
    sources
}

/// The source with the nearest key.
#[derive(Clone, Copy)]
struct Nearest {
    /// The newest of those that have it.
    at: usize,
    /// No other has it.
    is_sole: bool,
}

/// The nearest key of all sources; none if there is none.
#[inline]
fn nearest<'s>(sources: &'s [Source<'_>], direction: Direction) -> Option<(Nearest, &'s [u8])> {
    let keys = sources.iter().enumerate();
    let mut keys = keys.filter_map(|(at, source)| Some((at, source.key()?)));
    let (at, mut nearest) = keys.next()?;
    let mut who = Nearest { at, is_sole: true };
    for (at, key) in keys {
        match (key.cmp(nearest), direction) {
            (Ordering::Equal, _) => who.is_sole = false,
            (Ordering::Less, Direction::Forward) | (Ordering::Greater, Direction::Backward) => {
                nearest = key;
                who = Nearest { at, is_sole: true };
            }
            _ => {}
        }
    }
    Some((who, nearest))
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
