//! CPU time per operation, compared with other concurrency protocols.
//!
//! `cargo run --release -p kreon-l0 --example measure [-- KEYS [THREADS [NAME]...]]`; by default a million keys, one
//! thread and all of `l0`, `coupling`, `root` and `map`. Keys are those of YCSB: "user" and 19 digits, in hashed order,
//! behind the 4 bytes of a region.
//!
//! `coupling` and `root` use the library's own nodes, records and memory under [`locked`] protocols.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::RwLock;
use std::{env, thread};

use kreon_base::{Attributes, LogOffset, Lsn, Payload};
use kreon_l0::{Keep, L0};
use rustix::time::{ClockId, clock_gettime};

mod latch;
mod locked;

#[allow(dead_code, reason = "the library's own; not all of it is used here")]
#[allow(unused_imports, reason = "likewise")]
#[path = "../../src/arena/mod.rs"]
mod arena;
#[allow(dead_code, reason = "the library's own; not all of it is used here")]
#[path = "../../src/chain.rs"]
mod chain;
#[allow(dead_code, reason = "the library's own; not all of it is used here")]
#[path = "../../src/node.rs"]
mod node;
#[allow(dead_code, reason = "the library's own; not all of it is used here")]
#[path = "../../src/record.rs"]
mod record;
#[allow(dead_code, reason = "the library's own; not all of it is used here")]
#[path = "../../src/version.rs"]
mod version;

use locked::{LockedTree, Root};

type Key = [u8; 27];

/// Memory that a run passes on to the next.
const POOL_BYTES: usize = 1 << 30;

/// CPU time of this thread in ns.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn key(number: u64) -> Key {
    let mut key = *b"\0\0\0\x01user0000000000000000000";
    let mut rest = mix(number) % 10_u64.pow(19);
    for digit in key[8..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// The first `n` draws from a Zipf distribution over `0..n` with exponent 0.99, as YCSB draws them.
fn zipf(n: u64) -> impl Iterator<Item = u64> {
    const THETA: f64 = 0.99;
    let zeta = |n: u64| (1..=n).map(|i| (i as f64).powf(-THETA)).sum::<f64>();
    let (zeta_2, zeta_n) = (zeta(2), zeta(n));
    let eta = (1.0 - (2.0 / n as f64).powf(1.0 - THETA)) / (1.0 - zeta_2 / zeta_n);
    (0..n).map(move |i| {
        let uniform = mix(i) as f64 / u64::MAX as f64;
        if uniform * zeta_n < 1.0 {
            return 0;
        }
        if uniform * zeta_n < zeta_2 {
            return 1;
        }
        let rank = n as f64 * (eta * uniform - eta + 1.0).powf(1.0 / (1.0 - THETA));
        (rank as u64).min(n - 1)
    })
}

/// Runs `work` on `threads` threads, each with its share of `keys`; returns mean CPU ns for each key.
fn measure(threads: usize, keys: &[Key], work: impl Fn(&Key, u64) + Sync) -> f64 {
    let share = keys.len().div_ceil(threads);
    let total: f64 = thread::scope(|scope| {
        let runs: Vec<_> = keys
            .chunks(share)
            .enumerate()
            .map(|(thread, keys)| {
                let work = &work;
                scope.spawn(move || {
                    let begin = cpu_ns();
                    for (number, key) in (thread * share..).zip(keys) {
                        work(key, number as u64);
                    }
                    cpu_ns() - begin
                })
            })
            .collect();
        runs.into_iter()
            .map(|run| run.join().unwrap_or(f64::NAN))
            .sum()
    });
    total / keys.len() as f64
}

/// The keys of each kind of run, in order of use.
struct Runs {
    insert: Vec<Key>,
    uniform: Vec<Key>,
    zipf: Vec<Key>,
}

/// Inserts, updates and gets through `put(key, lsn)` and `get(key)`.
fn run(
    name: &str,
    threads: usize,
    runs: &Runs,
    put: impl Fn(&Key, u64) + Sync,
    get: impl Fn(&Key) + Sync,
) {
    let n = runs.insert.len() as u64;
    let insert = measure(threads, &runs.insert, |key, i| put(key, i));
    let update = measure(threads, &runs.zipf, |key, i| put(key, n + i));
    let uniform = measure(threads, &runs.uniform, |key, _| get(key));
    let zipf = measure(threads, &runs.zipf, |key, _| get(key));
    let hot = &runs.zipf[..runs.zipf.len().min(400_000)];
    let one_key = measure(threads, hot, |_, i| put(&runs.insert[0], 2 * n + i));
    println!(
        "{name:9} {threads} threads: insert {insert:4.0}, zipf update {update:4.0}, uniform get {uniform:4.0}, \
         zipf get {zipf:4.0}, update of one key {one_key:4.0} ns"
    );
}

fn logged(lsn: u64) -> Payload<'static> {
    Payload::Logged {
        offset: LogOffset(lsn * 1024),
        value_bytes: 1000,
        attributes: Attributes::NONE,
    }
}

fn l0(index: L0, threads: usize, runs: &Runs) -> L0 {
    let put = |key: &Key, lsn: u64| {
        index.insert(key, Lsn(lsn), logged(lsn), Keep::default());
    };
    let get = |key: &Key| {
        black_box(index.get(key, Lsn::MAX, |_| true, |v| v.lsn));
    };
    run("l0", threads, runs, put, get);
    let n = index.len() as f64;
    let begin = cpu_ns();
    let mut cursor = index.cursor();
    let mut more = cursor.first();
    while more {
        black_box((cursor.key(), cursor.versions().next()));
        more = cursor.next();
    }
    let walk = (cpu_ns() - begin) / n;
    let bytes = index.bytes() as f64 / n;
    println!("                 walk {walk:.0} ns a key, {bytes:.1} bytes a key");
    index.successor()
}

fn under_locks(name: &str, index: LockedTree, threads: usize, runs: &Runs) {
    let put = |key: &Key, lsn: u64| {
        let write = chain::NewVersion {
            lsn: Lsn(lsn),
            payload: logged(lsn),
            keep: version::Keep::default(),
        };
        let known = index.find_or_insert(key, || write.put_record(&index.arena, key));
        if let Some(record) = known {
            chain::add(&index.arena, record, &write);
        }
    };
    let get = |key: &Key| {
        let record = index.find(key);
        black_box(record.map(|record| chain::Versions::of(&index.arena, record).next()));
    };
    run(name, threads, runs, put, get);
    assert_eq!(index.len(), runs.insert.len());
}

fn std_map(threads: usize, runs: &Runs) {
    let index = RwLock::new(BTreeMap::new());
    let put = |key: &Key, lsn: u64| {
        if let Ok(mut map) = index.write() {
            map.insert(*key, (lsn, lsn * 1024, 1000_u32));
        }
    };
    let get = |key: &Key| {
        if let Ok(map) = index.read() {
            black_box(map.get(key));
        }
    };
    run("map", threads, runs, put, get);
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize| args.get(at).and_then(|arg| arg.parse().ok());
    let n = number(0).unwrap_or(1_000_000);
    let threads = number(1).unwrap_or(1) as usize;
    let is_wanted = |name: &str| args.len() < 3 || args[2..].iter().any(|arg| arg == name);
    let runs = Runs {
        insert: (0..n).map(key).collect(),
        uniform: (0..n).map(|i| key(mix(i) % n)).collect(),
        zipf: zipf(n).map(key).collect(),
    };
    println!("{n} keys of 27 bytes; CPU time per operation");
    if is_wanted("l0") {
        let next = l0(L0::with_budget(POOL_BYTES), threads, &runs);
        println!("again in the same memory:");
        l0(next, threads, &runs);
    }
    let pool = arena::Pool::new(POOL_BYTES);
    for (name, kind) in [("coupling", Root::Locked), ("root", Root::Optimistic)] {
        if is_wanted(name) {
            // The first run only touches the memory that the second run, which is reported, uses.
            let first = LockedTree::new(kind, pool.clone());
            for (lsn, key) in (0..).zip(&runs.insert) {
                let write = chain::NewVersion {
                    lsn: Lsn(lsn),
                    payload: logged(lsn),
                    keep: version::Keep::default(),
                };
                first.find_or_insert(key, || write.put_record(&first.arena, key));
            }
            drop(first);
            under_locks(name, LockedTree::new(kind, pool.clone()), threads, &runs);
        }
    }
    if is_wanted("map") {
        std_map(threads, &runs);
    }
}
