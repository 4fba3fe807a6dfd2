//! What it costs to reach one page, by each way: hits and misses, without a store around them.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Context;
use kreon_base::{PAGE_BYTES, PageBytes, PageNo, Priority};
use kreon_device::{Device, Facility, FileDevice, FileOptions};
use kreon_mapping::{Backend, MapAdvice, Mapping, MappingOptions, PageRequest};
use serde::{Deserialize, Serialize};

use crate::keys::hash;
use crate::meter::Meter;
use crate::recovery::child::forget_pages;

/// Pages of the file: 256 MiB, far more than a processor caches.
const PAGES: u64 = 1 << 16;

/// Hits of each way.
const HITS: u64 = 1_000_000;

/// Misses of each way, of different pages.
const MISSES: u64 = 20_000;

/// What one way costs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Which way.
    pub what: String,
    /// CPU time of the process for a page.
    pub cpu_ns: f64,
    /// Time from asking for a page, or for as many as are in flight at once, to having them. Of misses only.
    pub latency_us: Option<f64>,
}

/// Measures all ways over a file in `dir`.
///
/// # Errors
/// If the file cannot be made or read.
pub fn costs(dir: &Path) -> anyhow::Result<Vec<Cost>> {
    let path = dir.join("micro.pages");
    let next = cycle();
    write_pages(&path, &next)?;
    let mut costs = hits(&path, &next)?;
    costs.extend(misses(dir, &path)?);
    std::fs::remove_file(&path)?;
    Ok(costs)
}

/// Pages as one random cycle: each names the next one in its first word, so that each read waits for the last.
fn cycle() -> Vec<u64> {
    let mut order: Vec<u64> = (0..PAGES).collect();
    order.sort_unstable_by_key(|n| hash(*n));
    let mut next = vec![0; PAGES as usize];
    for (at, page) in order.iter().enumerate() {
        next[*page as usize] = order[(at + 1) % order.len()];
    }
    next
}

fn write_pages(path: &Path, next: &[u64]) -> anyhow::Result<()> {
    let file = File::create(path).with_context(|| format!("make {}", path.display()))?;
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    let mut page = [7; PAGE_BYTES];
    for next in next {
        page[..8].copy_from_slice(&next.to_le_bytes());
        writer.write_all(&page)?;
    }
    Ok(writer.into_inner()?.sync_all()?)
}

fn first_word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}

fn request(page: u64) -> PageRequest<'static> {
    PageRequest {
        page: PageNo(page),
        priority: Priority(2),
        check: &|_| Ok(()),
    }
}

/// A mapping of the file with `memory_bytes` of frames.
fn mapping(path: &Path, backend: Backend, memory_bytes: usize) -> anyhow::Result<Mapping> {
    let file = FileOptions {
        direct: match backend {
            Backend::Pool => Facility::Auto,
            Backend::Mmap(_) => Facility::Off,
        },
        ..FileOptions::default()
    };
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(path, &file)?.0);
    let mut options = MappingOptions::new(memory_bytes, PAGES * PAGE_BYTES as u64);
    options.modes.backend = backend;
    Ok(Mapping::new(device, options)?)
}

/// Follows the cycle through `read`.
fn follow(what: &str, mut read: impl FnMut(u64) -> anyhow::Result<u64>) -> anyhow::Result<Cost> {
    // In the order of their numbers: frames filled in the order of the cycle would be read in a row.
    for page in 0..PAGES {
        read(page)?;
    }
    let mut page = 0;
    let meter = Meter::start();
    for _ in 0..HITS {
        page = read(page)?;
    }
    black_box(page);
    Ok(Cost {
        what: format!("hit: {what}"),
        cpu_ns: meter.stop().cpu_seconds * 1e9 / HITS as f64,
        latency_us: None,
    })
}

fn hits(path: &Path, next: &[u64]) -> anyhow::Result<Vec<Cost>> {
    let mut costs = Vec::new();
    let of_word = |bytes: &PageBytes| first_word(bytes);
    let pool = mapping(
        path,
        Backend::Pool,
        (PAGES as usize * PAGE_BYTES) / 15 * 16 + (8 << 20),
    )?;
    costs.push(follow("pool, through the array", |page| {
        Ok(pool.read(request(page), of_word)?)
    })?);
    drop(pool);
    let mapped = mapping(path, Backend::Mmap(MapAdvice::Normal), 8 << 20)?;
    let read = |page| Ok(mapped.read(request(page), of_word)?);
    costs.push(follow("mmap, a copy of the page", read)?);
    let (mut scratch, log) = (Vec::new(), Priority(u8::MAX));
    costs.push(follow("mmap, a copy of 8 bytes", |page| {
        let offset = PageNo(page).offset_bytes();
        Ok(mapped.with_bytes(offset, 8, log, &mut scratch, first_word)?)
    })?);
    drop(mapped);
    let table = LockedTable::new(next);
    costs.push(follow("hash table, a lock per bucket", |page| {
        Ok(table.read(page))
    })?);
    drop(table);
    let file = File::open(path)?;
    let mut buffer = [0; PAGE_BYTES];
    costs.push(follow("pread from the page cache", |page| {
        file.read_exact_at(&mut buffer, PageNo(page).offset_bytes())?;
        Ok(first_word(&buffer))
    })?);
    let mut bare = vec![0_u64; next.len() * PAGE_BYTES / 8];
    for (page, next) in next.iter().enumerate() {
        bare[page * PAGE_BYTES / 8] = *next;
    }
    costs.push(follow("bare memory (bound)", |page| {
        Ok(bare[page as usize * PAGE_BYTES / 8])
    })?);
    Ok(costs)
}

/// A part of a [`LockedTable`].
type Part = Mutex<HashMap<u64, Box<PageBytes>, BuildHasherDefault<Mixed>>>;

/// What caches in user space mostly are: a hash table in parts, each under a lock.
struct LockedTable(Vec<Part>);

/// One multiplication, as good hash tables of numbers do.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(31);
    }
}

impl LockedTable {
    fn new(next: &[u64]) -> Self {
        let table = Self((0..256).map(|_| Mutex::default()).collect());
        for (page, next) in next.iter().enumerate() {
            let mut bytes = Box::new([7; PAGE_BYTES]);
            bytes[..8].copy_from_slice(&next.to_le_bytes());
            if let Ok(mut part) = table.part(page as u64).lock() {
                part.insert(page as u64, bytes);
            }
        }
        table
    }

    fn part(&self, page: u64) -> &Part {
        &self.0[page as usize % self.0.len()]
    }

    fn read(&self, page: u64) -> u64 {
        let part = self.part(page).lock();
        part.ok()
            .and_then(|part| part.get(&page).map(|bytes| first_word(&**bytes)))
            .unwrap_or(0)
    }
}

fn misses(dir: &Path, path: &Path) -> anyhow::Result<Vec<Cost>> {
    // Each page once, in no order: none is there.
    let mut pages: Vec<u64> = (0..PAGES).collect();
    pages.sort_unstable_by_key(|n| hash(*n ^ 1 << 60));
    pages.truncate(MISSES as usize);
    let mut costs = Vec::new();
    // Frames for a part: evictions are part of the price.
    let frames_bytes = 32 << 20;
    let mut pool = |what: &str, at_once: usize| {
        let pool = mapping(path, Backend::Pool, frames_bytes)?;
        missed(&mut costs, what, &pages, at_once, |some| {
            match some {
                [one] => {
                    pool.read(request(*one), |bytes| black_box(bytes[0]))?;
                }
                _ => pool.prefetch(&some.iter().map(|page| request(*page)).collect::<Vec<_>>())?,
            }
            Ok(())
        })
    };
    pool("pool, 1 in flight", 1)?;
    pool("pool, 8 in flight", 8)?;
    pool("pool, 32 in flight", 32)?;
    for (what, advice, at_once) in [
        ("mmap, random", MapAdvice::Random, 1),
        ("mmap, willneed, 32 asked for", MapAdvice::WillNeed, 32),
    ] {
        let mapped = mapping(path, Backend::Mmap(advice), frames_bytes)?;
        forget_pages(dir)?;
        missed(&mut costs, what, &pages, at_once, |some| {
            mapped.prefetch(&some.iter().map(|page| request(*page)).collect::<Vec<_>>())?;
            for page in some {
                mapped.read(request(*page), |bytes| black_box(bytes[0]))?;
            }
            Ok(())
        })?;
    }
    Ok(costs)
}

/// Reads pages, so many at once.
fn missed(
    costs: &mut Vec<Cost>,
    what: &str,
    pages: &[u64],
    at_once: usize,
    mut read: impl FnMut(&[u64]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (meter, start) = (Meter::start(), Instant::now());
    for some in pages.chunks(at_once) {
        read(some)?;
    }
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), meter.stop().cpu_seconds);
    let rounds = pages.len().div_ceil(at_once) as f64;
    costs.push(Cost {
        what: format!("miss: {what}"),
        cpu_ns: cpu * 1e9 / pages.len() as f64,
        latency_us: Some(seconds * 1e6 / rounds),
    });
    Ok(())
}
