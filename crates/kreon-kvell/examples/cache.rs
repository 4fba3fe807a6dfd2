//! What the cache of cells costs and keeps: `cargo run --release -p kreon-kvell --example cache [cells]`.
//!
//! - A get of a random one of 1 M cells of 1 KiB (or as many as told): the search alone, with the first byte, with a
//!   copy. Beside it the bound: the same reads in an array of 1 KiB arrays, whose place is known.
//! - A put that evicts.
//! - The hit rate on a zipfian trace, of `put` and of `put_scanned`, beside that of a cache that knows the most frequent cells.
//! - The pieces of cells of mixed sizes, after each block was taken many times.

use std::hint::black_box;
use std::time::Instant;

use kvell::cache::{Cache, CellNo};

/// Gets that are timed.
const GETS: u64 = 2_000_000;
const CELL_BYTES: usize = 1024;
/// Sectors of a cell: the distance between numbers.
const CELL_SECTORS: u64 = 2;

/// Xorshift.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(end)) >> 64) as u64
    }

    /// 0 to 1.
    fn share(&mut self) -> f64 {
        self.below(1 << 53) as f64 / (1_u64 << 53) as f64
    }
}

fn main() {
    let cells = std::env::args()
        .nth(1)
        .map_or(1_000_000, |cells| cells.parse().expect("a number of cells"));
    gets_and_puts(cells);
    for percent in [1, 10, 33] {
        zipfian(cells, percent);
    }
    mixed_sizes();
}

/// What this thread had of a processor: other work on the machine does not count. 0 where the system does not tell.
fn processor_ns() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ')
        .next()
        .and_then(|ns| ns.parse().ok())
        .unwrap_or(0)
}

/// Prints the time of one of `GETS` calls.
fn time(what: &str, mut call: impl FnMut(u64)) {
    let (start, start_ns) = (Instant::now(), processor_ns());
    (0..GETS).for_each(&mut call);
    let each = |ns: u64| ns as f64 / GETS as f64;
    let (processor, clock) = (
        each(processor_ns() - start_ns),
        each(start.elapsed().as_nanos() as u64),
    );
    println!("{what:<32}{processor:>7.1} ns of processor, {clock:>7.1} ns in all");
}

fn gets_and_puts(cells: u64) {
    let bytes = vec![7_u8; CELL_BYTES];
    {
        let array = vec![[7_u8; CELL_BYTES]; cells as usize];
        let mut dice = Dice(1);
        time("array: first byte", |_| {
            black_box(array[dice.below(cells) as usize][0]);
        });
    }
    let mut cache = Cache::new((cells as usize * CELL_BYTES) / 100 * 106 + (1 << 20));
    for cell in 0..cells {
        assert!(cache.put(CellNo(cell * CELL_SECTORS), &bytes));
    }
    let stats = cache.stats();
    let overhead = cache.memory_bytes() as f64 / stats.bytes as f64 - 1.0;
    println!(
        "{} cells, {} bytes, {:.1} % more in all",
        stats.cells,
        stats.bytes,
        overhead * 100.0
    );
    let mut dice = Dice(1);
    time("get: search", |_| {
        black_box(
            cache
                .get(CellNo(dice.below(cells) * CELL_SECTORS))
                .is_some(),
        );
    });
    time("get: first byte", |_| {
        let found = cache.get(CellNo(dice.below(cells) * CELL_SECTORS));
        black_box(found.and_then(|found| found.whole()).map(|bytes| bytes[0]));
    });
    let mut copy = Vec::with_capacity(CELL_BYTES);
    time("get: copy of 1 KiB", |_| {
        copy.clear();
        if let Some(found) = cache.get(CellNo(dice.below(cells) * CELL_SECTORS)) {
            found.copy_to(&mut copy, 0..CELL_BYTES);
        }
        black_box(&copy);
    });
    time("get: absent", |_| {
        black_box(
            cache
                .get(CellNo((cells + dice.below(cells)) * CELL_SECTORS))
                .is_some(),
        );
    });
    let mut longest_ns = 0;
    time("put of 1 KiB, mostly evicting", |at| {
        let start = Instant::now();
        black_box(cache.put(CellNo((cells + at) * CELL_SECTORS), &bytes));
        longest_ns = longest_ns.max(start.elapsed().as_nanos());
    });
    println!("{:<34}{:>7.1} us", "longest put", longest_ns as f64 / 1e3);
}

/// A cache for `percent` of the cells meets a zipfian trace with exponent 0.99.
fn zipfian(cells: u64, percent: u64) {
    let weights = (1..=cells).map(|rank| (rank as f64).powf(-0.99));
    let sums: Vec<f64> = weights
        .scan(0.0, |sum, weight| {
            Some(std::mem::replace(sum, *sum + weight) + weight)
        })
        .collect();
    let total = sums[cells as usize - 1];
    let kept = cells * percent / 100;
    let mut cache = Cache::new((kept as usize * CELL_BYTES) / 1000 * 1045);
    let bytes = vec![7_u8; CELL_BYTES];
    let mut dice = Dice(2);
    let mut run = |requests: u64, is_marked: bool| {
        let before = cache.stats();
        for _ in 0..requests {
            let drawn = dice.share() * total;
            let rank = sums.partition_point(|&sum| sum < drawn) as u64;
            // The number of a cell says nothing of its rank.
            let cell = CellNo(rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8);
            if cache.get(cell).is_none() {
                let put = if is_marked {
                    Cache::put
                } else {
                    Cache::put_scanned
                };
                put(&mut cache, cell, &bytes);
            }
        }
        (cache.stats().hits - before.hits) as f64 / requests as f64 * 100.0
    };
    run(2 * cells, true);
    let marked = run(cells, true);
    run(cells, false);
    let unmarked = run(cells, false);
    let best = sums[kept as usize - 1] / total * 100.0;
    println!(
        "zipfian 0.99, {percent:>2} % cached: {marked:.1} % hits, {unmarked:.1} % if put without the mark, {best:.1} % at best"
    );
}

/// Cells of 0.5 to 16 KiB come and go in 64 MiB.
fn mixed_sizes() {
    let sizes = [512, 1024, 1536, 4096, 8192, 16_384];
    let mut cache = Cache::new(64 << 20);
    let mut dice = Dice(3);
    let bytes = vec![7_u8; 16_384];
    // A cell keeps its size.
    let size_of_cell = |cell: u64| sizes[(cell % 6) as usize];
    for _ in 0..400_000 {
        let cell = dice.below(40_000);
        if cache.get(CellNo(cell)).is_none() {
            cache.put(CellNo(cell), &bytes[..size_of_cell(cell)]);
        }
    }
    for size in sizes {
        let (mut found, mut pieces) = (0, 0);
        for cell in (0..40_000).filter(|&cell| size_of_cell(cell) == size) {
            if let Some(cell) = cache.get(CellNo(cell)) {
                found += 1;
                pieces += cell.chunks(0..usize::MAX).count();
            }
        }
        println!(
            "mixed sizes, {size:>5} bytes: {:.2} pieces a cell",
            pieces as f64 / f64::from(found.max(1))
        );
    }
    println!(
        "mixed sizes: {:.1} % of the memory holds contents",
        cache.stats().bytes as f64 / cache.memory_bytes() as f64 * 100.0
    );
}
