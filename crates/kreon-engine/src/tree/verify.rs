//! Walks a whole tree and checks it against its record, pivots and filters.

use kreon_base::{Error, ErrorKind, Lsn, PAGE_BYTES, PageBytes, RegionId, Result};
use kreon_format::{IndexNode, Leaf, LeafFilter, PagePointer, Pivot, TreeRecord};

use super::leaf_keys::{key_of, stored_part};
use super::prefetch::ROUND_NODES_MAX;
use super::search::root_of;
use super::{Entry, NodeSource};

/// Most problems with a description; further ones are only counted.
const PROBLEMS_MAX: usize = 1000;

/// Visits the nodes and entries of a tree.
pub trait Visitor {
    /// A node of `level` (0: a leaf). Returns whether to read it: false for a page already reached from
    /// elsewhere, so that a damaged tree cannot make the walk loop.
    fn page(&mut self, pointer: &PagePointer, level: u8) -> bool;

    /// An entry, in the order of the tree; its key is whole.
    fn entry(&mut self, entry: Entry<'_>);
}

/// What a walk through a tree found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The first thousand problems; empty if the tree is sound.
    pub problems: Vec<String>,
    /// Number of further problems.
    pub more_problems: u64,
    /// The first error that is not corruption, such as a failed read.
    pub unread: Option<Error>,
    /// Entries seen.
    pub entries: u64,
    /// Leaves seen.
    pub leaf_pages: u64,
    /// Index nodes seen.
    pub index_pages: u64,
}

/// Reads every node of the tree and the log records of its long keys, shows them to `visitor`, and checks
/// order, pivots, filters, levels, region and counts. Continues after a problem. Takes a page of memory per
/// level.
pub fn verify<S: NodeSource>(
    source: &S,
    tree: &TreeRecord,
    region: RegionId,
    visitor: &mut impl Visitor,
) -> Findings {
    let mut walk = Walk {
        source,
        region,
        visitor,
        findings: Findings::default(),
        is_whole: true,
        last: None,
        pivots: Vec::new(),
        filter: LeafFilter::NONE,
        key: Vec::new(),
    };
    match root_of(tree) {
        Ok(Some((root, level))) => walk.node(&root, level),
        Ok(None) => {}
        Err(error) => walk.problem(error.to_string()),
    }
    walk.check_counts(tree);
    walk.findings
}

struct Walk<'a, S, V> {
    source: &'a S,
    region: RegionId,
    visitor: &'a mut V,
    findings: Findings,
    /// No node was skipped; only then are the counts checked.
    is_whole: bool,
    /// The entry before.
    last: Option<(Vec<u8>, Lsn)>,
    /// Pivots between the entry before and the next one.
    pivots: Vec<Pivot>,
    /// The filter of the next leaf, from its parent.
    filter: LeafFilter,
    key: Vec<u8>,
}

impl<S: NodeSource, V: Visitor> Walk<'_, S, V> {
    fn problem(&mut self, what: String) {
        if self.findings.problems.len() < PROBLEMS_MAX {
            self.findings.problems.push(what);
        } else {
            self.findings.more_problems += 1;
        }
    }

    fn node(&mut self, pointer: &PagePointer, level: u8) {
        if !self.visitor.page(pointer, level) {
            self.is_whole = false;
            return;
        }
        if let Err(error) = self.try_node(pointer, level) {
            self.is_whole = false;
            self.failed(error.within(format!("node of level {level}")));
        }
    }

    fn failed(&mut self, error: Error) {
        self.problem(error.to_string());
        if error.kind() != ErrorKind::Corruption {
            self.findings.unread.get_or_insert(error);
        }
    }

    fn try_node(&mut self, pointer: &PagePointer, level: u8) -> Result<()> {
        let mut page: Box<PageBytes> = Box::new([0; PAGE_BYTES]);
        self.source.read_node(pointer, level, |bytes| {
            page.copy_from_slice(bytes);
            Ok(())
        })?;
        if level == 0 {
            let leaf = Leaf::open(&page)?;
            self.findings.leaf_pages += 1;
            self.check_region(pointer, leaf.region())?;
            self.leaf(pointer, &leaf)
        } else {
            let index = IndexNode::open(&page)?;
            self.findings.index_pages += 1;
            self.check_region(pointer, index.region())?;
            self.index(pointer, &index, level)
        }
    }

    fn check_region(&self, pointer: &PagePointer, region: RegionId) -> Result<()> {
        if region == self.region {
            return Ok(());
        }
        let page = pointer.page;
        Err(Error::corruption(format!("{page} belongs to {region}")))
    }

    fn index(&mut self, pointer: &PagePointer, index: &IndexNode<'_>, level: u8) -> Result<()> {
        let mut children = Vec::with_capacity(index.len());
        for child in 0..index.len() {
            children.push(index.child(child)?);
        }
        for (at, child) in children.iter().enumerate() {
            if at % ROUND_NODES_MAX == 0 {
                let end = children.len().min(at + ROUND_NODES_MAX);
                let round = children.get(at..end).unwrap_or_default();
                // A hint; the read below reports the errors.
                let _ = self.source.prefetch(round, level - 1);
            }
            if at > 0 {
                self.pivot(pointer, index.pivot(at)?);
            }
            self.filter = index.filter(at)?;
            self.node(child, level - 1);
        }
        Ok(())
    }

    fn pivot(&mut self, node: &PagePointer, pivot: Pivot) {
        let is_above = match &self.last {
            Some((key, _)) if !pivot.ambiguous => *key < pivot.bytes,
            _ => true,
        };
        if !is_above {
            let page = node.page;
            self.problem(format!("{page}: a key is not below the pivot right of it"));
        }
        self.pivots.push(pivot);
    }

    fn leaf(&mut self, pointer: &PagePointer, leaf: &Leaf<'_>) -> Result<()> {
        let page = pointer.page;
        let mut key = std::mem::take(&mut self.key);
        for index in 0..leaf.len() {
            let entry = leaf.entry(index)?;
            if let Err(error) = key_of(self.source, leaf, index, &mut key) {
                self.failed(error.within(format!("{page}, entry {index}")));
                continue;
            }
            self.findings.entries += 1;
            if key.len() != entry.key_bytes as usize || !self.follows(leaf, index, &key, entry.lsn)
            {
                self.problem(format!("{page}, entry {index}: out of order"));
            }
            self.check_pivots(pointer, &key);
            if !self.filter.may_hold(&key) {
                self.problem(format!("{page}, entry {index}: its filter denies the key"));
            }
            self.visitor.entry(Entry {
                key: &key,
                lsn: entry.lsn,
                payload: entry.payload,
            });
            let last = self.last.get_or_insert_default();
            last.0.clone_from(&key);
            last.1 = entry.lsn;
        }
        self.key = key;
        Ok(())
    }

    /// Whether an entry is behind the previous one, and a key from the log starts with the part in the leaf.
    fn follows(&self, leaf: &Leaf<'_>, index: usize, key: &[u8], lsn: Lsn) -> bool {
        let mut stored = Vec::new();
        let is_its_key = stored_part(key).len() == key.len()
            || (leaf.key_into(index, &mut stored).is_ok() && stored == stored_part(key));
        let is_behind = self
            .last
            .as_ref()
            .is_none_or(|(last_key, last_lsn)| (last_key.as_slice(), lsn) < (key, *last_lsn));
        is_its_key && is_behind
    }

    /// Checks the first key behind the pending pivots.
    fn check_pivots(&mut self, leaf: &PagePointer, key: &[u8]) {
        let mut pivots = std::mem::take(&mut self.pivots);
        for pivot in pivots.drain(..) {
            let holds = if pivot.ambiguous {
                stored_part(key) == pivot.bytes
            } else {
                key >= pivot.bytes.as_slice()
            };
            if !holds {
                let page = leaf.page;
                self.problem(format!("{page}: its first key and its pivot disagree"));
            }
        }
        self.pivots = pivots;
    }

    fn check_counts(&mut self, tree: &TreeRecord) {
        let found = &self.findings;
        let counts = [
            ("entries", found.entries, tree.entries),
            ("leaves", found.leaf_pages, tree.leaf_pages),
            ("index nodes", found.index_pages, tree.index_pages),
        ];
        for (what, found, expected) in counts {
            if self.is_whole && found != expected {
                self.problem(format!("{found} {what}, its record says {expected}"));
            }
        }
    }
}
