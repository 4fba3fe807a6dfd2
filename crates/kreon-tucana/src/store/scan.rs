//! Pairs of a region in the order of their keys.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};

use super::handle::Handle;
use super::region_key::key_within;
use super::region_state::RegionState;
use crate::tree::{Cursor, Direction, Frozen, ScanRange};

/// A scan of a region in progress: [`Iterator`] over results of pairs. It goes on behind a record that cannot be read, and ends
/// at a leaf that cannot.
///
/// # Errors
/// `Corruption`; those of the device. `Closed` after the store was closed or, but for a scan of a snapshot, the region dropped.
pub struct StoreScan {
    handle: Arc<Handle>,
    source: Source,
    cursor: Cursor,
    has_ended: bool,
}

/// What a scan looks at.
pub(super) enum Source {
    /// The newest state of a region.
    Newest(Arc<RegionState>),
    /// A state that does not change.
    Frozen(Arc<Frozen>),
    /// Nothing but an error: a region of another store.
    Refused(Error),
}

impl StoreScan {
    pub(super) fn new(
        handle: &Arc<Handle>,
        source: Source,
        range: ScanRange,
        direction: Direction,
    ) -> Self {
        Self {
            handle: Arc::clone(handle),
            source,
            cursor: Cursor::new(range, direction),
            has_ended: false,
        }
    }

    fn next_pair(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let take = |key: &[u8], value: &[u8]| (key_within(key).to_vec(), value.to_vec());
        let (source, cursor) = (&self.source, &mut self.cursor);
        self.handle.with(|core| {
            let tree = &core.shared.tree;
            match source {
                Source::Frozen(state) => tree.at(state).next(cursor, take),
                Source::Newest(region) => {
                    let next = tree.next(cursor, take);
                    // A drop deletes keys: what was shown until now is all that was there.
                    region.check()?;
                    next
                }
                Source::Refused(error) => Err(error.clone()),
            }
        })
    }
}

impl Iterator for StoreScan {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let next = self.next_pair();
        // Behind these no pair can be shown.
        self.has_ended = match &next {
            Ok(pair) => pair.is_none(),
            Err(error) => matches!(error.kind(), ErrorKind::Closed | ErrorKind::InvalidArgument),
        };
        next.transpose()
    }
}
