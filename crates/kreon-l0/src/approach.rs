//! A key of an L0 on the way to its record: a search whose cache misses overlap with those of others.

use kreon_base::{KEY_BYTES_MAX, Lsn, Payload};

use crate::arena::{FIRST_BYTES_MAX, Ref, SPACE_BYTES_MAX};
use crate::chain::{self, NewVersion, Versions};
use crate::record::{LSN_MAX, OFFSET_MAX, Record};
use crate::tree::{PrefetchedLeaf, Tree};
use crate::version::{INLINE_BYTES_MAX, Keep, Version};

/// Longest key of an L0 in bytes: the id of a region and a user's key.
pub const L0_KEY_BYTES_MAX: usize = KEY_BYTES_MAX + 4;

/// Size in bytes at which an L0 refuses inserts. It can address 32 GiB; the difference is for nodes of keys already in
/// it.
pub const L0_BYTES_MAX: usize = SPACE_BYTES_MAX - (64 << 20);

const _: () = assert!(L0_KEY_BYTES_MAX <= FIRST_BYTES_MAX);

/// A key of an L0, approached for an insert or a get. Concurrent changes are handled: the search then starts anew.
#[must_use = "going there alone does nothing"]
pub struct Approach<'a> {
    tree: &'a Tree,
    key: &'a [u8],
    ahead: Option<PrefetchedLeaf<'a>>,
}

impl<'a> Approach<'a> {
    /// Goes as far as the leaf and prefetches that.
    pub(crate) fn ahead(tree: &'a Tree, key: &'a [u8]) -> Self {
        Self {
            ahead: tree.ahead(key),
            ..Self::at(tree, key)
        }
    }

    pub(crate) fn at(tree: &'a Tree, key: &'a [u8]) -> Self {
        Self {
            tree,
            key,
            ahead: None,
        }
    }

    /// Like [`L0::insert`](crate::L0::insert). Returns whether the L0 had the key already.
    ///
    /// # Panics
    /// As [`L0::insert`](crate::L0::insert).
    pub fn insert(self, lsn: Lsn, payload: Payload<'_>, keep: Keep) -> bool {
        let write = NewVersion { lsn, payload, keep };
        let arena = &self.tree.arena;
        let known = self.find_or_put(&write);
        if let Some(record) = known {
            chain::add(arena, record, &write);
        }
        known.is_some()
    }

    /// Adds the key with this version if the L0 does not have it, in one step; whether it did.
    ///
    /// # Panics
    /// As [`L0::insert`](crate::L0::insert).
    pub fn insert_absent(self, lsn: Lsn, payload: Payload<'_>) -> bool {
        let keep = Keep::default();
        self.find_or_put(&NewVersion { lsn, payload, keep })
            .is_none()
    }

    /// The record of the key; none: it was absent and has one with `write` as its only version now.
    fn find_or_put(self, write: &NewVersion<'_>) -> Option<Ref<Record>> {
        let Self { tree, key, ahead } = self;
        check(key, write.lsn, &write.payload);
        assert!(
            tree.arena.bytes() < L0_BYTES_MAX,
            "an L0 is frozen before it is full"
        );
        tree.find_or_insert(key, ahead, || write.put_record(&tree.arena, key))
    }

    /// Like [`L0::get`](crate::L0::get).
    pub fn get<R>(
        self,
        at: Lsn,
        visible: impl Fn(Lsn) -> bool,
        found: impl FnOnce(Version<'_>) -> R,
    ) -> Option<R> {
        let record = self.tree.find(self.key, self.ahead)?;
        Versions::of(&self.tree.arena, record)
            .find(|version| version.lsn < at && (!version.pending || visible(version.lsn)))
            .map(found)
    }
}

fn check(key: &[u8], lsn: Lsn, payload: &Payload<'_>) {
    assert!(key.len() <= L0_KEY_BYTES_MAX, "key of {} bytes", key.len());
    assert!(lsn.0 < LSN_MAX, "{lsn} is out of range");
    match *payload {
        Payload::Inline { value, attributes } => assert!(
            value.len() + attributes.stored_bytes() <= INLINE_BYTES_MAX,
            "inline value of {} bytes",
            value.len()
        ),
        Payload::Logged { offset, .. } | Payload::Tombstone { offset } => {
            assert!(offset.0 < OFFSET_MAX, "{offset} is out of range");
        }
        Payload::Erased { .. } => panic!("Payload::Erased is not a write"),
    }
}
