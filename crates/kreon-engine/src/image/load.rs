//! Loads an image into L0.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use kreon_base::{
    Attributes, Error, LogOffset, Lsn, PAGE_BYTES, PageBytes, PageNo, Payload, RegionId, Result,
};
use kreon_device::{AlignedBuf, Device, Read, processors};
use kreon_format::{
    ImagePart, IndexNode, LONG_KEY_STORED_BYTES, Leaf, PagePointer, StoreId, TreeRecord, check_node,
};
use kreon_l0::{Keep, L0};

use super::room::{ENTRY_BYTES_MAX, Room};
use crate::keys::L0Key;
use kreon_sync::Mutex;
use kreon_volume::page_io::is_there;

/// Outcome of [`load`].
#[derive(Default)]
pub struct Loaded {
    /// Number of entries of all parts.
    pub entries: u64,
    /// Entries with long keys. They are not in L0 yet, because the rest of their keys is in the log.
    pub long: Vec<LongEntry>,
}

/// An entry with a long key.
pub struct LongEntry {
    pub region: RegionId,
    pub lsn: Lsn,
    /// Place of its record.
    pub offset: LogOffset,
    /// Length of its key.
    pub key_bytes: u32,
    /// Bytes behind the key; `None` for a deletion.
    pub value_bytes: Option<u32>,
    /// What is kept beside its value.
    pub attributes: Attributes,
}

impl LongEntry {
    /// What it takes in L0, at the most.
    pub fn bytes_max(&self) -> usize {
        self.key_bytes as usize + ENTRY_BYTES_MAX
    }
}

/// Most bytes of one read.
const READ_BYTES_MAX: usize = 256 << 10;

/// Most loading threads. Each takes one node above the leaves at a time.
const THREADS_MAX: usize = 8;

/// Inserts the entries of `image` into `l0` as far as there is `room`, without regions for which `exists` is false; all are
/// checked.
///
/// # Errors
/// `Corruption` if any part does not verify, `Io`. Then the content of `l0` is undefined.
pub fn load(
    device: &dyn Device,
    store: StoreId,
    image: &[ImagePart],
    exists: &(dyn Fn(RegionId) -> bool + Sync),
    (l0, room): (&L0, &Room),
) -> Result<Loaded> {
    let long = Mutex::new(Vec::new());
    let mut entries = 0;
    for part in image {
        for (region, tree) in &part.trees {
            let loader = Loader {
                device,
                store: store.of_image(),
                region: *region,
                part,
                l0: exists(*region).then_some(l0),
                room,
                long: &long,
            };
            entries += loader.tree(tree)?;
        }
    }
    let long = std::mem::take(&mut *long.lock());
    Ok(Loaded { entries, long })
}

/// Loads one tree.
struct Loader<'a> {
    device: &'a dyn Device,
    store: StoreId,
    region: RegionId,
    part: &'a ImagePart,
    /// None: the region was dropped.
    l0: Option<&'a L0>,
    room: &'a Room,
    long: &'a Mutex<Vec<LongEntry>>,
}

impl Loader<'_> {
    /// Loads `tree`; returns its number of entries.
    fn tree(&self, tree: &TreeRecord) -> Result<u64> {
        let Some((root, level)) = tree.root.zip(tree.height.checked_sub(1)) else {
            return Ok(0);
        };
        let mut nodes = vec![root];
        for level in (2..=level).rev() {
            let mut children = Vec::new();
            for node in &nodes {
                children.extend(self.children(node, level)?);
            }
            nodes = children;
        }
        let found = match level {
            0 => self.leaves(&nodes)?,
            _ => self.all_under(&nodes)?,
        };
        match found == tree.entries {
            true => Ok(found),
            false => Err(Error::corruption(format!(
                "an image of L0 has {found} entries of {}, not {}",
                self.region, tree.entries
            ))),
        }
    }

    /// Loads the leaves under `nodes`, each of height 1.
    fn all_under(&self, nodes: &[PagePointer]) -> Result<u64> {
        let (next, entries) = (AtomicUsize::new(0), AtomicU64::new(0));
        let work = || -> Result<()> {
            while let Some(node) = nodes.get(next.fetch_add(1, Ordering::Relaxed)) {
                let found = self.leaves(&self.children(node, 1)?)?;
                entries.fetch_add(found, Ordering::Relaxed);
            }
            Ok(())
        };
        let others = processors().min(THREADS_MAX).min(nodes.len()) - 1;
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
            let own = work();
            let panicked = |_| Err(Error::invalid("a thread that loads an image panicked"));
            let joined = others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(panicked));
            joined.fold(own, Result::and)
        })?;
        Ok(entries.into_inner())
    }

    fn children(&self, node: &PagePointer, level: u8) -> Result<Vec<PagePointer>> {
        let mut children = Vec::new();
        self.nodes(std::slice::from_ref(node), level, |at, page| {
            let index = IndexNode::open(page)?;
            self.check_region(index.region(), at)?;
            children.reserve(index.len());
            for child in 0..index.len() {
                children.push(index.child(child)?);
            }
            Ok(())
        })?;
        Ok(children)
    }

    fn leaves(&self, leaves: &[PagePointer]) -> Result<u64> {
        let (mut entries, mut key) = (0, Vec::new());
        self.nodes(leaves, 0, |at, page| {
            let leaf = Leaf::open(page)?;
            self.check_region(leaf.region(), at)?;
            entries += leaf.len() as u64;
            for index in 0..leaf.len() {
                self.entry(&leaf, index, &mut key)?;
            }
            Ok(())
        })?;
        Ok(entries)
    }

    fn entry(&self, leaf: &Leaf<'_>, index: usize, key: &mut Vec<u8>) -> Result<()> {
        let entry = leaf.entry(index)?;
        if !(self.part.start..self.part.end).contains(&entry.lsn) {
            return Err(Error::corruption(format!(
                "an image of L0 from {} to {} has an entry of {}",
                self.part.start, self.part.end, entry.lsn
            )));
        }
        if matches!(entry.payload, Payload::Erased { .. }) {
            return Err(Error::corruption(
                "an image of L0 has an entry that only levels have",
            ));
        }
        let Some(l0) = self.l0 else {
            return Ok(());
        };
        if entry.key_bytes as usize <= LONG_KEY_STORED_BYTES {
            leaf.key_into(index, key)?;
            let inline_bytes = match entry.payload {
                Payload::Inline { value, .. } => value.len(),
                _ => 0,
            };
            if self.room.admits(l0, key.len() + inline_bytes) {
                let key = L0Key::new(self.region, key);
                l0.insert(key.as_slice(), entry.lsn, entry.payload, Keep::default());
            }
            return Ok(());
        }
        let (offset, value_bytes) = match entry.payload {
            Payload::Logged {
                offset,
                value_bytes,
                ..
            } => (offset, Some(value_bytes)),
            Payload::Tombstone { offset } => (offset, None),
            Payload::Inline { .. } | Payload::Erased { .. } => {
                return Err(Error::corruption("a long key with an inline value"));
            }
        };
        self.long.lock().push(LongEntry {
            region: self.region,
            lsn: entry.lsn,
            offset,
            key_bytes: entry.key_bytes,
            value_bytes,
            attributes: entry.payload.attributes(),
        });
        Ok(())
    }

    fn check_region(&self, region: RegionId, page: PageNo) -> Result<()> {
        match region == self.region {
            true => Ok(()),
            false => Err(Error::corruption(format!(
                "{page} of an image of L0 is of {region}, not of {}",
                self.region
            ))),
        }
    }

    /// Reads nodes in parallel, adjacent pages in one read, and calls `show` in order.
    fn nodes(
        &self,
        nodes: &[PagePointer],
        level: u8,
        mut show: impl FnMut(PageNo, &PageBytes) -> Result<()>,
    ) -> Result<()> {
        let mut bytes = AlignedBuf::new(nodes.len() * PAGE_BYTES);
        let mut reads: Vec<Read<'_>> = Vec::new();
        for (node, page) in nodes.iter().zip(bytes.chunks_exact_mut(PAGE_BYTES)) {
            let offset = node.page.offset_bytes();
            if !is_there(self.device, node.page) {
                return Err(Error::corruption(format!(
                    "{} of an image of L0 lies behind the end of the volume",
                    node.page
                )));
            }
            match reads.last_mut() {
                Some(last)
                    if last.offset + last.len_bytes() == offset
                        && last.buffers.len() * PAGE_BYTES < READ_BYTES_MAX =>
                {
                    last.buffers.push(page);
                }
                _ => reads.push(Read::new(offset, page)),
            }
        }
        self.device.read(&mut reads)?;
        drop(reads);
        for (node, page) in nodes.iter().zip(bytes.as_chunks::<PAGE_BYTES>().0) {
            check_node(page, self.store, node, level)?;
            show(node.page, page)?;
        }
        Ok(())
    }
}
