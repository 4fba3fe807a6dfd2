//! What a backup costs writers of the store, and how many bytes one after few changes copies.
//! `cargo run --release -p kreon-bench --example backup_cost [folder]`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kreon::{Backup, Region, Result, Store};

const KEYS: u64 = 1_000_000;
const VALUE_BYTES: usize = 1000;
/// With and without a backup, by turns.
const ROUNDS: usize = 5;
/// How long a round without one takes, about as long as one with.
const ALONE: Duration = Duration::from_secs(4);
/// Before all of them: as long as it takes until collection keeps up with the writer.
const STEADY: Duration = Duration::from_secs(20);

struct Writer {
    stop: Arc<AtomicBool>,
    puts: Arc<AtomicU64>,
    thread: thread::JoinHandle<Result<()>>,
}

impl Writer {
    /// Overwrites keys in random order, without end; `rate` is in puts a second.
    fn start(region: &Region, rate: Option<u64>) -> Self {
        let (stop, puts) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (region, stopped, counted) = (region.clone(), Arc::clone(&stop), Arc::clone(&puts));
        let thread = thread::spawn(move || {
            let mut dice = Dice(7);
            let begun = Instant::now();
            let mut written = 0;
            while !stopped.load(Ordering::Relaxed) {
                for _ in 0..100 {
                    region.put(dice.key(), value(dice.0))?;
                }
                written += 100;
                counted.store(written, Ordering::Relaxed);
                if let Some(rate) = rate {
                    let due = Duration::from_secs_f64(written as f64 / rate as f64);
                    thread::sleep(due.saturating_sub(begun.elapsed()));
                }
            }
            Ok(())
        });
        Self { stop, puts, thread }
    }

    /// Puts a second while `run` runs.
    fn rate_during<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
        let (before, begun) = (self.puts.load(Ordering::Relaxed), Instant::now());
        let done = run()?;
        let puts = self.puts.load(Ordering::Relaxed) - before;
        Ok((puts as f64 / begun.elapsed().as_secs_f64(), done))
    }

    fn end(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the writer goes on")
    }
}

struct Dice(u64);

impl Dice {
    fn key(&mut self) -> [u8; 8] {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % KEYS).to_be_bytes()
    }
}

/// A value that no file system can make shorter.
fn value(seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let words = (0..VALUE_BYTES / 8).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().collect()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Writers with a whole backup beside them, and without.
fn effect(
    store: &Store,
    region: &Region,
    folder: &Path,
    rate: Option<u64>,
    limit: Option<u64>,
) -> Result<()> {
    let writer = Writer::start(region, rate);
    thread::sleep(STEADY);
    let (steady, ()) = writer.rate_during(|| {
        thread::sleep(STEADY);
        Ok(())
    })?;
    let (mut alone, mut beside, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let sleep = || {
            thread::sleep(ALONE);
            Ok(())
        };
        alone.push(writer.rate_during(sleep)?.0);
        let target = folder.join(format!("backup-{round}"));
        let begun = Instant::now();
        let mut backup = Backup::at(&target);
        if let Some(limit) = limit {
            backup = backup.bytes_per_second(limit);
        }
        let (puts, report) = writer.rate_during(|| backup.make(store))?;
        seconds.push(begun.elapsed().as_secs_f64());
        assert!(
            report.copied_bytes > KEYS * VALUE_BYTES as u64,
            "all is copied"
        );
        beside.push(puts);
        std::fs::remove_dir_all(&target).expect("our own folder");
    }
    writer.end()?;
    let (alone, beside) = (median(alone), median(beside));
    println!(
        "writer {}, backup {}: {steady:.0} puts/s without backups, {alone:.0} between them, {beside:.0} beside one of {:.1} s ({:+.1} %)",
        rate.map_or("unpaced".to_owned(), |rate| format!("of {rate} puts/s")),
        limit.map_or("unpaced".to_owned(), |limit| format!(
            "of {} MB/s",
            limit / 1_000_000
        )),
        median(seconds),
        (beside / steady - 1.0) * 100.0
    );
    Ok(())
}

/// A chain of backups with `share` of the keys overwritten before each.
fn increments(store: &Store, region: &Region, folder: &Path, share: f64) -> Result<()> {
    let backup = Backup::at(folder.join(format!("chain-{share}")));
    let whole = backup.make(store)?;
    let mut dice = Dice(11);
    for number in 1..=3 {
        for _ in 0..(KEYS as f64 * share) as u64 {
            region.put(dice.key(), value(dice.0))?;
        }
        let begun = Instant::now();
        let next = backup.make(store)?;
        println!(
            "{:.1} % of keys overwritten, backup {number} behind the first: {:.1} MB copied of {:.1} MB ({:.2} %) in {:.2} s",
            share * 100.0,
            next.copied_bytes as f64 / 1e6,
            next.bytes as f64 / 1e6,
            next.copied_bytes as f64 / next.bytes as f64 * 100.0,
            begun.elapsed().as_secs_f64()
        );
        assert!(next.bytes > 0 && whole.bytes > 0, "a store with content");
    }
    Ok(())
}

fn main() -> Result<()> {
    let parent = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = parent.join(format!("kreon-backup-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the stores");
    let store = Store::options()
        .memory_bytes(256 << 20)
        .open(folder.join("store"))?;
    let region = store.region("r")?;
    let mut dice = Dice(1);
    for key in 0..KEYS {
        dice.key();
        region.put(key.to_be_bytes(), value(dice.0))?;
    }
    store.checkpoint()?;
    for share in [0.01, 0.001] {
        increments(&store, &region, &folder, share)?;
    }
    for (rate, limit) in [
        (Some(50_000), None),
        (None, Some(100_000_000)),
        (None, None),
    ] {
        effect(&store, &region, &folder, rate, limit)?;
    }
    store.close()?;
    std::fs::remove_dir_all(&folder).expect("our own folder");
    Ok(())
}
