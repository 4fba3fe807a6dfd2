//! Many gets at once, with their misses in flight together.

use std::sync::Arc;

use arc_swap::Guard;
use kreon_base::Result;
use kreon_mapping::Fetched;

use super::Reader;
use super::scan_source::Located;
use crate::keys::L0Key;
use crate::level::View;
use crate::level::log_source::FetchedLog;
use crate::regions::RegionState;
use crate::tree::{self, Filtering};
use crate::visibility::ReadPoint;
use kreon_log::Own;

/// So many searches of the L0s wait for memory together.
const TOGETHER: usize = 8;

/// Values that are in flight together: as many as keep a device busy.
const FETCHED_MAX: usize = 256;

/// Has the processor fetch the leaves of the L0s where `keys` belong.
fn approach<'k>(view: &View, region: &RegionState, keys: impl Iterator<Item = &'k [u8]>) {
    for key in keys {
        let key = L0Key::new(region.id, key);
        drop(view.active.approach(key.as_slice()));
        if let Some(frozen) = &view.frozen {
            drop(frozen.l0.approach(key.as_slice()));
        }
    }
}

impl Reader {
    /// The values of `keys` at `at`, in the order of `keys`; each is handed to `found_value` with its index.
    ///
    /// Index nodes and leaves are loaded level by level and values all together, each at queue depth.
    pub fn multi_get(
        self: &Arc<Self>,
        region: &RegionState,
        keys: &[&[u8]],
        at: ReadPoint<'_>,
        mut found_value: impl FnMut(usize, Vec<u8>),
    ) -> Result<()> {
        let view = Guard::into_inner(self.view_of(region)?);
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|index| keys[*index]);
        let mut found: Vec<(usize, Located)> = Vec::new();
        let mut missing = Vec::new();
        for order in order.chunks(TOGETHER) {
            approach(&view, region, order.iter().map(|index| keys[*index]));
            for &index in order {
                match self.locate_in_l0s(&view, region, keys[index], at) {
                    Some(located) => found.push((index, located)),
                    None => missing.push(index),
                }
            }
        }
        for (level, record) in view.levels.seen(region.id, at.lsn) {
            let nodes = self.storage.nodes_for_gets(region.id, level);
            let wanted: Vec<_> = missing.iter().map(|index| keys[*index]).collect();
            let passed = tree::prefetch_paths(&nodes, record, &wanted)?;
            let mut still_missing = Vec::new();
            for (place, index) in missing.into_iter().enumerate() {
                let key = keys[index];
                match tree::get(&nodes, record, key, at.lsn, |version| {
                    Located::of(version.payload, at)
                })? {
                    Some(located) => found.push((index, located)),
                    None => {
                        if passed.binary_search(&place).is_ok() {
                            self.storage.gets.filtered(Filtering::InVain);
                        }
                        still_missing.push(index);
                    }
                }
            }
            missing = still_missing;
        }
        let mut fetched = Fetched::default();
        for found in found.chunks(FETCHED_MAX) {
            let located = found.iter();
            let records = located.filter_map(|(index, located)| located.record(keys[*index]));
            self.fetch_records(records, &mut fetched)?;
            let log = FetchedLog::new(self.storage.log_pages(), &fetched);
            for (index, located) in found {
                let key = keys[*index];
                if let Some(value) = self.show_logged(region, key, located, &log, Own)? {
                    found_value(*index, value);
                }
            }
        }
        Ok(())
    }
}
