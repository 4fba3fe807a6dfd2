//! The L0 itself: inserts, gets, cursors.

use std::fmt;
use std::sync::Arc;

use kreon_base::{KEY_BYTES_MAX, Lsn, Payload};

use crate::arena::{FIRST_BYTES_MAX, Pool, SPACE_BYTES_MAX};
use crate::chain::{self, Versions, Write};
use crate::cursor::Cursor;
use crate::record::{LSN_MAX, OFFSET_MAX};
use crate::tree::{Ahead, Tree};
use crate::version::{INLINE_BYTES_MAX, Keep, Version};

/// Longest key of an L0, in bytes: a region's id and a user's key.
pub const L0_KEY_BYTES_MAX: usize = KEY_BYTES_MAX + 4;

/// Memory of an L0 from which on it takes no insert, in bytes. It can address 32 GiB; the rest is for
/// the nodes of what is already in.
pub const L0_BYTES_MAX: usize = SPACE_BYTES_MAX - (64 << 20);

const _: () = assert!(L0_KEY_BYTES_MAX <= FIRST_BYTES_MAX);

const _: () = {
    const fn crosses_threads<T: Send + Sync>() {}
    crosses_threads::<L0>();
    crosses_threads::<Approach<'_>>();
    crosses_threads::<Cursor<'_>>();
    crosses_threads::<Versions<'_>>();
};

/// A concurrent ordered index in memory, from whole keys to the versions of each (`Kreon 3.2`, `Kreon 3.2.6`).
///
/// Any number of threads insert, get and walk at the same time. Readers write no shared memory; a
/// writer holds a latch for the length of some stores, on one leaf (a new key) or one record (a known
/// key). All memory comes from an arena that goes at once when the L0 is dropped; an insert does no
/// I/O.
///
/// Memory for a new key: 28 bytes and the key, up to a multiple of 8, and about 13 bytes of nodes; its
/// inline value, if it has one. An update of a logged value in place takes none; one that retains the
/// older version 32 bytes; one with an inline value 28 bytes and the value.
pub struct L0 {
    tree: Tree,
}

impl L0 {
    /// An empty L0 whose memory goes back to the system. Reserves 2 MiB, touches a few pages.
    pub fn new() -> Self {
        Self::with_budget(0)
    }

    /// An empty L0 that leaves its memory to its [successors](Self::successor): as long as all of them
    /// together have no more than `bytes`, rounded up to 2 MiB, nothing goes back to the system.
    pub fn with_budget(bytes: usize) -> Self {
        Self {
            tree: Tree::new(Pool::new(bytes)),
        }
    }

    /// An empty L0 in the memory that this one and those before it leave when they are dropped.
    pub fn successor(&self) -> Self {
        Self {
            tree: Tree::new(Arc::clone(self.tree.arena.pool())),
        }
    }

    /// Goes most of the way to `key` and asks the processor for the rest, for an insert or a get that comes
    /// after something else: so that waits for memory meanwhile. One of many keys is gone to by the time
    /// the last of them was asked for.
    pub fn approach<'a>(&'a self, key: &'a [u8]) -> Approach<'a> {
        Approach {
            tree: &self.tree,
            key,
            ahead: self.tree.ahead(key),
        }
    }

    fn at<'a>(&'a self, key: &'a [u8]) -> Approach<'a> {
        Approach {
            tree: &self.tree,
            key,
            ahead: None,
        }
    }

    /// Adds a version to `key`. About 0.3 us at a million keys.
    ///
    /// Writers may come in any order: the version goes where its LSN belongs. As the newest one it
    /// replaces the one before, which is dropped unless `keep` retains it; otherwise it goes beneath
    /// the newer ones, or nowhere if one of them hides it from all readers (it is not pending) and no
    /// snapshot sees it. If `key` has a version with this LSN already and both are in the log, the
    /// offset is replaced: the record was moved. An inline value is left as it is then.
    ///
    /// # Panics
    /// Where an argument is out of range, which the caller is to make sure of beforehand: the key
    /// over [`L0_KEY_BYTES_MAX`], an inline value over [`INLINE_BYTES_MAX`], an LSN from 2^63 on, an
    /// offset from 2^61 on, [`Payload::Erased`]; or where [`bytes`](Self::bytes) has reached [`L0_BYTES_MAX`]. Nothing is
    /// changed then. Where the system has no more memory the process ends, as with any allocation.
    pub fn insert(&self, key: &[u8], lsn: Lsn, payload: Payload<'_>, keep: Keep) {
        self.at(key).insert(lsn, payload, keep);
    }

    /// Calls `found` with the newest version of `key` that has an LSN below `at` ([`Lsn::MAX`]: any)
    /// and, if it is pending, is `visible`. `None`: there is none. The version's inline value borrows
    /// from the L0. About 0.4 us at a million keys.
    pub fn get<R>(
        &self,
        key: &[u8],
        at: Lsn,
        visible: impl Fn(Lsn) -> bool,
        found: impl FnOnce(Version<'_>) -> R,
    ) -> Option<R> {
        self.at(key).get(at, visible, found)
    }

    /// Memory in use, in bytes. Never shrinks. What the system gave is up to 2 MiB more.
    pub fn bytes(&self) -> usize {
        self.tree.arena.bytes()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A cursor that stands nowhere yet.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.tree)
    }
}

/// A key of an L0 that an insert or a get will be made of. What others do meanwhile does no harm.
#[must_use = "going there alone does nothing"]
pub struct Approach<'a> {
    tree: &'a Tree,
    key: &'a [u8],
    ahead: Option<Ahead<'a>>,
}

impl Approach<'_> {
    /// [`L0::insert`] of the key. Whether the L0 knew the key.
    ///
    /// # Panics
    /// As that.
    pub fn insert(self, lsn: Lsn, payload: Payload<'_>, keep: Keep) -> bool {
        let Self { tree, key, ahead } = self;
        let arena = &tree.arena;
        check(key, lsn, &payload);
        assert!(
            arena.bytes() < L0_BYTES_MAX,
            "an L0 is frozen before it is full"
        );
        let write = Write { lsn, payload, keep };
        let known = tree.find_or_insert(key, ahead, || write.put_record(arena, key));
        if let Some(record) = known {
            chain::add(arena, record, &write);
        }
        known.is_some()
    }

    /// [`L0::get`] of the key.
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

impl Default for L0 {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for L0 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("L0")
            .field("len", &self.len())
            .field("bytes", &self.bytes())
            .finish()
    }
}

fn check(key: &[u8], lsn: Lsn, payload: &Payload<'_>) {
    assert!(key.len() <= L0_KEY_BYTES_MAX, "key of {} bytes", key.len());
    assert!(lsn.0 < LSN_MAX, "{lsn} is out of range");
    match *payload {
        Payload::Inline { value } => assert!(
            value.len() <= INLINE_BYTES_MAX,
            "inline value of {} bytes",
            value.len()
        ),
        Payload::Logged { offset, .. } | Payload::Tombstone { offset } => {
            assert!(offset.0 < OFFSET_MAX, "{offset} is out of range");
        }
        Payload::Erased { .. } => panic!("what a deleted range leaves in trees is no write"),
    }
}
