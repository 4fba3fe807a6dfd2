//! Scans of a transaction: the pairs of its snapshot with its own writes on top, from both ends.

use std::ops::Bound;
use std::sync::Arc;

use kreon_base::Result;

use super::handle::Transaction;
use super::reads::RangePlace;
use super::writes::{Own, Write};
use crate::read::{KeyBounds, Scan, is_empty};
use crate::regions::RegionState;

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// The value of a key now; `None`: the transaction has deleted it.
type Now = Option<Vec<u8>>;

/// A scan of a range. What it has passed counts as read when it is dropped; if it is leaked, the whole range.
pub struct TransactionScan<'t> {
    transaction: &'t mut Transaction,
    region: Arc<RegionState>,
    /// Where the range stands among those that were read.
    place: Option<RangePlace>,
    bounds: KeyBounds,
    /// What neither end has passed yet.
    rest: KeyBounds,
    scan: Scan,
    /// Pairs of the snapshot that the scan has shown and this one has not, from the front and from the back.
    ahead: [Option<Pair>; 2],
    is_at_end: bool,
}

impl<'t> TransactionScan<'t> {
    pub(super) fn new(
        transaction: &'t mut Transaction,
        (region, place): (&Arc<RegionState>, Option<RangePlace>),
        bounds: KeyBounds,
        scan: Scan,
    ) -> Self {
        Self {
            transaction,
            region: Arc::clone(region),
            place,
            is_at_end: is_empty(&bounds.0, &bounds.1),
            rest: bounds.clone(),
            bounds,
            scan,
            ahead: [None, None],
        }
    }

    /// The next pair from the front, or from the back.
    ///
    /// # Errors
    /// Of reading; the scan ends with the first.
    pub fn next(&mut self, is_from_front: bool) -> Result<Option<Pair>> {
        loop {
            if self.is_at_end {
                return Ok(None);
            }
            let found = self.nearest(is_from_front);
            let Some((key, value)) = found.inspect_err(|_| self.is_at_end = true)? else {
                self.is_at_end = true;
                return Ok(None);
            };
            let passed = Bound::Excluded(key.clone());
            match is_from_front {
                true => self.rest.0 = passed,
                false => self.rest.1 = passed,
            }
            if let Some(value) = value {
                return Ok(Some((key, value)));
            }
            // An own deletion.
            self.is_at_end = is_empty(&self.rest.0, &self.rest.1);
        }
    }

    /// The nearest key of the snapshot or of the own writes, and its value now.
    fn nearest(&mut self, is_from_front: bool) -> Result<Option<(Vec<u8>, Now)>> {
        let end = usize::from(!is_from_front);
        self.look_ahead(is_from_front)?;
        let rest = (as_slice(&self.rest.0), as_slice(&self.rest.1));
        let writes = self.transaction.writes();
        let own = match is_empty(&self.rest.0, &self.rest.1) {
            true => None,
            false => writes.next_within(self.region.id, rest, is_from_front),
        };
        let value_of = |write: &Write| write.as_ref().map(|put| put.value.clone());
        let Some((own, write)) = own else {
            let pair = self.ahead[end].take();
            return Ok(pair.map(|(key, value)| (key, Some(value))));
        };
        match &self.ahead[end] {
            Some((key, _)) if key.as_slice() != own && (key.as_slice() < own) == is_from_front => {
                let pair = self.ahead[end].take();
                Ok(pair.map(|(key, value)| (key, Some(value))))
            }
            Some((key, _)) if key.as_slice() == own => {
                let found = (own.to_vec(), value_of(write));
                self.ahead[end] = None;
                Ok(Some(found))
            }
            _ => Ok(Some((own.to_vec(), value_of(write)))),
        }
    }

    /// Takes the next pair of the snapshot that is not in an own deleted range.
    fn look_ahead(&mut self, is_from_front: bool) -> Result<()> {
        let end = usize::from(!is_from_front);
        let region = self.region.id;
        while self.ahead[end].is_none() {
            let own = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
            let pair = match is_from_front {
                true => self.scan.next_with(own)?,
                false => self.scan.next_back_with(own)?,
            };
            let Some(pair) = pair else {
                // The last one may be with the other end.
                self.ahead[end] = self.ahead[1 - end].take();
                return Ok(());
            };
            let writes = self.transaction.writes();
            // A written key hides it where they meet.
            let is_hidden = writes.has(region)
                && !matches!(writes.own(region, &pair.0), Own::Unknown)
                && !writes.sets(region, &pair.0);
            if !is_hidden {
                self.ahead[end] = Some(pair);
            }
        }
        Ok(())
    }
}

impl Drop for TransactionScan<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place.filter(|_| !self.is_at_end) else {
            return;
        };
        let seen_to = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Excluded(key) => Bound::Included(key.clone()),
            bound => bound.clone(),
        };
        let (is_front_used, is_back_used) =
            (self.rest.0 != self.bounds.0, self.rest.1 != self.bounds.1);
        let bounds = match (is_front_used, is_back_used) {
            (true, false) => (self.bounds.0.clone(), seen_to(&self.rest.0)),
            (false, true) => (seen_to(&self.rest.1), self.bounds.1.clone()),
            // Nothing was read: a range without keys.
            (false, false) => (Bound::Included(vec![]), Bound::Excluded(vec![])),
            // Two ranges; the middle is between them.
            (true, true) => return,
        };
        self.transaction.narrow(place, bounds);
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
