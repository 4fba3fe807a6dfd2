//! The public interface: inserts, gets, cursors.

use std::fmt;
use std::sync::Arc;

use kreon_base::{Lsn, Payload};

use crate::approach::Approach;
use crate::arena::Pool;
use crate::chain::Versions;
use crate::cursor::Cursor;
use crate::tree::Tree;
use crate::version::{Keep, Version};

const _: () = {
    const fn crosses_threads<T: Send + Sync>() {}
    crosses_threads::<L0>();
    crosses_threads::<Approach<'_>>();
    crosses_threads::<Cursor<'_>>();
    crosses_threads::<Versions<'_>>();
};

/// A concurrent ordered index in memory, from whole keys to the versions of each (`Kreon 3.2`, `Kreon 3.2.6`).
///
/// Any number of threads insert, get and scan at the same time. Readers write no shared memory. A writer holds one
/// latch for a few stores: that of a leaf (new key) or of a record (known key). All memory comes from an arena, which
/// is freed as a whole when the L0 is dropped. An insert does no I/O.
///
/// A new key takes 28 bytes, the key rounded up to a multiple of 8, about 13 bytes of nodes, and its inline value if it
/// has one. An update of a logged value takes no memory, or 32 bytes if it retains the older version; an update with an
/// inline value takes 28 bytes and the value. Attributes take 8 bytes more, and make an update of a logged value take 36.
pub struct L0 {
    tree: Tree,
}

impl L0 {
    /// An empty L0 whose memory returns to the system. Reserves 2 MiB of addresses and touches a few pages.
    pub fn new() -> Self {
        Self::with_budget(0)
    }

    /// An empty L0 that passes its memory on to its [successors](Self::successor): as long as they have no more than
    /// `bytes` together, rounded up to 2 MiB, no memory returns to the system.
    pub fn with_budget(bytes: usize) -> Self {
        Self {
            tree: Tree::new(Pool::new(bytes)),
        }
    }

    /// An empty L0 that reuses the memory that this one and its predecessors leave when they are dropped.
    pub fn successor(&self) -> Self {
        Self {
            tree: Tree::new(Arc::clone(self.tree.arena.pool())),
        }
    }

    /// Descends to the parent of `key`'s leaf and prefetches the leaf, for a later insert or get. A caller with many
    /// keys approaches all of them first, so that their cache misses overlap.
    pub fn approach<'a>(&'a self, key: &'a [u8]) -> Approach<'a> {
        Approach::ahead(&self.tree, key)
    }

    /// Adds a version of `key`. About 0.3 us at a million keys.
    ///
    /// Versions may arrive in any order and are sorted by LSN. A newest version replaces the one before, which is
    /// dropped unless `keep` retains it. An older version is linked beneath the newer ones, or dropped if no reader can
    /// see it: a newer version that is not pending hides it, and no snapshot sees it. If `key` has a version with this
    /// LSN already and both are in the log, only the offset is replaced, as the record was moved; an inline value stays
    /// as it is.
    ///
    /// # Panics
    /// If an argument is out of range, which the caller must rule out: a key over [`L0_KEY_BYTES_MAX`], an inline value
    /// over [`INLINE_BYTES_MAX`], attributes counted, an LSN from 2^63 on, an offset from 2^60 on, or [`Payload::Erased`]; also if
    /// [`bytes`](Self::bytes) has reached [`L0_BYTES_MAX`]. The L0 is unchanged then. If the system has no more memory,
    /// the process ends, as with any allocation.
    ///
    /// [`L0_KEY_BYTES_MAX`]: crate::L0_KEY_BYTES_MAX
    /// [`L0_BYTES_MAX`]: crate::L0_BYTES_MAX
    /// [`INLINE_BYTES_MAX`]: crate::INLINE_BYTES_MAX
    pub fn insert(&self, key: &[u8], lsn: Lsn, payload: Payload<'_>, keep: Keep) {
        Approach::at(&self.tree, key).insert(lsn, payload, keep);
    }

    /// Calls `found` with the newest version of `key` whose LSN is below `at` ([`Lsn::MAX`]: any) and which is not
    /// pending or is `visible`. `None` if there is no such version. The version's inline value borrows from the L0.
    /// About 0.4 us at a million keys.
    pub fn get<R>(
        &self,
        key: &[u8],
        at: Lsn,
        visible: impl Fn(Lsn) -> bool,
        found: impl FnOnce(Version<'_>) -> R,
    ) -> Option<R> {
        Approach::at(&self.tree, key).get(at, visible, found)
    }

    /// Memory in use, in bytes; it never shrinks. The memory taken from the system is up to 2 MiB more.
    pub fn bytes(&self) -> usize {
        self.tree.arena.bytes()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether the L0 has no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A cursor without a position.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.tree)
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
