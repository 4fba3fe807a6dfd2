//! Builds leaves from entries in order.

use std::cmp::Ordering;
use std::ops::Range;

use kreon_base::{Error, Lsn, PAGE_BYTES, PageBytes, Payload, Result};

use crate::leaf_entry::{Body, FIXED_BYTES_MAX, is_long};
use crate::node::stored_part;
use crate::node_draft::{NodeDraft, Plan, room_beside};
use crate::{INLINE_VALUE_BYTES_MAX, LONG_KEY_STORED_BYTES, Leaf, NodeIdentity, PagePointer};

// Any three entries fit in one leaf, so a merge that rewrites a leaf can always split it. An entry with an inline value
// has neither a log offset (6 bytes) nor the length of a long key (3).
const _: () = assert!(room_beside(3, FIXED_BYTES_MAX) > 0);
const _: () = assert!(room_beside(3, FIXED_BYTES_MAX - 9 + INLINE_VALUE_BYTES_MAX) > 0);

/// Builds leaves, one after the other, from entries in order.
#[derive(Debug, Default)]
pub struct LeafBuilder {
    draft: NodeDraft,
    last_lsn: Lsn,
    /// Kept between calls to reuse the memory.
    key: Vec<u8>,
}

impl LeafBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of entries pushed since the last [`finish`](Self::finish).
    pub fn len(&self) -> usize {
        self.draft.len()
    }

    /// Whether no entry was pushed since the last [`finish`](Self::finish).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the page that the entries take, header included; at most [`PAGE_BYTES`]. Exact.
    pub fn used_bytes(&self) -> usize {
        self.draft.used_bytes()
    }

    /// The stored part of the first key.
    pub fn first_key(&self) -> Option<&[u8]> {
        self.draft.first_key()
    }

    /// The stored part of the last key.
    pub fn last_key(&self) -> Option<&[u8]> {
        self.draft.last().map(|(key, _)| key)
    }

    /// Whether [`push`](Self::push) of this entry will succeed. Exact. `false` as well for an entry that `push` always
    /// refuses.
    pub fn fits(&self, key: &[u8], lsn: Lsn, payload: Payload<'_>) -> bool {
        self.admit(stored_part(key), key.len(), lsn, payload)
            .is_ok()
    }

    /// Appends an entry: a greater key, or a lower LSN of the same key. `key` is the whole key; for long keys with the
    /// same stored part the caller is responsible for the order.
    ///
    /// Fails with `InvalidArgument` and without effect if the entry does not fit, is out of order, or exceeds a limit
    /// of the format (an inline value above [`INLINE_VALUE_BYTES_MAX`] or of a key above [`LONG_KEY_STORED_BYTES`], a
    /// log offset above [`LOG_OFFSET_MAX`](crate::LOG_OFFSET_MAX)).
    pub fn push(&mut self, key: &[u8], lsn: Lsn, payload: Payload<'_>) -> Result<()> {
        self.add(stored_part(key), key.len(), lsn, payload)
    }

    /// Like [`push`](Self::push), for a key of `key_bytes` of which only the stored part is available.
    pub fn push_stored(
        &mut self,
        stored: &[u8],
        key_bytes: u32,
        lsn: Lsn,
        payload: Payload<'_>,
    ) -> Result<()> {
        self.add(stored, key_bytes as usize, lsn, payload)
    }

    /// Appends entries `range` of another leaf, as many as keep [`used_bytes`](Self::used_bytes) at or below
    /// `used_bytes_max`, and returns their number. Bodies are copied unchanged. Fails if the other leaf is damaged or
    /// the first entry of the run does not follow the last one here; [`check_node`](crate::check_node) has verified the
    /// order within the run.
    pub fn push_run(
        &mut self,
        leaf: &Leaf<'_>,
        range: Range<usize>,
        used_bytes_max: usize,
    ) -> Result<usize> {
        if range.is_empty() {
            return Ok(0);
        }
        if !self.is_empty() {
            leaf.key_into(range.start, &mut self.key)?;
            let tag = leaf.0.entry(range.start)?.tag;
            self.check_order(&self.key, is_long(tag), leaf.lsn(range.start)?)?;
        }
        let pushed = self
            .draft
            .push_run(&leaf.0, range.clone(), used_bytes_max)?;
        if let Some(last) = pushed.checked_sub(1) {
            self.last_lsn = leaf.lsn(range.start + last)?;
        }
        Ok(pushed)
    }

    /// Writes the sealed leaf into `page` and empties the builder. Fails with `InvalidArgument` if there is no entry or
    /// `identity.level` is not 0.
    pub fn finish(&mut self, identity: &NodeIdentity, page: &mut PageBytes) -> Result<PagePointer> {
        if self.is_empty() || identity.level != 0 {
            return Err(Error::invalid("an empty leaf, or one of a level above 0"));
        }
        let count = self.len();
        Ok(self.draft.finish(identity, count, &[], page))
    }

    fn add(
        &mut self,
        stored: &[u8],
        key_bytes: usize,
        lsn: Lsn,
        payload: Payload<'_>,
    ) -> Result<()> {
        let (plan, body) = self.admit(stored, key_bytes, lsn, payload)?;
        self.draft.push(plan, stored, body.tag, body.parts());
        self.last_lsn = lsn;
        Ok(())
    }

    /// The plan and the body of an entry, if `push` would accept it.
    fn admit<'v>(
        &self,
        stored: &[u8],
        key_bytes: usize,
        lsn: Lsn,
        payload: Payload<'v>,
    ) -> Result<(Plan, Body<'v>)> {
        if stored.len() != key_bytes.min(LONG_KEY_STORED_BYTES) {
            return Err(Error::invalid("a stored key of the wrong length"));
        }
        let body = Body::new(key_bytes, lsn, payload)?;
        self.check_order(stored, is_long(body.tag), lsn)?;
        let [fixed, value] = body.parts();
        let plan = self.draft.plan(stored, fixed.len() + value.len());
        if plan.used_bytes > PAGE_BYTES {
            return Err(Error::invalid("an entry for which a leaf has no room"));
        }
        Ok((plan, body))
    }

    fn check_order(&self, stored: &[u8], long: bool, lsn: Lsn) -> Result<()> {
        let Some((last, last_tag)) = self.draft.last() else {
            return Ok(());
        };
        if follows(
            (last, is_long(last_tag), self.last_lsn),
            (stored, long, lsn),
        ) {
            Ok(())
        } else {
            Err(Error::invalid("an entry out of order in a leaf"))
        }
    }
}

/// Whether the entry `next` (stored key, long, LSN) may follow `last`.
fn follows(last: (&[u8], bool, Lsn), next: (&[u8], bool, Lsn)) -> bool {
    last.0
        .cmp(next.0)
        .then_with(|| order_of_equals((last.1, last.2), (next.1, next.2)))
        == Ordering::Less
}

/// Order of two entries (long, LSN) with the same stored key: short before long, then newest first. Two long ones are
/// equal, as the stored part does not decide.
pub(crate) fn order_of_equals(left: (bool, Lsn), right: (bool, Lsn)) -> Ordering {
    match (left.0, right.0) {
        (false, false) => right.1.cmp(&left.1),
        (true, false) => Ordering::Greater,
        _ => Ordering::Less,
    }
}
