//! What a backup would spend if its volume were not identical to the primary's: each page that arrives would have to be
//! rewritten from the primary's addresses to its own (`Tebis 2.3`). Here nothing is: the cost beside each figure is 0.
//!
//! `cargo run --release -p kreon-replica --example rewrite_cost -- [records] [value bytes] [rounds]`
//!
//! Fills a store, takes the pages of its trees and rewrites all of them, leaves first, as a backup would have to: verify the
//! page as it came; decode its entries; look up where each log segment, or each child with its new checksum, is here;
//! write that into a copy; renumber and seal the copy; note where it is. Where in a page a reference lies is found before
//! the clock runs, as a decoder of the format knows it. CPU time of the one thread, medians of rounds.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use kreon_base::{
    Checksum, Error, ErrorKind, LogOffset, PAGE_BYTES, PageBytes, PageNo, Payload, Result,
    SEGMENT_BYTES,
};
use kreon_device::Device;
use kreon_engine::{Durability, Engine, Operation, Options, Terms};
use kreon_format::{IndexNode, Leaf, PagePointer, StoreId, check_node, claimed_node};
use kreon_sim::{Image, SimDevice, SimOptions};
use rustix::time::{ClockId, clock_gettime};

/// Of the format: where a sealed page's checksum ends, its number begins, and how long that and a log reference are.
const CHECKSUM_BYTES: usize = 4;
const PAGE_NO_AT: usize = 8;
const NUMBER_BYTES: usize = 6;

const PAGES_OF_SEGMENT: u64 = SEGMENT_BYTES / PAGE_BYTES as u64;

/// The backup's pages and log segments begin here, elsewhere than the primary's.
const FIRST_PAGE: u64 = 1 << 24;
const FIRST_SEGMENT: u32 = 4096;

/// Few pages are rewritten again and again: so many at least between two looks at the clock.
const PAGES_TIMED_MIN: usize = 10_000;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().ok());
    let mut next = |usual: u64| arguments.next().flatten().unwrap_or(usual);
    let (records, value_bytes, rounds) = (next(1_000_000), next(100), next(15).max(1));
    let (nodes, store) = nodes_of_store(records, value_bytes as usize)?;
    let mut rewriter = Rewriter::new(store, &nodes);
    // The first round fills the map and is not counted.
    rewriter.round(&nodes)?;
    check(&nodes, &rewriter)?;
    let mut times: BTreeMap<u8, Vec<f64>> = BTreeMap::new();
    for _ in 0..rounds {
        for (level, micros) in rewriter.round(&nodes)? {
            times.entry(level).or_default().push(micros);
        }
    }
    println!("{records} records, values of {value_bytes} bytes, {rounds} rounds\n");
    print_times(&nodes, times);
    print_memory(&nodes, &rewriter);
    Ok(())
}

fn print_times(nodes: &[Node], times: BTreeMap<u8, Vec<f64>>) {
    println!("| pages | number | entries a page | lookups a page | CPU us a page | here |");
    println!("|---|---|---|---|---|---|");
    for (level, mut micros) in times {
        micros.sort_by(f64::total_cmp);
        let of_level = || nodes.iter().filter(|node| node.level == level);
        let count = of_level().count();
        let mean = |sum: usize| sum as f64 / count as f64;
        let entries = mean(of_level().map(|node| node.entries).sum());
        let lookups = mean(of_level().map(|node| node.references.len()).sum());
        let name = match level {
            0 => "leaves".to_owned(),
            level => format!("index nodes of level {level}"),
        };
        let median = micros[micros.len() / 2];
        println!("| {name} | {count} | {entries:.1} | {lookups:.1} | {median:.2} | 0 |");
    }
}

fn print_memory(nodes: &[Node], rewriter: &Rewriter) {
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let pages_of_gib = (1 << 30) / PAGE_BYTES;
    println!(
        "\nThe map of pages takes {:.2} MiB for these {} nodes, {:.2} MiB per GiB of index whose pages are all in use; \
         that of log segments {} bytes. Here: 0.",
        mib(rewriter.pages.bytes()),
        nodes.len(),
        mib(size_of::<Place>() * pages_of_gib),
        size_of_val(&rewriter.segments[..]),
    );
}

/// A page of a tree, as the primary ships it.
struct Node {
    page: PageNo,
    bytes: Box<PageBytes>,
    pointer: PagePointer,
    level: u8,
    entries: usize,
    references: Vec<Reference>,
}

/// An entry that refers to another place of the volume, and where in the page it says so.
struct Reference {
    entry: usize,
    at: usize,
}

/// Fills a store and takes the nodes of its trees, leaves first.
fn nodes_of_store(records: u64, value_bytes: usize) -> Result<(Vec<Node>, StoreId)> {
    let simulated = SimOptions {
        record: false,
        ..SimOptions::default()
    };
    let file = Arc::new(SimDevice::new(simulated));
    let device = || Arc::clone(&file) as Arc<dyn Device>;
    let options = Options {
        memory_bytes: 128 << 20,
        ..Options::default()
    };
    let engine = Engine::open(device(), options)?;
    let region = engine.region("records")?;
    for number in 0..records {
        let hashed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (key, value) = (format!("user{hashed:020}"), vec![hashed as u8; value_bytes]);
        let operation = Operation {
            region: &region,
            key: key.as_bytes(),
            value: Some(&value),
            is_range: false,
            terms: Terms::default(),
        };
        engine.write(&[operation], Durability::Buffered)?;
    }
    engine.checkpoint()?;
    let (occupied, image) = (engine.occupied()?, file.image());
    engine.close()?;
    let store = Engine::examine(&device())?.superblock.store;
    let nodes = nodes(&occupied.pages, &image, store);
    match nodes.is_empty() {
        true => Err(Error::invalid("too few records for a tree")),
        false => Ok((nodes, store)),
    }
}

/// The nodes among these runs of pages, leaves first, without those above nodes that are not there any more.
fn nodes(runs: &[(PageNo, u64)], image: &Image, store: StoreId) -> Vec<Node> {
    let pages = runs
        .iter()
        .flat_map(|(first, count)| first.0..first.0 + count);
    let found = pages.filter_map(|page| {
        let bytes = image.bytes(page * PAGE_BYTES as u64, PAGE_BYTES);
        node(PageNo(page), &bytes, store)
    });
    let mut found: Vec<Node> = found.collect();
    found.sort_by_key(|node| (node.level, node.page));
    let mut known: BTreeMap<PageNo, PagePointer> = BTreeMap::new();
    found.retain(|node| {
        let is_known = |pointer: &PagePointer| known.get(&pointer.page) == Some(pointer);
        let is_whole =
            node.level == 0 || children(node).is_some_and(|all| all.iter().all(is_known));
        if is_whole {
            known.insert(node.page, node.pointer);
        }
        is_whole
    });
    found
}

fn children(node: &Node) -> Option<Vec<PagePointer>> {
    let index = IndexNode::open(&node.bytes).ok()?;
    (0..index.len())
        .map(|child| index.child(child).ok())
        .collect()
}

/// The node in a page, if there is one.
fn node(page: PageNo, bytes: &[u8], store: StoreId) -> Option<Node> {
    let bytes: Box<PageBytes> = Box::new(bytes.try_into().ok()?);
    let claim = claimed_node(&bytes).filter(|claim| claim.pointer.page == page)?;
    check_node(&bytes, store, &claim.pointer, claim.level).ok()?;
    let entries = match claim.level {
        0 => Leaf::open(&bytes).ok()?.len(),
        _ => IndexNode::open(&bytes).ok()?.len(),
    };
    let references = references(&bytes, claim.level, entries)?;
    Some(Node {
        page,
        pointer: claim.pointer,
        level: claim.level,
        entries,
        references,
        bytes,
    })
}

/// `None` if the bytes of a reference are somewhere else in the page, too.
fn references(bytes: &PageBytes, level: u8, entries: usize) -> Option<Vec<Reference>> {
    let mut references = Vec::new();
    for entry in 0..entries {
        let encoded = match level {
            0 => match log_reference(bytes, entry).ok()? {
                Some(offset) => offset.0.to_le_bytes()[..NUMBER_BYTES].to_vec(),
                None => continue,
            },
            _ => {
                let child = IndexNode::open(bytes).ok()?.child(entry).ok()?;
                child.encode().to_vec()
            }
        };
        let places = bytes.windows(encoded.len()).enumerate();
        let mut places = places.filter(|(_, window)| *window == encoded);
        let (at, _) = places.next()?;
        if places.next().is_some() {
            return None;
        }
        references.push(Reference { entry, at });
    }
    Some(references)
}

fn log_reference(bytes: &PageBytes, entry: usize) -> Result<Option<LogOffset>> {
    Ok(match Leaf::open(bytes)?.entry(entry)?.payload {
        Payload::Logged { offset, .. } | Payload::Tombstone { offset } => Some(offset),
        _ => None,
    })
}

/// Where a page of the primary is here.
#[derive(Clone, Copy, Default)]
struct Place {
    page: u64,
    checksum: u32,
}

/// By page of the primary: an array for each segment that has pages.
#[derive(Default)]
struct PageMap(Vec<Option<Box<[Place]>>>);

impl PageMap {
    fn put(&mut self, page: PageNo, place: Place) {
        let (segment, within) = (page.0 / PAGES_OF_SEGMENT, page.0 % PAGES_OF_SEGMENT);
        let segment = segment as usize;
        if self.0.len() <= segment {
            self.0.resize(segment + 1, None);
        }
        let empty = || vec![Place::default(); PAGES_OF_SEGMENT as usize].into();
        self.0[segment].get_or_insert_with(empty)[within as usize] = place;
    }

    fn get(&self, page: PageNo) -> Option<Place> {
        let (segment, within) = (page.0 / PAGES_OF_SEGMENT, page.0 % PAGES_OF_SEGMENT);
        let places = self.0.get(segment as usize)?.as_ref()?;
        Some(places[within as usize]).filter(|place| place.page != 0)
    }

    fn bytes(&self) -> usize {
        let arrays = self.0.iter().flatten();
        arrays.map(|array| size_of_val(&**array)).sum()
    }
}

/// A backup with addresses of its own.
struct Rewriter {
    store: StoreId,
    /// By log segment of the primary: the one here.
    segments: Vec<u32>,
    pages: PageMap,
    /// Behind the last page taken here.
    next_page: u64,
    copy: Box<PageBytes>,
}

impl Rewriter {
    fn new(store: StoreId, nodes: &[Node]) -> Self {
        let leaves = nodes.iter().filter(|node| node.level == 0);
        let offsets = leaves.flat_map(|leaf| {
            let of_leaf = leaf.references.iter();
            of_leaf.filter_map(|reference| log_reference(&leaf.bytes, reference.entry).ok()?)
        });
        let last = offsets.map(|offset| offset.segment().0).max().unwrap_or(0);
        Self {
            store,
            segments: (0..=last).map(segment_here).collect(),
            pages: PageMap::default(),
            next_page: FIRST_PAGE,
            copy: Box::new([0; PAGE_BYTES]),
        }
    }

    /// Rewrites all nodes; CPU time of a page in us, by level.
    fn round(&mut self, nodes: &[Node]) -> Result<Vec<(u8, f64)>> {
        self.next_page = FIRST_PAGE;
        let mut times = Vec::new();
        for of_level in nodes.chunk_by(|one, other| one.level == other.level) {
            let (first_page, times_each) =
                (self.next_page, PAGES_TIMED_MIN.div_ceil(of_level.len()));
            let start = cpu_ns();
            for _ in 0..times_each {
                self.next_page = first_page;
                for node in of_level {
                    self.rewrite(node)?;
                    black_box(&self.copy);
                }
            }
            let micros = (cpu_ns() - start) as f64 / 1000.0;
            times.push((
                of_level[0].level,
                micros / (times_each * of_level.len()) as f64,
            ));
        }
        Ok(times)
    }

    fn rewrite(&mut self, node: &Node) -> Result<()> {
        if checksum(&node.bytes, self.store, node.page) != node.pointer.checksum {
            return Err(Error::corruption("a page that changed on its way"));
        }
        self.copy.copy_from_slice(&node.bytes[..]);
        match node.level {
            0 => self.translate_leaf(node)?,
            _ => self.translate_index(node)?,
        }
        let page = self.next_page;
        self.next_page += 1;
        put_number(&mut self.copy, PAGE_NO_AT, page);
        let checksum = checksum(&self.copy, self.store, PageNo(page));
        self.copy[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
        self.pages.put(node.page, Place { page, checksum });
        Ok(())
    }

    fn translate_leaf(&mut self, node: &Node) -> Result<()> {
        for reference in &node.references {
            let Some(offset) = log_reference(&node.bytes, reference.entry)? else {
                continue;
            };
            let segment = self.segments.get(offset.segment().0 as usize);
            let segment = u64::from(*segment.ok_or_else(not_mapped)?);
            let here = segment * SEGMENT_BYTES + offset.0 % SEGMENT_BYTES;
            put_number(&mut self.copy, reference.at, here);
        }
        Ok(())
    }

    fn translate_index(&mut self, node: &Node) -> Result<()> {
        let index = IndexNode::open(&node.bytes)?;
        for reference in &node.references {
            let child = index.child(reference.entry)?;
            let place = self.pages.get(child.page).ok_or_else(not_mapped)?;
            let here = PagePointer {
                page: PageNo(place.page),
                checksum: place.checksum,
                ..child
            };
            let encoded = here.encode();
            self.copy[reference.at..][..encoded.len()].copy_from_slice(&encoded);
        }
        Ok(())
    }
}

/// In another order than the primary's.
fn segment_here(segment: u32) -> u32 {
    FIRST_SEGMENT + (segment ^ 1)
}

fn not_mapped() -> Error {
    Error::new(ErrorKind::NotFound, "a reference that is not in the map")
}

fn put_number(page: &mut PageBytes, at: usize, number: u64) {
    page[at..at + NUMBER_BYTES].copy_from_slice(&number.to_le_bytes()[..NUMBER_BYTES]);
}

/// As the format says: over store, page number, zeroes for the checksum itself, and all bytes behind it.
fn checksum(bytes: &PageBytes, store: StoreId, page: PageNo) -> u32 {
    let mut front = [0; 16 + CHECKSUM_BYTES];
    front[..8].copy_from_slice(&store.0.to_le_bytes());
    front[8..16].copy_from_slice(&page.0.to_le_bytes());
    let sum = Checksum::new().with(&front);
    sum.with(&bytes[CHECKSUM_BYTES..]).finish()
}

/// Every rewritten page is a node of the format that says what the original says, of the other addresses.
fn check(nodes: &[Node], filled: &Rewriter) -> Result<()> {
    let mut rewriter = Rewriter::new(filled.store, nodes);
    for node in nodes {
        rewriter.rewrite(node)?;
        let copy = &rewriter.copy;
        let claim = claimed_node(copy).ok_or_else(not_mapped)?;
        check_node(copy, rewriter.store, &claim.pointer, node.level)?;
        for reference in &node.references {
            let is_right = match node.level {
                0 => {
                    let was = log_reference(&node.bytes, reference.entry)?;
                    let is = log_reference(copy, reference.entry)?;
                    let here = was.map(|offset| segment_here(offset.segment().0));
                    here == is.map(|offset| offset.segment().0)
                }
                _ => {
                    let was = IndexNode::open(&node.bytes)?.child(reference.entry)?;
                    let is = IndexNode::open(copy)?.child(reference.entry)?;
                    let place = filled.pages.get(was.page).ok_or_else(not_mapped)?;
                    (is.page.0, is.checksum) == (place.page, place.checksum)
                }
            };
            assert!(is_right, "{} is not rewritten as it should be", node.page);
        }
    }
    Ok(())
}

/// CPU time of this thread in ns.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
