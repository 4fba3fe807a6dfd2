//! What the engine Tucana reads from a volume: superblocks, leaves, index nodes.

use arbitrary::{Arbitrary, Result, Unstructured};
use kreon_base::{
    Checksum, Epoch, ErrorKind, Incarnation, LogOffset, PAGE_BYTES, PageBytes, PageNo, RegionId,
    SEGMENT_BYTES,
};
use kreon_format::{PagePointer, SUPERBLOCK_PAGES, StoreId};
use tucana::format::*;

use crate::case::with;
use crate::forge::{Origin, forge_structure};

/// Longest key of a leaf here, and longest pivot, in bytes.
const KEY_BYTES_MAX: usize = 40;

/// What is read from a superblock slot.
pub fn superblock(bytes: &[u8]) {
    with(bytes, |u| {
        let given = Superblock {
            store: StoreId(u.arbitrary()?),
            commit: u.int_in_range(0..=COMMIT_MAX)?,
            epoch: epoch(u)?,
            incarnation: Incarnation(u.arbitrary()?),
            segments: u.int_in_range(1..=1000)?,
            catalogue: PagePointer {
                page: PageNo(u.arbitrary::<u32>()?.into()),
                epoch: epoch(u)?,
                checksum: u.arbitrary()?,
            },
            catalogue_bytes: u.arbitrary()?,
        };
        let slot = u.choose_index(SUPERBLOCK_PAGES.len())?;
        let mut page = *given.encode(slot);
        let origin = forge_structure(u, &mut page, PAGE_BYTES, |page| {
            let store = StoreId(word(page, 16));
            seal(page, store, SUPERBLOCK_PAGES[slot]);
        })?;
        for place in 0..SUPERBLOCK_PAGES.len() {
            let found = Superblock::decode(&page, place);
            match origin {
                Origin::Whole if place == slot => assert_eq!(found.as_ref().ok(), Some(&given)),
                Origin::Whole | Origin::Flipped => assert!(found.is_err(), "{origin:?}: {found:?}"),
                _ => {}
            }
            match found {
                Ok(found) => {
                    let again = Superblock::decode(&found.encode(place), place);
                    assert_eq!(again.ok(), Some(found));
                }
                Err(error) => {
                    let is_blank = page.iter().all(|byte| *byte == 0);
                    assert_eq!(error.kind() == ErrorKind::NotFound, is_blank, "{error}");
                }
            }
        }
        Ok(())
    });
}

/// What is read from the page of a leaf.
pub fn leaf(bytes: &[u8]) {
    with(bytes, |u| {
        let node = AnyNode::new(u, 0)?;
        let mut page = Box::new([0; PAGE_BYTES]);
        node.header().begin(&mut page);
        let entries = fill_leaf(u, &mut page)?;
        node.seal.seal(&mut page);
        let origin = node.forge(u, &mut page)?;
        let verified = node.verify(&page, origin);
        let leaf = Leaf::of(&page);
        if origin == Origin::Whole {
            let found: Vec<_> = (0..leaf.count()).map(|index| leaf.entry(index)).collect();
            assert_eq!(found, entries);
        }
        read_leaf(leaf, u.arbitrary()?, verified);
        if verified {
            change_leaf(u, &mut page)?;
        }
        Ok(())
    });
}

/// What is read from the page of an index node.
pub fn index_node(bytes: &[u8]) {
    with(bytes, |u| {
        let level = u.int_in_range(1..=u8::MAX)?;
        let node = AnyNode::new(u, level)?;
        let mut page = Box::new([0; PAGE_BYTES]);
        node.header().begin(&mut page);
        let children = fill_index(u, &mut page, level)?;
        node.seal.seal(&mut page);
        let origin = node.forge(u, &mut page)?;
        let verified = node.verify(&page, origin);
        let index = Index::of(&page);
        if origin == Origin::Whole {
            let found = (0..index.count()).map(|at| (index.pivot(at).to_vec(), index.child(at)));
            assert_eq!(found.collect::<Vec<_>>(), children);
        }
        let key = any_key(u)?;
        read_index(index, &key, verified);
        Ok(())
    });
}

/// A node that is to be somewhere.
struct AnyNode {
    seal: NodeSeal,
    pointer: NodePointer,
    level: u8,
}

impl AnyNode {
    fn new(u: &mut Unstructured<'_>, level: u8) -> Result<Self> {
        Ok(Self {
            seal: NodeSeal {
                store: StoreId(u.arbitrary()?),
                region: RegionId(u.arbitrary()?),
            },
            pointer: pointer(u)?,
            level,
        })
    }

    fn header(&self) -> NodeHeader {
        NodeHeader {
            pointer: self.pointer,
            region: self.seal.region,
            level: self.level,
        }
    }

    /// What is sealed is a node of this place and height, whatever else it is.
    fn forge(&self, u: &mut Unstructured<'_>, page: &mut PageBytes) -> Result<Origin> {
        let has_header = bool::arbitrary(u)?;
        let origin = forge_structure(u, page, PAGE_BYTES, |page| {
            if has_header {
                page[4..8].copy_from_slice(&[b't', b'N', FORMAT_VERSION, self.level]);
                page[8..14].copy_from_slice(&self.pointer.page.0.to_le_bytes()[..6]);
                page[14..20].copy_from_slice(&self.pointer.epoch.0.to_le_bytes()[..6]);
                page[20..24].copy_from_slice(&self.seal.region.0.to_le_bytes());
            }
            seal(page, self.seal.store, self.pointer.page);
        })?;
        Ok(origin)
    }

    /// Whether the page is this node. Nothing that is damaged or stands elsewhere is.
    fn verify(&self, page: &PageBytes, origin: Origin) -> bool {
        let is_sound = self.seal.verify(page, self.pointer, self.level).is_ok();
        match origin {
            Origin::Whole => assert!(is_sound),
            Origin::Flipped => assert!(!is_sound),
            _ => {}
        }
        let NodePointer { page: at, epoch } = self.pointer;
        let elsewhere = [(at.0 ^ 1, epoch.0), (at.0, epoch.0 ^ 1)].map(|(page, epoch)| {
            let (page, epoch) = (PageNo(page), Epoch(epoch));
            NodePointer { page, epoch }
        });
        for pointer in elsewhere {
            let found = self.seal.verify(page, pointer, self.level);
            assert!(!is_sound || found.is_err());
        }
        let other = self.seal.verify(page, self.pointer, self.level ^ 1);
        assert!(!is_sound || other.is_err());
        is_sound
    }
}

/// Puts entries into a leaf, in the order of their heads.
fn fill_leaf(u: &mut Unstructured<'_>, page: &mut PageBytes) -> Result<Vec<LeafEntry>> {
    let prefix_bytes = u.int_in_range(0..=KEY_BYTES_MAX)?;
    let mut entries = Vec::new();
    for _ in 0..u.int_in_range(0..=ENTRIES_MAX)? {
        let (offset, record_bytes) = (u.arbitrary::<u32>()?, u.arbitrary::<u16>()?);
        entries.push(LeafEntry {
            head: u.arbitrary()?,
            hash: u.arbitrary()?,
            location: Location::new(LogOffset(offset.into()), record_bytes.into()),
        });
    }
    entries.sort_by_key(|entry| entry.head);
    let mut leaf = LeafMut::of(page);
    leaf.set_prefix_bytes(prefix_bytes);
    for (index, entry) in entries.iter().enumerate() {
        leaf.insert(index, *entry);
    }
    Ok(entries)
}

/// Reads all of a leaf, of one that is not verified, too: nothing leads out of its page.
fn read_leaf(leaf: Leaf<'_>, head: u64, verified: bool) {
    let count = leaf.count();
    assert!(count <= ENTRIES_MAX);
    let entries: Vec<_> = (0..count).map(|index| leaf.entry(index)).collect();
    for entry in &entries {
        assert!(entry.location.offset.0 < 1 << 48);
        assert!(entry.location.extent_bytes() as u64 <= SEGMENT_BYTES);
    }
    let heads = entries.iter().map(|entry| entry.head).chain([head]);
    for head in heads {
        let found = leaf.range_of(head);
        assert!(found.start <= found.end && found.end <= count);
        if verified {
            let before = entries.iter().filter(|entry| entry.head < head).count();
            let alike = entries.iter().filter(|entry| entry.head == head).count();
            assert_eq!(found, before..before + alike);
        }
    }
}

/// A leaf that is verified takes changes, and is sound after them.
fn change_leaf(u: &mut Unstructured<'_>, page: &mut PageBytes) -> Result<()> {
    let count = Leaf::of(page).count();
    let head = u.arbitrary()?;
    let at = Leaf::of(page).range_of(head).start;
    let mut leaf = LeafMut::of(page);
    if count == ENTRIES_MAX {
        leaf.truncate(u.choose_index(count)?);
    } else {
        leaf.insert(
            at,
            LeafEntry {
                head,
                hash: u.arbitrary()?,
                location: Location::new(LogOffset(4096), 64),
            },
        );
        assert_eq!(leaf.as_leaf().entry(at).head, head);
        if count > 0 {
            leaf.remove(u.choose_index(count)?);
        }
    }
    assert!(leaf.as_leaf().is_sound());
    Ok(())
}

/// Puts children into an index node, as many as there are keys for. Returns them with their pivots.
fn fill_index(
    u: &mut Unstructured<'_>,
    page: &mut PageBytes,
    level: u8,
) -> Result<Vec<(Vec<u8>, NodePointer)>> {
    let mut pivots = Vec::new();
    for _ in 0..u.int_in_range(0..=CHILDREN_MAX)? {
        pivots.push(any_key(u)?);
    }
    pivots.retain(|pivot| !pivot.is_empty());
    pivots.sort();
    pivots.dedup();
    let first = pointer(u)?;
    let mut index = IndexMut::begin(page, level, first);
    let mut children = vec![(Vec::new(), first)];
    for pivot in pivots {
        if index.as_index().has_room(pivot.len()) {
            let child = pointer(u)?;
            index.insert(children.len(), child, &pivot);
            children.push((pivot, child));
        }
    }
    Ok(children)
}

/// Reads all of an index node, of one that is not verified, too.
fn read_index(index: Index<'_>, key: &[u8], verified: bool) {
    let count = index.count();
    assert!(count <= CHILDREN_MAX);
    let pivots: Vec<_> = (0..count).map(|at| index.pivot(at).to_vec()).collect();
    for at in 0..count {
        let NodePointer { page, epoch } = index.child(at);
        assert!(page.0 < 1 << 48 && epoch.0 < 1 << 48);
    }
    let keys = pivots.iter().map(Vec::as_slice).chain([key]);
    for key in keys {
        let (to, below) = (index.route(key), index.route_below(Some(key)));
        assert!(to < count.max(1) && below < count.max(1));
        if verified {
            let lower = |is_lower: &dyn Fn(&[u8]) -> bool| {
                let others = pivots.iter().skip(1);
                others.filter(|pivot| is_lower(pivot)).count()
            };
            assert_eq!(to, lower(&|pivot| pivot <= key));
            assert_eq!(below, lower(&|pivot| pivot < key));
        }
    }
    assert_eq!(index.route_below(None), count.saturating_sub(1));
}

fn any_key(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let bytes = u.int_in_range(0..=KEY_BYTES_MAX)?.min(u.len());
    Ok(u.bytes(bytes)?.to_vec())
}

fn epoch(u: &mut Unstructured<'_>) -> Result<Epoch> {
    Ok(Epoch(u.int_in_range(0..=(1 << 48) - 1)?))
}

fn pointer(u: &mut Unstructured<'_>) -> Result<NodePointer> {
    Ok(NodePointer {
        page: PageNo(u.int_in_range(0..=(1 << 48) - 1)?),
        epoch: epoch(u)?,
    })
}

/// The checksum of a page, as the document of the format says.
fn seal(page: &mut [u8], store: StoreId, number: PageNo) {
    let sum = Checksum::new()
        .with(&store.0.to_le_bytes())
        .with(&number.0.to_le_bytes())
        .with(&[0; 4])
        .with(&page[4..]);
    page[..4].copy_from_slice(&sum.finish().to_le_bytes());
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.copied().map_or(0, u64::from_le_bytes)
}
