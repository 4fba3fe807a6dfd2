//! A small store, and where in it each checksum stands.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kreon_base::{PAGE_BYTES, PageBytes, PageNo, SEGMENT_BYTES, SegmentId};
use kreon_engine::Durability;
use kreon_format::*;
use kreon_sim::Image;
use kreon_torture::content::Content;
use kreon_torture::model::Prefix;
use kreon_torture::script::{Change, Lifetime, Step, Value};
use kreon_torture::store::Store;

/// A store as its device holds it, with the places of its structures.
pub struct Volume {
    /// The device. The store was not closed, and its log has a tail behind the last checkpoint.
    pub image: Image,
    /// The device some checkpoints before.
    pub older: Image,
    /// What the store holds: after the last checkpoint, and with each further unit of the tail.
    pub states: Vec<Content>,
    /// Pages that hold something of interest: first the superblock slots, then what they reach.
    pub pages: Vec<PageNo>,
    /// By page, where other pages state its checksum.
    pub links: BTreeMap<PageNo, Vec<Link>>,
    /// Where fragments and pads start, with what seals them.
    pub fragments: BTreeMap<u64, FragmentSeal>,
    pub store: StoreId,
}

/// A checksum of one page that stands in another.
#[derive(Clone, Copy)]
pub struct Link {
    pub parent: PageNo,
    /// Byte within the parent.
    pub at: usize,
}

/// The one store that all inputs damage.
pub fn template() -> &'static Volume {
    static TEMPLATE: LazyLock<Volume> =
        LazyLock::new(|| make().unwrap_or_else(|what| panic!("the template: {what}")));
    &TEMPLATE
}

/// The bytes of a page.
pub fn page_of(image: &Image, page: PageNo) -> PageBytes {
    let mut bytes = [0; PAGE_BYTES];
    image.read(page.offset_bytes(), &mut bytes);
    bytes
}

fn make() -> Result<Volume, String> {
    let mut store = Store::on(Image::default(), &Content::new(), false);
    store.open().map_err(|error| error.to_string())?;
    let step = |store: &mut Store, step| {
        let outcome = store.step(&step)?;
        outcome.map_err(|error| error.to_string())
    };
    step(&mut store, Step::Create("a".into()))?;
    step(&mut store, Step::Create("b".into()))?;
    for n in 0..PAIRS {
        step(&mut store, put("a", key(n), 20 + (n as usize * 37) % 200))?;
    }
    step(&mut store, Step::Checkpoint)?;
    let older = store.device.image();
    for n in (0..PAIRS).step_by(3) {
        step(&mut store, put("a", key(n), 10 + n as usize % 90))?;
        step(&mut store, put("b", key(n), 5))?;
    }
    // A long value brings the log near the end of its segment; it goes away again, because reading it would take most
    // of the time. The short ones come into the next segment.
    step(&mut store, put("b", FILLER.into(), FILLER_BYTES))?;
    step(&mut store, delete("b", FILLER.into()))?;
    for n in 0..LAST_PAIRS {
        step(&mut store, put("b", key(n), 1300))?;
    }
    step(&mut store, Step::Reopen)?;
    step(&mut store, Step::Checkpoint)?;
    let settled = store.model.end();
    for n in 0..6 {
        step(&mut store, put("a", key(n * 7), 30 + n as usize * 40))?;
    }
    step(&mut store, Step::Sync)?;
    let tail = settled.units..=store.model.end().units;
    let states = tail.map(|units| Prefix { units, ..settled });
    let states = states.map(|prefix| store.model.content(prefix)).collect();
    map(store.device.image(), older, states)
}

/// Keys of several sorts: short ones, some that share their first 1024 bytes, some above that.
fn key(n: u64) -> Vec<u8> {
    match n % 9 {
        7 => [&[b'k'; 1024][..], n.to_string().as_bytes()].concat(),
        8 => [format!("{n:04}").as_bytes(), &[b'm'; 300][..]].concat(),
        _ => format!("key{:05}", n * 7919 % 10_000).into_bytes(),
    }
}

/// Pairs of region `a`: several leaves.
const PAIRS: u64 = 54;

const FILLER: &[u8] = b"a long value";

/// Leaves less of the segment than the short ones behind it take.
const FILLER_BYTES: usize = (2 << 20) - (48 << 10);

/// Pairs of region `b` that were written behind it.
const LAST_PAIRS: u64 = 27;

fn delete(region: &str, key: Vec<u8>) -> Step {
    let change = Change {
        region: region.into(),
        key,
        value: None,
        until: None,
        lifetime: Lifetime::Unlimited,
    };
    Step::Write(vec![change], Durability::Buffered)
}

fn put(region: &str, key: Vec<u8>, len_bytes: usize) -> Step {
    let seed = key.len() as u64 + len_bytes as u64;
    let change = Change {
        region: region.into(),
        key,
        value: Some(Value { len_bytes, seed }),
        until: None,
        lifetime: Lifetime::Unlimited,
    };
    Step::Write(vec![change], Durability::Buffered)
}

/// Finds the structures of a volume.
fn map(image: Image, older: Image, states: Vec<Content>) -> Result<Volume, String> {
    let slot = Superblock::decode(&page_of(&image, PageNo(0)), 0);
    let superblock = slot.map_err(|error| error.to_string())?;
    let mut volume = Volume {
        image,
        older,
        states,
        pages: SUPERBLOCK_PAGES.to_vec(),
        links: BTreeMap::new(),
        fragments: BTreeMap::new(),
        store: superblock.store,
    };
    for parent in SUPERBLOCK_PAGES {
        volume.link(parent, &superblock.catalogue)?;
    }
    let catalogue = volume.map_catalogue(superblock.catalogue)?;
    for region in &catalogue.regions {
        for tree in &region.levels {
            if let Some(root) = tree.root {
                volume.link(superblock.catalogue.page, &root)?;
                volume.map_node(root, tree.height - 1)?;
            }
        }
    }
    for (group, pointer) in (0..).zip(&catalogue.groups) {
        let page = bitmap_page(group, pointer.copy);
        let mut stated = vec![pointer.copy];
        stated.extend(&pointer.epoch.0.to_le_bytes()[..6]);
        stated.extend(pointer.checksum.to_le_bytes());
        volume.state(superblock.catalogue.page, page, &stated)?;
        volume.pages.push(page);
    }
    let segments = (0..superblock.segments).map(SegmentId);
    let filled = segments.filter(|id| volume.map_log_segment(*id)).count();
    match filled {
        // Two of the log, one of moved records.
        3.. => Ok(volume),
        _ => Err(format!("its log has {filled} segments")),
    }
}

impl Volume {
    fn map_catalogue(&mut self, head: PagePointer) -> Result<Catalogue, String> {
        let bytes = page_of(&self.image, head.page);
        let (payload, next) =
            decode_page(&bytes, self.store, &head).map_err(|error| error.to_string())?;
        self.pages.push(head.page);
        match next {
            None => Catalogue::decode(payload).map_err(|error| error.to_string()),
            Some(_) => Err("its catalogue takes several pages".into()),
        }
    }

    fn map_node(&mut self, pointer: PagePointer, level: u8) -> Result<(), String> {
        self.pages.push(pointer.page);
        if level == 0 {
            return Ok(());
        }
        let bytes = page_of(&self.image, pointer.page);
        let node = IndexNode::open(&bytes).map_err(|error| error.to_string())?;
        for index in 0..node.len() {
            let child = node.child(index).map_err(|error| error.to_string())?;
            self.link(pointer.page, &child)?;
            self.map_node(child, level - 1)?;
        }
        Ok(())
    }

    /// Returns whether it is one that holds anything.
    fn map_log_segment(&mut self, segment: SegmentId) -> bool {
        let first = page_of(&self.image, segment.first_page());
        let Ok(header) = LogSegmentHeader::decode(&first, self.store, segment) else {
            return false;
        };
        self.pages.push(segment.first_page());
        let bytes = self
            .image
            .bytes(segment.offset_bytes(), SEGMENT_BYTES as usize);
        let seal = FragmentSeal {
            store: self.store,
            sequence: header.sequence,
        };
        let mut at = LOG_HEADER_BYTES as usize;
        while at < bytes.len() {
            let offset = segment.offset_bytes() + at as u64;
            at = match Fragment::decode(&bytes[at..], &seal, kreon_base::LogOffset(offset)) {
                Ok(fragment) => {
                    self.fragments.insert(offset, seal);
                    let page = PageNo::containing(offset);
                    if self.pages.last() != Some(&page) {
                        self.pages.push(page);
                    }
                    at + fragment.extent_bytes()
                }
                // Behind the end of a run the next one begins at a page border.
                Err(_) => (at + 1).next_multiple_of(PAGE_BYTES),
            };
        }
        self.fragments
            .range(segment.offset_bytes()..)
            .next()
            .is_some()
    }

    fn link(&mut self, parent: PageNo, child: &PagePointer) -> Result<(), String> {
        self.state(parent, child.page, &child.encode())
    }

    /// Notes that `parent` states the checksum of `page`, in the last four of the bytes `stated`.
    fn state(&mut self, parent: PageNo, page: PageNo, stated: &[u8]) -> Result<(), String> {
        let bytes = page_of(&self.image, parent);
        let at = bytes.windows(stated.len()).position(|w| w == stated);
        let at = at.ok_or_else(|| format!("{parent} does not point to {page}"))? + stated.len() - 4;
        self.links
            .entry(page)
            .or_default()
            .push(Link { parent, at });
        Ok(())
    }
}
