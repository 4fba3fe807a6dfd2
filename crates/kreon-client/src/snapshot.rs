//! Snapshots as their users see them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kreon_wire::{GroupId, KeyRange as Held, Request};

use crate::error::{Error, ErrorKind, Result, check_key};
use crate::handle::Handle;
use crate::pin::{Pin, begin, pin_of};
use crate::range::KeyRange;
use crate::scan::Scan;
use crate::slot::Value;
use crate::ticket::value;

/// What a table was at a moment: one moment for each group that holds a part of it. Ends with the term of a primary or the
/// link to it: what lies there is `Closed` then. Clones are the same snapshot; it is released with the last of them.
#[derive(Clone)]
pub struct Snapshot {
    handle: Handle,
    table: Arc<str>,
    ranges: Arc<Vec<(GroupId, Held)>>,
    pins: Arc<HashMap<GroupId, Arc<Pin>>>,
}

impl Snapshot {
    pub(crate) fn take(handle: &Handle, table: &Arc<str>) -> Result<Self> {
        let ranges = handle.ranges(table);
        let (mut begun, mut pins) = (HashMap::new(), HashMap::new());
        for (group, range) in &ranges {
            if !begun.contains_key(group) {
                begun.insert(*group, begin(handle, range)?);
            }
        }
        for (group, slot) in begun {
            pins.insert(group, pin_of(handle, &slot.wait()?)?);
        }
        Ok(Self {
            handle: handle.clone(),
            table: table.clone(),
            ranges: Arc::new(ranges),
            pins: Arc::new(pins),
        })
    }

    /// The value that a key had; `None` if it had none.
    ///
    /// # Errors
    /// `Closed` if the snapshot of the key's group has ended; otherwise as [`Region::get`](crate::Region::get).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        check_key(key)?;
        let holds = |(_, range): &&(GroupId, Held)| range.holds(key);
        let group = self.ranges.iter().find(holds).map(|(group, _)| group);
        let pin = group.and_then(|group| self.pins.get(group));
        let pin = pin.ok_or_else(|| Error::new(ErrorKind::Unavailable, "no group held the key"))?;
        let request = Request::Get {
            table: &self.table,
            key,
            snapshot: pin.snapshot(),
        };
        value(&pin.ask(&request.body())?)
    }

    /// The entries of a range as they were, ascending. The scan ends with `Closed` where the snapshot has ended.
    pub fn scan(&self, range: impl KeyRange) -> Scan {
        let scan = Scan::new(&self.handle, &self.table, range.into_bounds(), false);
        scan.within(&self.ranges, &self.pins)
    }

    /// The entries of a range as they were, descending.
    pub fn scan_rev(&self, range: impl KeyRange) -> Scan {
        let scan = Scan::new(&self.handle, &self.table, range.into_bounds(), true);
        scan.within(&self.ranges, &self.pins)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}
