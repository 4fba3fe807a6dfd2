//! What a hit costs: `cargo run --release -p kreon-mapping --example hit_cost [MiB] [threads]`.
//!
//! Pages form one random cycle: each names the next in its first word. Following it through the
//! mapping makes every read depend on the one before; reading pages in a random order known in advance
//! does not. The same walks over bare memory are the bound.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;

use kreon_base::{PAGE_BYTES, PageBytes, PageNo, Priority, Result};
use kreon_device::{Device, DeviceStats, Read, Write};
use kreon_mapping::{Mapping, MappingOptions, PageRequest};

const STEPS: usize = 4_000_000;

/// A device that holds the cycle.
struct Cycle(Vec<u64>);

impl Device for Cycle {
    fn block_bytes(&self) -> u32 {
        4096
    }
    fn len_bytes(&self) -> u64 {
        (self.0.len() * PAGE_BYTES) as u64
    }
    fn len_bytes_max(&self) -> u64 {
        self.len_bytes()
    }
    fn grow(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn allocate(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn discard(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        for read in reads {
            let first = (read.offset / PAGE_BYTES as u64) as usize;
            for (i, buffer) in read.buffers.iter_mut().enumerate() {
                buffer[..8].copy_from_slice(&self.0[first + i].to_le_bytes());
            }
        }
        Ok(())
    }
    fn write(&self, _: &[Write<'_>]) -> Result<()> {
        Ok(())
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
}

/// A random cycle through all numbers below `len`.
fn cycle(len: usize) -> Vec<u64> {
    let mut order: Vec<u64> = (0..len as u64).collect();
    let mut state = 1_u64;
    for i in (1..len).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        order.swap(i, (state >> 33) as usize % (i + 1));
    }
    let mut next = vec![0; len];
    for i in 0..len {
        next[order[i] as usize] = order[(i + 1) % len];
    }
    next
}

fn first_word(bytes: &PageBytes) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"))
}

fn request(page: u64) -> PageRequest<'static> {
    PageRequest {
        page: PageNo(page),
        priority: Priority(2),
        check: &|_| Ok(()),
    }
}

/// Processor time that this thread has used, in ns. Other load on the machine disturbs it less than
/// the time on the clock.
fn thread_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(0)
}

/// Runs `walk` of `STEPS` steps and tells the processor time of a step.
fn measure(what: &str, walk: impl FnOnce()) {
    let start = thread_ns();
    walk();
    let ns = (thread_ns() - start) as f64 / STEPS as f64;
    println!("{what:44} {ns:7.1} ns");
}

fn dependent(mapping: &Mapping, start: u64) {
    let mut page = start;
    for _ in 0..STEPS {
        page = mapping.read(request(page), first_word).expect("a hit");
    }
    black_box(page);
}

fn independent(mapping: &Mapping, page_of: impl Fn(usize) -> u64) {
    let mut sum = 0_u64;
    for i in 0..STEPS {
        let word = mapping.read(request(page_of(i)), first_word);
        sum = sum.wrapping_add(word.expect("a hit"));
    }
    black_box(sum);
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mib: usize = arguments
        .next()
        .map_or(1024, |text| text.parse().expect("MiB"));
    let threads: u64 = arguments
        .next()
        .map_or(2, |text| text.parse().expect("threads"));
    let pages = mib << 20 >> 12;
    let next = cycle(pages);
    let volume_bytes = (pages * PAGE_BYTES) as u64;
    let options = MappingOptions::new((mib + mib / 16 + 16) << 20, volume_bytes);
    let start = thread_ns();
    let mapping = Arc::new(Mapping::new(Arc::new(Cycle(next.clone())), options)?);
    println!(
        "{:44} {:7.1} ms",
        "making the mapping",
        (thread_ns() - start) as f64 / 1e6
    );
    let requests: Vec<_> = (0..pages as u64).map(request).collect();
    mapping.prefetch(&requests)?;
    let before = mapping.stats();

    measure("dependent hits over all pages", || dependent(&mapping, 0));
    measure("independent hits over all pages", || {
        independent(&mapping, |i| next[i % pages])
    });
    measure("hits on 64 pages (in the processor's cache)", || {
        independent(&mapping, |i| i as u64 % 64);
    });
    thread::scope(|scope| {
        for number in 0..threads {
            let mapping = &mapping;
            scope.spawn(move || {
                let what = format!("dependent hits, one of {threads} threads");
                measure(&what, || dependent(mapping, number * 1000));
            });
        }
    });

    let after = mapping.stats();
    assert_eq!(
        (after.misses, after.pages_read),
        (before.misses, before.pages_read)
    );
    drop(mapping);
    bare(&next);
    Ok(())
}

/// The dependent walk over bare memory in 4 KiB pages, numbers translated by nobody.
fn bare(next: &[u64]) {
    let mut memory = vec![0_u64; next.len() * PAGE_BYTES / 8];
    for (page, next) in next.iter().enumerate() {
        memory[page * PAGE_BYTES / 8] = *next;
    }
    measure("dependent, bare memory (bound)", || {
        let mut page = 0;
        for _ in 0..STEPS {
            page = memory[page as usize * PAGE_BYTES / 8];
        }
        black_box(page);
    });
}
