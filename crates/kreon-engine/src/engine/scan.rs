//! Scans: ordered walks over a region at a snapshot, from both ends.
//!
//! A scan fetches ahead in steps that grow from a few entries to many: a short scan does not pay for
//! values that nobody asks for, a long one reads its values at queue depth. Between steps it holds
//! nothing but its snapshot, so an idle scan costs no memory and keeps no page from being reused.

use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{Bug, KEY_BYTES_MAX, Result, SEGMENT_BYTES};
use kreon_format::fragment_bytes;

use super::batch::Batch;
use super::core::Core;
use super::merge_scan::{self, Step};
use super::region::RegionState;
use super::scan_source::{Direction, Located};
use super::snapshot::OpenSnapshot;
use crate::level::source::prefetch_log;

const FIRST_STEP_ENTRIES: usize = 16;
const STEP_ENTRIES_MAX: usize = 512;
const STEP_BYTES_MAX: usize = 1 << 20;

/// A key and where its value is.
pub type Entry = (Vec<u8>, Located);

/// A range of keys.
pub type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// See the module's text.
pub struct Scan {
    core: Arc<Core>,
    region: Arc<RegionState>,
    snapshot: Arc<OpenSnapshot>,
    /// What neither end has fetched yet.
    rest: Option<KeyBounds>,
    /// Fetched from the front, ascending.
    front: Batch,
    /// Fetched from the back, descending.
    back: Batch,
    step_entries: usize,
    with_values: bool,
}

impl Scan {
    /// A scan of `bounds`; without values it reads no log.
    pub fn new(
        core: &Arc<Core>,
        region: &Arc<RegionState>,
        snapshot: Arc<OpenSnapshot>,
        bounds: KeyBounds,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            region: Arc::clone(region),
            snapshot,
            rest: (!is_empty(&bounds)).then_some(bounds),
            front: Batch::default(),
            back: Batch::default(),
            step_entries: FIRST_STEP_ENTRIES,
            with_values: true,
        }
    }

    /// The same scan without values: they come out empty and the log is not read. Before the first
    /// pair is taken.
    pub fn without_values(&mut self) {
        self.with_values = false;
    }

    /// Shows the next pair from the front.
    ///
    /// # Errors
    /// Of reading; the scan ends with the first.
    pub fn next_with<R>(&mut self, show: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        if self.front.is_empty() {
            self.fetch(Direction::Forward)?;
        }
        if !self.front.is_empty() {
            return Ok(self.front.take_first(show));
        }
        // The front has reached what the back fetched.
        Ok(self.back.take_last(show))
    }

    /// Shows the next pair from the back.
    ///
    /// # Errors
    /// Of reading; the scan ends with the first.
    pub fn next_back_with<R>(&mut self, show: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        if self.back.is_empty() {
            self.fetch(Direction::Backward)?;
        }
        if !self.back.is_empty() {
            return Ok(self.back.take_first(show));
        }
        Ok(self.front.take_last(show))
    }

    fn fetch(&mut self, direction: Direction) -> Result<()> {
        let Some(bounds) = self.rest.take() else {
            return Ok(());
        };
        self.core.check_open()?;
        let (located, is_exhausted) = self.locate(&bounds, direction)?;
        if !is_exhausted && let Some((last, _)) = located.last() {
            let rest = match direction {
                Direction::Forward if Bug::ScanStepRepeatsKey.is_planted() => {
                    (Bound::Included(last.clone()), bounds.1)
                }
                Direction::Forward => (Bound::Excluded(last.clone()), bounds.1),
                Direction::Backward => (bounds.0, Bound::Excluded(last.clone())),
            };
            self.rest = Some(rest);
        }
        Ok(())
    }

    /// Fetches one step into the batch of `direction`. The view is held only in here, so that the
    /// records that the entries point at stay.
    fn locate(&mut self, bounds: &KeyBounds, direction: Direction) -> Result<(Vec<Entry>, bool)> {
        let view = self.core.parts.views.load_full();
        // After the view was taken: one from after a drop would show the region empty.
        self.region.check()?;
        let nodes = self.core.nodes(&view, self.region.id);
        let (start, end) = match direction {
            Direction::Forward => (&bounds.0, &bounds.1),
            Direction::Backward => (&bounds.1, &bounds.0),
        };
        let step = Step {
            region: self.region.id,
            at: self.snapshot.lsn(),
            direction,
            start,
            end,
            entries_max: self.step_entries,
            bytes_max: STEP_BYTES_MAX,
        };
        let mut located = Vec::new();
        let is_exhausted = merge_scan::run(&step, &view, &nodes, |key, found| {
            located.push((key.to_vec(), found));
        })?;
        self.step_entries = (self.step_entries * 2).min(STEP_ENTRIES_MAX);
        self.fill(direction, &located)?;
        Ok((located, is_exhausted))
    }

    /// Reads the values of `located` at queue depth.
    fn fill(&mut self, direction: Direction, located: &[Entry]) -> Result<()> {
        let batch = match direction {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        };
        batch.clear();
        let core = &self.core;
        if self.with_values {
            core.prefetch_values(located)?;
        }
        for (key, found) in located {
            batch.push(key, |bytes| match self.with_values {
                true => core
                    .show_logged(&self.region, key, found, |value| {
                        bytes.extend_from_slice(value)
                    })
                    .map(drop),
                false => Ok(()),
            })?;
        }
        Ok(())
    }
}

impl Core {
    /// Loads the log pages of small values, all at once; large ones are read by themselves.
    pub fn prefetch_values(&self, located: &[Entry]) -> Result<()> {
        const PREFETCH_BYTES_MAX: usize = 64 << 10;
        let log = &self.parts.log;
        let ranges = located.iter().filter_map(|(key, found)| match found {
            Located::Logged {
                offset,
                value_bytes,
            } => {
                // A record may go on in another segment. What lies behind this one on the volume must not
                // come into a frame: it would be there, stale, when the log writes that segment.
                let rest = SEGMENT_BYTES as usize - offset.within_segment() as usize;
                let len = fragment_bytes(key.len() + *value_bytes as usize).min(rest);
                (len <= PREFETCH_BYTES_MAX && log.is_on_device(*offset)).then_some((offset.0, len))
            }
            Located::Inline(_) | Located::Deleted => None,
        });
        prefetch_log(&self.parts.mapping, ranges)
    }
}

/// Whether no key can lie within, so that ranges given the wrong way round are empty.
fn is_empty(bounds: &KeyBounds) -> bool {
    match bounds {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low), Bound::Excluded(high))
        | (Bound::Excluded(low), Bound::Included(high))
        | (Bound::Excluded(low), Bound::Excluded(high)) => low >= high,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}

/// All keys that start with `prefix`.
pub fn prefix_bounds(prefix: &[u8]) -> KeyBounds {
    let mut end = prefix.to_vec();
    while end.last() == Some(&0xff) {
        end.pop();
    }
    if let Some(last) = end.last_mut() {
        *last += 1;
        return (Bound::Included(prefix.to_vec()), Bound::Excluded(end));
    }
    (Bound::Included(prefix.to_vec()), Bound::Unbounded)
}

const _: () = assert!(KEY_BYTES_MAX < STEP_BYTES_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_0xff_have_no_upper_bound() {
        assert_eq!(prefix_bounds(b"a").1, Bound::Excluded(b"b".to_vec()));
        assert_eq!(
            prefix_bounds(b"a\xff\xff").1,
            Bound::Excluded(b"b".to_vec())
        );
        assert_eq!(prefix_bounds(b"\xff\xff").1, Bound::Unbounded);
        assert_eq!(prefix_bounds(b"").1, Bound::Unbounded);
    }

    #[test]
    fn bounds_the_wrong_way_round_are_empty() {
        let bound = |key: &str| Bound::Excluded(key.as_bytes().to_vec());
        assert!(is_empty(&(bound("b"), bound("a"))));
        assert!(is_empty(&(bound("a"), bound("a"))));
        assert!(!is_empty(&(
            Bound::Included(b"a".to_vec()),
            Bound::Included(b"a".to_vec())
        )));
    }
}
