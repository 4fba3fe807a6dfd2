//! Operations as they are stored: with the TTL and the compression of their regions.

use std::borrow::Cow;
use std::ops::Range;

use kreon_base::Codec;

use crate::compression;
use crate::operation::{Expiry, Operation, Terms};
use crate::options::Clock;

/// Operations as they are stored.
pub(super) struct Prepared<'a> {
    given: &'a [Operation<'a>],
    /// Of each operation; none: all are stored as they were given.
    changes: Vec<Change>,
    /// The packed values, one behind the other.
    packed: Vec<u8>,
}

struct Change {
    terms: Terms,
    /// Its packed value.
    packed: Option<Range<usize>>,
}

impl<'a> Prepared<'a> {
    /// What the regions make of `given`, which are written now.
    pub fn of(given: &'a [Operation<'a>], clock: &Clock) -> Self {
        let mut prepared = Self {
            given,
            changes: Vec::new(),
            packed: Vec::new(),
        };
        if given.iter().any(is_changed) {
            let change = |operation| change(operation, clock, &mut prepared.packed);
            prepared.changes = given.iter().map(change).collect();
        }
        prepared
    }

    /// The operations, in the order in which they were given.
    pub fn operations(&self) -> Cow<'_, [Operation<'_>]> {
        if self.changes.is_empty() {
            return Cow::Borrowed(self.given);
        }
        let stored = self.given.iter().zip(&self.changes);
        stored
            .map(|(operation, change)| {
                let packed = change.packed.clone();
                let packed = packed.map(|span| self.packed.get(span).unwrap_or_default());
                Operation {
                    terms: change.terms,
                    value: packed.or(operation.value),
                    ..*operation
                }
            })
            .collect()
    }
}

fn is_put(operation: &Operation<'_>) -> bool {
    operation.value.is_some() && !operation.is_range
}

/// Whether its region makes something else of an operation.
#[inline]
fn is_changed(operation: &Operation<'_>) -> bool {
    let own = &operation.region.own;
    let is_packed = own.compression() != Codec::None && operation.terms.codec == Codec::None;
    let expires = own.ttl_ms().is_some() && operation.terms.expiry == Expiry::OfRegion;
    (is_packed || expires) && is_put(operation)
}

fn change(operation: &Operation<'_>, clock: &Clock, packed: &mut Vec<u8>) -> Change {
    let (mut terms, own) = (operation.terms, &operation.region.own);
    let Some(value) = operation.value.filter(|_| is_put(operation)) else {
        return Change {
            terms,
            packed: None,
        };
    };
    if terms.expiry == Expiry::OfRegion {
        terms.expiry = Expiry::of(own.expires(|| clock.now()));
    }
    let (start, codec) = (packed.len(), own.compression());
    let is_packed = terms.codec == Codec::None
        && codec != Codec::None
        && compression::pack(codec, value, packed);
    if is_packed {
        terms.codec = codec;
    }
    Change {
        terms,
        packed: is_packed.then_some(start..packed.len()),
    }
}
