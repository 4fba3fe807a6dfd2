//! Gets: L0', then L0, then the levels; the first that has a visible version wins.

use std::sync::Arc;

use arc_swap::Guard;
use kreon_base::{Attributes, Codec, Error, Lsn, Payload, Result};
use kreon_l0::{L0, Version};

use super::Reader;
use super::covering::SeenRanges;
use super::scan_source::Located;
use crate::compression::{self, Unpack};
use crate::keys::L0Key;
use crate::level::View;
use crate::regions::RegionState;
use crate::tree::{self, NodeSource};
use crate::visibility::ReadPoint;
use kreon_log::{LogPages, Show, TakeValue, ValueAt};

impl Reader {
    /// Hands the value of `key` at `at` to `take`; `None` if there is none.
    ///
    /// A hit in memory takes no lock and makes no system call. `take` may run while a frame is held:
    /// it should be short.
    pub fn get_value<T: TakeValue>(
        &self,
        region: &RegionState,
        key: &[u8],
        at: ReadPoint<'_>,
        take: T,
    ) -> Result<Option<T::Taken>> {
        self.get_meeting(region, key, at, take, &mut |_| ())
    }

    /// The same; `meet` is told the position of what of L0' and L0 decides. It may be told of more, before.
    pub fn get_meeting<T: TakeValue>(
        &self,
        region: &RegionState,
        key: &[u8],
        at: ReadPoint<'_>,
        take: T,
        meet: &mut impl FnMut(Lsn),
    ) -> Result<Option<T::Taken>> {
        let view = self.view_of(region)?;
        let mut take = Once::new(take);
        match self.find(&view, region, key, at, &mut take, meet)? {
            None | Some(Found::Deleted) => Ok(None),
            Some(Found::Shown(taken)) => Ok(taken),
            Some(Found::Located(located)) => {
                self.show_once(region, key, &located, &self.storage.log_pages(), &mut take)
            }
        }
    }

    /// The current view, for a read of `region`.
    pub fn view_of(&self, region: &RegionState) -> Result<Guard<Arc<View>>> {
        self.storage.check_open()?;
        // Before the check: a view from after a drop would show the region empty.
        let view = self.storage.views.load();
        region.check()?;
        Ok(view)
    }

    pub(super) fn find<T: TakeValue>(
        &self,
        view: &View,
        region: &RegionState,
        key: &[u8],
        at: ReadPoint<'_>,
        take: &mut Once<T>,
        meet: &mut impl FnMut(Lsn),
    ) -> Result<Option<Found<T::Taken>>> {
        let nodes = |level| self.storage.nodes_for_gets(region.id, level);
        match self.find_in_l0s_meeting(view, region, key, at, take, meet) {
            Some(found) => Ok(Some(found)),
            None => find_in_levels(view, region, key, at, nodes, take),
        }
    }

    /// Where the value of `key` at `at` is, in `view`; `None` or [`Located::Deleted`] if there is none.
    pub fn locate(
        &self,
        view: &View,
        region: &RegionState,
        key: &[u8],
        at: ReadPoint<'_>,
    ) -> Result<Option<Located>> {
        let mut take = located();
        let found = self.find(view, region, key, at, &mut take, &mut |_| ())?;
        Ok(found.and_then(|found| found.place(take.attributes)))
    }

    /// What is kept beside the value of `key` at `at`; `None` if there is none. Reads no value.
    pub fn attributes(
        &self,
        region: &RegionState,
        key: &[u8],
        at: ReadPoint<'_>,
    ) -> Result<Option<Attributes>> {
        let view = self.view_of(region)?;
        let mut take = Once::new(Show(|_: &[u8]| ()));
        let found = self.find(&view, region, key, at, &mut take, &mut |_| ())?;
        let is_there = !matches!(found, None | Some(Found::Deleted));
        Ok(is_there.then_some(take.attributes))
    }

    /// Whether `key` has a value at `at`. Reads no value.
    pub fn contains(&self, region: &RegionState, key: &[u8], at: ReadPoint<'_>) -> Result<bool> {
        let view = self.view_of(region)?;
        let mut take = Once::new(Show(|_: &[u8]| ()));
        let found = self.find(&view, region, key, at, &mut take, &mut |_| ())?;
        Ok(!matches!(found, None | Some(Found::Deleted)))
    }

    /// Where the newest version before `at` is, if L0' or L0 has one.
    pub fn locate_in_l0s(
        &self,
        view: &View,
        region: &RegionState,
        key: &[u8],
        at: ReadPoint<'_>,
    ) -> Option<Located> {
        let mut take = located();
        let found = self.find_in_l0s(view, region, key, at, &mut take)?;
        found.place(take.attributes)
    }

    pub fn find_in_l0s<T: TakeValue>(
        &self,
        view: &View,
        region: &RegionState,
        key: &[u8],
        at: ReadPoint<'_>,
        show: &mut Once<T>,
    ) -> Option<Found<T::Taken>> {
        self.find_in_l0s_meeting(view, region, key, at, show, &mut |_| ())
    }

    fn find_in_l0s_meeting<T: TakeValue>(
        &self,
        view: &View,
        region: &RegionState,
        key: &[u8],
        at: ReadPoint<'_>,
        show: &mut Once<T>,
        meet: &mut impl FnMut(Lsn),
    ) -> Option<Found<T::Taken>> {
        let l0_key = L0Key::new(region.id, key);
        let sight = self.visibility.batches.sight();
        loop {
            // Before the versions, and anew if those show that a unit has ended meanwhile.
            let ranges = SeenRanges::of(view);
            let covering = ranges.covering(region.id, key, at.lsn, &sight);
            let sees = |lsn| covering.deletes(lsn) || sight.sees(lsn);
            let mut look = |l0: &L0| {
                l0.get(l0_key.as_slice(), at.lsn, sees, |version: Version<'_>| {
                    let is_deleted = covering.deletes(version.lsn);
                    meet(version.lsn);
                    covering
                        .deletion()
                        .filter(|_| is_deleted)
                        .into_iter()
                        .for_each(&mut *meet);
                    (!sight.is_stale()).then(|| match is_deleted {
                        true => Found::Deleted,
                        false => show.at_payload(version.payload, at),
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
                None => {
                    covering.deletion().into_iter().for_each(&mut *meet);
                    return Some(Found::Deleted);
                }
            }
        }
    }

    /// Hands a value that stands in the log, or is packed, to `take`.
    pub fn show_logged<T: TakeValue>(
        &self,
        region: &RegionState,
        key: &[u8],
        located: &Located,
        pages: &impl LogPages,
        take: T,
    ) -> Result<Option<T::Taken>> {
        let at = match located {
            Located::Logged {
                offset,
                value_bytes,
                attributes,
            } => ValueAt {
                offset: *offset,
                region: region.id,
                key,
                value_bytes: *value_bytes,
                has_attributes: !attributes.is_none(),
            },
            Located::Inline(stored, attributes) => {
                let shown = compression::show(attributes.codec(), stored, take).map(Some);
                return shown.map_err(|error| of_value(&error, region, key));
            }
            Located::Deleted | Located::Expired(_) => return Ok(None),
        };
        let log = self.storage.log.reader();
        let taken = match located.codec() {
            Codec::None => log.with_value(pages, &at, take)?,
            codec => log
                .with_value(pages, &at, Unpack { codec, take })?
                .map_err(|error| of_value(&error, region, key))?,
        };
        Ok(Some(taken))
    }

    /// The same with what has not been called yet.
    pub fn show_once<T: TakeValue>(
        &self,
        region: &RegionState,
        key: &[u8],
        located: &Located,
        pages: &impl LogPages,
        take: &mut Once<T>,
    ) -> Result<Option<T::Taken>> {
        match take.take.take() {
            Some(take) => self.show_logged(region, key, located, pages, take),
            None => Ok(None),
        }
    }
}

/// An error of a value that cannot be unpacked.
#[cold]
pub(super) fn of_value(error: &Error, region: &RegionState, key: &[u8]) -> Error {
    const SHOWN_BYTES: usize = 64;
    let shown = key.get(..SHOWN_BYTES).unwrap_or(key).escape_ascii();
    error.within(format!(
        "the value of key \"{shown}\" of region {:?}",
        region.name
    ))
}

/// Looks into the levels, whose nodes `nodes_of` gives, one after the other.
pub fn find_in_levels<T: TakeValue, S: NodeSource>(
    view: &View,
    region: &RegionState,
    key: &[u8],
    at: ReadPoint<'_>,
    nodes_of: impl Fn(u8) -> S,
    show: &mut Once<T>,
) -> Result<Option<Found<T::Taken>>> {
    for (level, record) in view.levels.seen(region.id, at.lsn) {
        let found = tree::get(&nodes_of(level), record, key, at.lsn, |version| {
            show.at_payload(version.payload, at)
        });
        if let Some(found) = found? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// What an index said.
pub enum Found<R> {
    /// The value was in the index and is shown.
    Shown(Option<R>),
    /// The value is in the log, or in the index and packed.
    Located(Located),
    /// The key was deleted, or its value has ended.
    Deleted,
}

impl Found<Vec<u8>> {
    /// Where the value is, beside which `attributes` are kept; none if the index had it and it was taken before.
    fn place(self, attributes: Attributes) -> Option<Located> {
        match self {
            Self::Shown(value) => value.map(|value| Located::Inline(value, attributes)),
            Self::Located(located) => Some(located),
            Self::Deleted => Some(Located::Deleted),
        }
    }
}

/// Takes a value that is in the index as its own place.
fn located() -> Once<Show<impl FnOnce(&[u8]) -> Vec<u8>>> {
    Once::new(Show(|value: &[u8]| value.to_vec()))
}

/// What takes a value at most once, from one of several places.
pub struct Once<T> {
    /// What has not been called yet.
    pub take: Option<T>,
    /// What is kept beside the value that was found.
    pub attributes: Attributes,
}

impl<T> Once<T> {
    /// Nothing was found yet.
    pub fn new(take: T) -> Self {
        Self {
            take: Some(take),
            attributes: Attributes::NONE,
        }
    }
}

impl<T: TakeValue> Once<T> {
    #[inline]
    fn at_payload(&mut self, payload: Payload<'_>, at: ReadPoint<'_>) -> Found<T::Taken> {
        self.attributes = payload.attributes();
        if at.has_expired(self.attributes) {
            return Found::Deleted;
        }
        match payload {
            Payload::Inline { value, .. } if self.attributes.codec() == Codec::None => {
                Found::Shown(self.take.take().map(|take| take.take(value)))
            }
            Payload::Inline { .. } | Payload::Logged { .. } => {
                Found::Located(Located::of(payload, at))
            }
            Payload::Tombstone { .. } | Payload::Erased { .. } => Found::Deleted,
        }
    }
}
