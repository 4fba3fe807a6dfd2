//! Gets: L0', then L0, then the levels; the first that has a visible version wins.

use kreon_base::{Lsn, Payload, Result};
use kreon_l0::{L0, Version};

use super::core::Core;
use super::covering::SeenRanges;
use super::region::RegionState;
use super::scan_source::Located;
use crate::keys::L0Key;
use crate::level::View;
use crate::log::{LogPages, ValueAt};
use crate::tree::{self, NodeSource};

impl Core {
    /// Shows the value of `key` at `at` ([`Lsn::MAX`]: now) to `show`; `None` if there is none.
    ///
    /// A hit in memory takes no lock and makes no system call. `show` may run while a frame is held:
    /// it should be short.
    pub fn get<R>(
        &self,
        region: &RegionState,
        key: &[u8],
        at: Lsn,
        show: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.check_open()?;
        // Before the check: a view from after a drop would show the region empty.
        let view = self.parts.views.load();
        region.check()?;
        let mut show = Once(Some(show));
        let nodes = |level| self.nodes_for_gets(region.id, level);
        let found = match self.find_in_l0s(&view, region, key, at, &mut show) {
            Some(found) => Some(found),
            None => find_in_levels(&view, region, key, at, nodes, &mut show)?,
        };
        match found {
            None | Some(Found::Deleted) => Ok(None),
            Some(Found::Shown(result)) => Ok(result),
            Some(Found::Logged(located)) => {
                let log = self.log_pages();
                let shown =
                    self.show_logged(region, key, &located, &log, |value| show.take(value))?;
                Ok(shown.flatten())
            }
        }
    }

    /// Whether `key` has a value at `at`. Reads no value.
    pub fn contains(&self, region: &RegionState, key: &[u8], at: Lsn) -> Result<bool> {
        self.check_open()?;
        // Before the check: a view from after a drop would show the region empty.
        let view = self.parts.views.load();
        region.check()?;
        let mut show = Once(Some(|_: &[u8]| ()));
        let nodes = |level| self.nodes_for_gets(region.id, level);
        let found = match self.find_in_l0s(&view, region, key, at, &mut show) {
            Some(found) => Some(found),
            None => find_in_levels(&view, region, key, at, nodes, &mut show)?,
        };
        Ok(!matches!(found, None | Some(Found::Deleted)))
    }

    /// Where the newest version before `at` is, if L0' or L0 has one.
    pub fn locate_in_l0s(
        &self,
        view: &View,
        region: &RegionState,
        key: &[u8],
        at: Lsn,
    ) -> Option<Located> {
        let mut show = Once(Some(|value: &[u8]| Located::Inline(value.to_vec())));
        match self.find_in_l0s(view, region, key, at, &mut show)? {
            Found::Shown(located) => located,
            Found::Logged(located) => Some(located),
            Found::Deleted => Some(Located::Deleted),
        }
    }

    pub(super) fn find_in_l0s<R, F: FnOnce(&[u8]) -> R>(
        &self,
        view: &View,
        region: &RegionState,
        key: &[u8],
        at: Lsn,
        show: &mut Once<F>,
    ) -> Option<Found<R>> {
        let l0_key = L0Key::new(region.id, key);
        let sight = self.units.sight();
        loop {
            // Before the versions, and anew if those show that a unit has ended meanwhile.
            let ranges = SeenRanges::of(view);
            let covering = ranges.covering(region.id, key, at, &sight);
            let sees = |lsn| covering.deletes(lsn) || sight.sees(lsn);
            let mut look = |l0: &L0| {
                l0.get(l0_key.as_slice(), at, sees, |version: Version<'_>| {
                    let is_deleted = covering.deletes(version.lsn);
                    (!sight.is_stale()).then(|| match is_deleted {
                        true => Found::Deleted,
                        false => show.at_payload(version.payload),
                    })
                })
            };
            let frozen = view.frozen.as_ref();
            let found = look(&view.active).or_else(|| frozen.and_then(|frozen| look(&frozen.l0)));
            match found {
                Some(None) => {}
                Some(found) => return found,
                None if !covering.deletes(Lsn(0)) => return None,
                None if sight.is_stale() => {}
                None => return Some(Found::Deleted),
            }
        }
    }

    /// Shows a value that stands in the log.
    pub fn show_logged<R>(
        &self,
        region: &RegionState,
        key: &[u8],
        located: &Located,
        pages: &impl LogPages,
        show: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let (offset, value_bytes) = match located {
            Located::Logged {
                offset,
                value_bytes,
            } => (*offset, *value_bytes),
            Located::Inline(value) => return Ok(Some(show(value))),
            Located::Deleted => return Ok(None),
        };
        let at = ValueAt {
            offset,
            region: region.id,
            key,
            value_bytes,
        };
        self.parts
            .log
            .with_value(pages, &at, &mut Vec::new(), show)
            .map(Some)
    }
}

/// Looks into the levels, whose nodes `nodes_of` gives, one after the other.
pub(super) fn find_in_levels<R, F: FnOnce(&[u8]) -> R, S: NodeSource>(
    view: &View,
    region: &RegionState,
    key: &[u8],
    at: Lsn,
    nodes_of: impl Fn(u8) -> S,
    show: &mut Once<F>,
) -> Result<Option<Found<R>>> {
    for (level, record) in view.levels.seen(region.id, at) {
        let found = tree::get(&nodes_of(level), record, key, at, |version| {
            show.at_payload(version.payload)
        });
        if let Some(found) = found? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// What an index said.
pub(super) enum Found<R> {
    /// The value was in the index and is shown.
    Shown(Option<R>),
    /// The value is in the log.
    Logged(Located),
    /// The key was deleted.
    Deleted,
}

/// A closure that is called at most once, from one of several places.
pub(super) struct Once<F>(pub(super) Option<F>);

impl<F> Once<F> {
    pub(super) fn take<R>(&mut self, value: &[u8]) -> Option<R>
    where
        F: FnOnce(&[u8]) -> R,
    {
        self.0.take().map(|show| show(value))
    }

    fn at_payload<R>(&mut self, payload: Payload<'_>) -> Found<R>
    where
        F: FnOnce(&[u8]) -> R,
    {
        match payload {
            Payload::Inline { value } => Found::Shown(self.take(value)),
            Payload::Logged { .. } => Found::Logged(payload.into()),
            Payload::Tombstone { .. } | Payload::Erased { .. } => Found::Deleted,
        }
    }
}
