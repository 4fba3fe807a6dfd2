//! Point lookup.

use kreon_base::{Error, LogOffset, Lsn, PageBytes, Result};
use kreon_format::{IndexNode, Leaf, LeafSearch, PagePointer, Route, TreeRecord};

use super::leaf_keys::{count_before, first_leaf_under, is_long, partition_point, record_of};
use super::{Filtering, NodeSource, Version};

/// Calls `found` with the newest version of `key` with an LSN below `at` (LSN 0 always qualifies); an
/// inline value is borrowed from the page. None without such a version. Reads one node per level, more
/// where a pivot ties with the key, and for a long key the log records of entries with its stored part.
/// A leaf that is not resident is read only if its filter passes the key.
pub fn get<S: NodeSource, R>(
    source: &S,
    tree: &TreeRecord,
    key: &[u8],
    at: Lsn,
    found: impl FnOnce(Version<'_>) -> R,
) -> Result<Option<R>> {
    let Some((root, level)) = root_of(tree)? else {
        return Ok(None);
    };
    let mut search = Search {
        source,
        key,
        at,
        found: Some(found),
        is_filtered: false,
    };
    search.below(root, level)
}

/// The root and its level; none if the tree is empty.
pub(super) fn root_of(tree: &TreeRecord) -> Result<Option<(PagePointer, u8)>> {
    match (tree.root, tree.height.checked_sub(1)) {
        (None, _) => Ok(None),
        (Some(root), Some(level)) => Ok(Some((root, level))),
        (Some(_), None) => Err(Error::corruption("a tree of height 0 that has a root")),
    }
}

/// Whether a reader at `at` sees a version of `lsn`.
pub(super) fn qualifies(lsn: Lsn, at: Lsn) -> bool {
    lsn < at || lsn == Lsn(0)
}

struct Search<'a, S, F> {
    source: &'a S,
    key: &'a [u8],
    at: Lsn,
    /// Taken when the version is found.
    found: Option<F>,
    /// The filter of the leaf let the key pass.
    is_filtered: bool,
}

enum Step {
    Down(PagePointer),
    /// A leaf, and whether its filter passes the key.
    Filtered(PagePointer, bool),
    /// Children whose pivots tie with the key.
    Among(Vec<PagePointer>),
}

/// Outcome of the search in a leaf.
enum Outcome<R> {
    Found(R),
    Absent,
    /// Entries with the stored part and the length of a long key.
    Tie(Vec<LongEntry>),
}

/// An entry of a long key. Never inline, so it borrows nothing from the page.
struct LongEntry {
    version: Version<'static>,
    record: LogOffset,
}

impl<S: NodeSource, R, F: FnOnce(Version<'_>) -> R> Search<'_, S, F> {
    fn below(&mut self, mut node: PagePointer, level: u8) -> Result<Option<R>> {
        for level in (1..=level).rev() {
            let (source, key) = (self.source, self.key);
            match source.read_node(&node, level, |page| step(source, page, level, key))? {
                Step::Down(child) => node = child,
                Step::Filtered(leaf, false) => {
                    source.filtered(&leaf, Filtering::Excluded);
                    return Ok(None);
                }
                Step::Filtered(leaf, true) => {
                    source.filtered(&leaf, Filtering::Passed);
                    self.is_filtered = true;
                    node = leaf;
                }
                Step::Among(children) => return self.among(&children, level - 1),
            }
        }
        self.in_leaf(&node)
    }

    /// The version is under the last child that begins before the target (key, newest LSN below `at`), or
    /// it is the first entry of the next child.
    #[cold]
    fn among(&mut self, children: &[PagePointer], level: u8) -> Result<Option<R>> {
        let (key, at) = (self.key, self.at);
        let others = children.get(1..).unwrap_or_default();
        let before = count_before(self.source, others, level, |first_key, lsn| {
            first_key < key || (first_key == key && !qualifies(lsn, at))
        })?;
        if let Some(child) = children.get(before)
            && let Some(found) = self.below(*child, level)?
        {
            return Ok(Some(found));
        }
        match children.get(before + 1) {
            Some(next) => {
                let leaf = first_leaf_under(self.source, next, level)?;
                self.in_leaf(&leaf)
            }
            None => Ok(None),
        }
    }

    fn in_leaf(&mut self, node: &PagePointer) -> Result<Option<R>> {
        let (source, key, at) = (self.source, self.key, self.at);
        let is_filtered = std::mem::take(&mut self.is_filtered);
        let outcome = source.read_node(node, 0, |page| {
            let leaf = Leaf::open(page)?;
            match leaf.search(key)? {
                LeafSearch::Absent(_) => {
                    if is_filtered {
                        source.filtered(node, Filtering::InVain);
                    }
                    Ok(Outcome::Absent)
                }
                LeafSearch::Long { first, end } => tie(&leaf, first, end, key),
                LeafSearch::Found(first) => {
                    let version = newest_before(&leaf, first, key, at)?;
                    let shown = version.and_then(|version| Some(self.found.take()?(version)));
                    Ok(shown.map_or(Outcome::Absent, Outcome::Found))
                }
            }
        })?;
        match outcome {
            Outcome::Found(answer) => Ok(Some(answer)),
            Outcome::Absent => Ok(None),
            Outcome::Tie(entries) => self.among_long(&entries),
        }
    }

    /// Compares whole long keys. It reads the log, so it runs after the read of the leaf has ended.
    #[cold]
    fn among_long(&mut self, entries: &[LongEntry]) -> Result<Option<R>> {
        let mut key = Vec::new();
        let mut key_of = |entry: &LongEntry| -> Result<_> {
            self.source
                .read_key(entry.record, self.key.len() as u32, &mut key)?;
            Ok(key.as_slice().cmp(self.key))
        };
        let is_less = |index: usize| Ok(key_of(&entries[index])?.is_lt());
        let first = partition_point(0..entries.len(), is_less)?;
        for entry in &entries[first..] {
            if !key_of(entry)?.is_eq() {
                break;
            }
            if qualifies(entry.version.lsn, self.at) {
                let found = self.found.take();
                return Ok(found.map(|found| found(entry.version)));
            }
        }
        Ok(None)
    }
}

fn step<S: NodeSource>(source: &S, page: &PageBytes, level: u8, key: &[u8]) -> Result<Step> {
    let node = IndexNode::open(page)?;
    match node.route(key)? {
        Route::Child(index) => {
            let child = node.child(index)?;
            // The check costs little: a read of the page looks up the same entry of the page array next.
            if level > 1 || source.is_resident(&child) {
                return Ok(Step::Down(child));
            }
            Ok(match node.may_hold(index, key)? {
                None => Step::Down(child),
                Some(may_hold) => Step::Filtered(child, may_hold),
            })
        }
        // Rare: versions of one key in several leaves, or long keys with the same stored part.
        Route::Ambiguous { first, end } => {
            let children = (first..end).map(|index| node.child(index));
            children.collect::<Result<_>>().map(Step::Among)
        }
    }
}

/// The newest version of the short `key` that a reader at `at` sees; its versions start at entry `first`.
fn newest_before<'p>(
    leaf: &Leaf<'p>,
    first: usize,
    key: &[u8],
    at: Lsn,
) -> Result<Option<Version<'p>>> {
    let mut here = Vec::new();
    for index in first..leaf.len() {
        let entry = leaf.entry(index)?;
        if index > first {
            leaf.key_into(index, &mut here)?;
            if here != key || is_long(entry.key_bytes) {
                break;
            }
        }
        if qualifies(entry.lsn, at) {
            return Ok(Some(Version::of(&entry)));
        }
    }
    Ok(None)
}

#[cold]
fn tie<R>(leaf: &Leaf<'_>, first: usize, end: usize, key: &[u8]) -> Result<Outcome<R>> {
    let mut entries = Vec::new();
    for index in first..end {
        let entry = leaf.entry(index)?;
        if entry.key_bytes as usize == key.len() {
            entries.push(LongEntry {
                version: Version::of(&entry).without_value(),
                record: record_of(&entry)?,
            });
        }
    }
    Ok(Outcome::Tie(entries))
}
