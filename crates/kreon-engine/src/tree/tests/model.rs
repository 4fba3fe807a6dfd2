//! A tree and a model of its content. Every merge is checked in full.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kreon_base::{Attributes, LogOffset, Lsn, PageNo, Payload, Result};
use kreon_format::{PagePointer, TreeRecord};

use super::memory::{Memory, REGION, Sink};
use crate::tree::{
    Changes, Cut, Entry, EntryStream, MergeRules, Reference, Visitor, join, merge, merge_part,
    verify,
};

/// What a version holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Logged(LogOffset, u32),
    Inline(Vec<u8>),
    Deleted(LogOffset),
    Erased(LogOffset),
}

impl Content {
    pub fn of(payload: Payload<'_>) -> Self {
        match payload {
            Payload::Logged {
                offset,
                value_bytes,
                ..
            } => Self::Logged(offset, value_bytes),
            Payload::Inline { value, .. } => Self::Inline(value.to_vec()),
            Payload::Tombstone { offset } => Self::Deleted(offset),
            Payload::Erased { key_at } => Self::Erased(key_at),
        }
    }

    pub fn payload(&self) -> Payload<'_> {
        match self {
            Self::Logged(offset, value_bytes) => Payload::Logged {
                offset: *offset,
                value_bytes: *value_bytes,
                attributes: Attributes::NONE,
            },
            Self::Inline(value) => Payload::Inline {
                value,
                attributes: Attributes::NONE,
            },
            Self::Deleted(offset) => Payload::Tombstone { offset: *offset },
            Self::Erased(key_at) => Payload::Erased { key_at: *key_at },
        }
    }
}

/// Versions of one key, newest first.
pub type Versions = Vec<(Lsn, Content)>;
pub type Entries = BTreeMap<Vec<u8>, Versions>;

/// Input of a merge from a list.
pub struct Listed<'a>(pub std::vec::IntoIter<Entry<'a>>);

impl<'a> Listed<'a> {
    pub fn new(entries: &'a Entries) -> Self {
        let list: Vec<_> = entries
            .iter()
            .flat_map(|(key, versions)| {
                versions.iter().map(move |(lsn, content)| Entry {
                    key,
                    lsn: *lsn,
                    payload: content.payload(),
                })
            })
            .collect();
        Self(list.into_iter())
    }
}

impl EntryStream for Listed<'_> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        Ok(self.0.next())
    }
}

/// What a merge reported.
#[derive(Default)]
pub struct Reported {
    pub freed: Vec<PageNo>,
    pub references: HashMap<Reference, i64>,
}

impl Changes for Reported {
    fn freed(&mut self, page: PageNo) {
        self.freed.push(page);
    }

    fn referenced(&mut self, record: Reference) {
        *self.references.entry(record).or_default() += 1;
    }

    fn dropped(&mut self, record: Reference) {
        *self.references.entry(record).or_default() -= 1;
    }
}

/// What a tree reaches.
#[derive(Default)]
pub struct Reached {
    pub pages: BTreeMap<PageNo, u8>,
    pub entries: Entries,
    pub references: HashMap<Reference, i64>,
}

impl Visitor for Reached {
    fn page(&mut self, pointer: &PagePointer, level: u8) -> bool {
        let old = self.pages.insert(pointer.page, level);
        assert!(old.is_none(), "{} is reached twice", pointer.page);
        true
    }

    fn entry(&mut self, entry: Entry<'_>) {
        let versions = self.entries.entry(entry.key.to_vec()).or_default();
        versions.push((entry.lsn, Content::of(entry.payload)));
        if let Some(record) = Reference::of(entry.key.len() as u32, entry.payload) {
            *self.references.entry(record).or_default() += 1;
        }
    }
}

/// A tree in memory and its expected content.
#[derive(Default)]
pub struct Model {
    pub memory: Memory,
    pub tree: TreeRecord,
    pub entries: Entries,
    /// Number of parts of a merge; at most one: undivided.
    pub parts: usize,
    references: HashMap<Reference, i64>,
    pages: BTreeSet<PageNo>,
}

/// Merges `input` into `tree` in about so many parts, the last one first.
pub fn merge_in_parts(
    memory: &Memory,
    (sink, reported): (&mut Sink<'_>, &mut Reported),
    tree: &TreeRecord,
    input: &Entries,
    rules: &MergeRules<'_>,
    count: usize,
) -> Result<TreeRecord> {
    let Some(cut) = Cut::new(memory, tree, count)?.filter(|_| count > 1) else {
        return merge(memory, sink, tree, &mut Listed::new(input), rules, reported);
    };
    let mut merged = Vec::new();
    let mut entries = 0;
    for part in (0..cut.len()).rev() {
        let (first, end) = cut.keys(part);
        let within =
            |key: &[u8]| first.is_none_or(|first| key >= first) && end.is_none_or(|end| key < end);
        let own = input.iter().filter(|(key, _)| within(key));
        let own: Entries = own.map(|(key, all)| (key.clone(), all.clone())).collect();
        entries += own.len();
        let mut stream = Listed::new(&own);
        let place = (tree, &cut, part);
        merged.insert(
            0,
            merge_part(memory, sink, place, &mut stream, rules, reported)?,
        );
    }
    assert_eq!(entries, input.len(), "each key is in one part");
    join(memory, sink, (tree, &cut), merged, rules, reported)
}

impl Model {
    /// Merges and checks all: entries, pages, references, counts, pivots.
    pub fn merge(&mut self, input: &Entries, rules: &MergeRules<'_>) -> Reported {
        self.memory.epoch.set(self.memory.epoch.get() + 1);
        let mut sink = self.memory.sink();
        let mut reported = Reported::default();
        let tree = merge_in_parts(
            &self.memory,
            (&mut sink, &mut reported),
            &self.tree,
            input,
            rules,
            self.parts,
        )
        .unwrap();
        let allocated = std::mem::take(&mut sink.allocated);
        self.tree = tree;
        for page in &reported.freed {
            assert!(self.pages.remove(page), "{page} is freed but was not live");
            self.memory.discard(*page);
        }
        for page in allocated {
            assert!(self.pages.insert(page));
        }
        let reached = self.reach();
        self.check_pages(&reached);
        self.check_references(&reported, &reached);
        self.check_entries(input, rules, &reached.entries);
        self.entries = reached.entries;
        reported
    }

    /// Walks the tree, which must be sound.
    pub fn reach(&self) -> Reached {
        let mut reached = Reached::default();
        let findings = verify(&self.memory, &self.tree, REGION, &mut reached);
        assert_eq!(findings.problems, Vec::<String>::new());
        reached
    }

    fn check_pages(&self, reached: &Reached) {
        let live: BTreeSet<_> = reached.pages.keys().copied().collect();
        assert_eq!(live, self.pages, "live pages");
        assert_eq!(self.memory.page_count(), live.len());
        let top = reached.pages.values().max();
        assert_eq!(self.tree.height, top.map_or(0, |level| level + 1));
    }

    fn check_references(&mut self, reported: &Reported, reached: &Reached) {
        for (record, change) in &reported.references {
            *self.references.entry(*record).or_default() += change;
        }
        self.references.retain(|_, count| *count != 0);
        assert_eq!(self.references, reached.references);
    }

    fn check_entries(&self, input: &Entries, rules: &MergeRules<'_>, found: &Entries) {
        let keys: BTreeSet<_> = self.entries.keys().chain(input.keys()).collect();
        let (none, absent) = (Versions::new(), Versions::new());
        for key in keys {
            let old = self.entries.get(key).unwrap_or(&none);
            let new = found.get(key).unwrap_or(&absent);
            let mut all = input.get(key).cloned().unwrap_or_default();
            all.extend_from_slice(old);
            // Keys without input are judged anew only where their leaf is rewritten.
            let may_stay = !input.contains_key(key) && new == old;
            assert!(
                may_stay || *new == surviving(&all, rules),
                "{} bytes of key, {all:?} became {new:?}",
                key.len()
            );
        }
        let extra = found
            .keys()
            .find(|key| !self.entries.contains_key(*key) && !input.contains_key(*key));
        assert_eq!(extra, None);
    }
}

/// A naive version of the rules: the `versions` that some reader can see.
pub fn surviving(versions: &[(Lsn, Content)], rules: &MergeRules<'_>) -> Versions {
    let mut kept = Versions::new();
    for (index, (lsn, content)) in versions.iter().enumerate() {
        let newer = index.checked_sub(1).map(|newer| versions[newer].0);
        let is_seen = newer.is_none_or(|newer| {
            let sees_it = |s: &&Lsn| *lsn < **s && newer >= **s;
            rules.snapshots.iter().any(|s| sees_it(&s))
        });
        if is_seen {
            let all_see_past = rules.snapshots.iter().all(|s| lsn < s);
            kept.push((if all_see_past { Lsn(0) } else { *lsn }, content.clone()));
        }
    }
    while rules.last_level && matches!(kept.last(), Some((_, Content::Deleted(_)))) {
        kept.pop();
    }
    kept
}

/// What a reader at `at` sees of a key.
pub fn visible(versions: &[(Lsn, Content)], at: Lsn) -> Option<&Content> {
    let newest = versions.iter().find(|(lsn, _)| *lsn < at || lsn.0 == 0);
    newest.map(|(_, content)| content)
}
