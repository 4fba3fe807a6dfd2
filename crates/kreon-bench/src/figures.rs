//! The table of docs/results/engine.md: inserts, gets, gets at depth, a scan.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail, ensure};
use kreon::{Region, Store};
use serde::{Deserialize, Serialize};

use crate::engine::Kind;
use crate::engine::tuning::Means;
use crate::keys::{fill, hash, key, number};
use crate::machine::about::About;
use crate::meter::Meter;
use crate::report::grid::{heading, line};
use crate::report::origin::Origin;

/// What is measured.
#[derive(clap::Args)]
pub struct Settings {
    /// Records.
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
    /// Bytes of a value, 8 at the least.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(8..))]
    value_bytes: u64,
    /// Memory of the store, in MiB.
    #[arg(long, default_value_t = 2048)]
    memory_mib: usize,
    /// Longest value that stands in the leaves of the index; the store's default, if not given.
    #[arg(long)]
    inline_bytes: Option<usize>,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Where `engine.json` and `engine.md` go.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Folder for the store; a new one in the temporary folder, deleted afterwards, if not given.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// `engine.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Where the figures come from.
    #[serde(flatten)]
    pub origin: Origin,
    /// The machine.
    pub machine: About,
    /// Records, threads and memory, in words.
    pub size: String,
    rows: Vec<Row>,
}

/// A phase. Bytes are those of the device for each byte of keys and values.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    phase: String,
    ops_per_second: f64,
    cpu_us_per_op: f64,
    written_per_byte: f64,
    read_per_byte: f64,
}

/// Runs all phases and prints a table.
///
/// # Errors
/// Of the store and of files.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let dir = settings.dir.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("kreon-bench-{}", std::process::id()))
    });
    std::fs::create_dir_all(&dir).with_context(|| format!("make {}", dir.display()))?;
    let path = dir.join("figures.kreon");
    ensure!(
        !path.exists(),
        "{} exists; name another folder",
        path.display()
    );
    let machine = About::here(&dir);
    let outcome = measure(settings, &path);
    let removed = std::fs::remove_file(&path);
    if settings.dir.is_none() {
        let _ = std::fs::remove_dir(&dir);
    }
    let rows = outcome?;
    removed.with_context(|| format!("delete {}", path.display()))?;
    let means = Means::default();
    let mut results = Results {
        origin: Origin::now(&[Kind::Kreon], &means),
        machine,
        size: settings.size(),
        rows,
    };
    // The store is opened here, not through those means.
    results.origin.tuning.clear();
    println!("{}\n\n{}", results.size, table(&results));
    if let Some(out) = &settings.out {
        std::fs::create_dir_all(out)?;
        let json = serde_json::to_string_pretty(&results)?;
        std::fs::write(out.join("engine.json"), json)?;
        std::fs::write(out.join("engine.md"), table(&results))?;
    }
    Ok(())
}

impl Settings {
    fn size(&self) -> String {
        format!(
            "{} records of {} B, {} threads, {} MiB of memory",
            self.records, self.value_bytes, self.threads, self.memory_mib
        )
    }
}

fn measure(settings: &Settings, path: &std::path::Path) -> anyhow::Result<Vec<Row>> {
    let mut options = Store::options().memory_bytes(settings.memory_mib << 20);
    if let Some(bytes) = settings.inline_bytes {
        options = options.inline_value_bytes_max(bytes);
    }
    let store = options.open(path)?;
    let region = store.region("bench")?;
    let phases: [(&str, Body); 4] = [
        ("insert, hashed order", insert),
        ("get, uniform", get),
        ("multi_get of 64, uniform", multi_get),
        ("scan, per record", scan),
    ];
    let mut rows = Vec::new();
    for (name, body) in phases {
        let before = store.stats();
        let meter = Meter::start();
        let operations = body(settings, &region)?;
        if name.starts_with("insert") {
            // The work that inserts leave behind is part of their cost.
            store.checkpoint()?;
        }
        let (taken, after) = (meter.stop(), store.stats());
        let bytes = operations as f64 * (30 + settings.value_bytes) as f64;
        rows.push(Row {
            phase: name.to_owned(),
            ops_per_second: operations as f64 / taken.seconds,
            cpu_us_per_op: taken.cpu_seconds * 1e6 / operations as f64,
            written_per_byte: (after.device_write_bytes - before.device_write_bytes) as f64 / bytes,
            read_per_byte: (after.device_read_bytes - before.device_read_bytes) as f64 / bytes,
        });
    }
    store.close()?;
    Ok(rows)
}

type Body = fn(&Settings, &Region) -> anyhow::Result<u64>;

/// The table of docs/results/engine.md.
pub fn table(results: &Results) -> String {
    let columns = [
        "k ops/s",
        "CPU us/op",
        "device bytes written per byte",
        "read",
    ];
    let mut text = heading("phase", &columns.map(str::to_owned));
    for row in &results.rows {
        text += &line([
            row.phase.clone(),
            format!("{:.1}", row.ops_per_second / 1e3),
            format!("{:.2}", row.cpu_us_per_op),
            format!("{:.2}", row.written_per_byte),
            format!("{:.2}", row.read_per_byte),
        ]);
    }
    text
}

/// Runs `each` for every number of 0..`count`, spread over the threads.
fn spread(
    settings: &Settings,
    count: u64,
    each: impl Fn(&mut dyn Iterator<Item = u64>) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..settings.threads)
            .map(|thread| {
                let each = &each;
                let step = settings.threads as usize;
                scope.spawn(move || each(&mut (thread..count).step_by(step)))
            })
            .collect();
        for thread in threads {
            match thread.join() {
                Ok(outcome) => outcome?,
                Err(_) => bail!("a thread panicked"),
            }
        }
        Ok(())
    })
}

fn insert(settings: &Settings, region: &Region) -> anyhow::Result<u64> {
    spread(settings, settings.records, |numbers| {
        let (mut name, mut value) = (Vec::new(), vec![0; settings.value_bytes as usize]);
        for n in numbers {
            key(n, &mut name);
            fill(n, &mut value);
            region.put(&name, &value)?;
        }
        Ok(())
    })?;
    Ok(settings.records)
}

fn get(settings: &Settings, region: &Region) -> anyhow::Result<u64> {
    spread(settings, settings.records, |numbers| {
        let mut name = Vec::new();
        for n in numbers {
            let wanted = hash(n ^ 0x5555) % settings.records;
            key(wanted, &mut name);
            ensure!(
                region.get_with(&name, number)? == Some(Some(wanted)),
                "a wrong value"
            );
        }
        Ok(())
    })?;
    Ok(settings.records)
}

fn multi_get(settings: &Settings, region: &Region) -> anyhow::Result<u64> {
    const DEPTH: u64 = 64;
    let rounds = settings.records / DEPTH / 2;
    spread(settings, rounds, |numbers| {
        let mut keys = vec![Vec::new(); DEPTH as usize];
        for round in numbers {
            let wanted = |at: u64| hash(round * DEPTH + at) % settings.records;
            for (at, name) in (0..).zip(&mut keys) {
                key(wanted(at), name);
            }
            for (at, value) in (0..).zip(region.multi_get(&keys)?) {
                ensure!(
                    value.and_then(|v| number(&v)) == Some(wanted(at)),
                    "a wrong value"
                );
            }
        }
        Ok(())
    })?;
    Ok(rounds * DEPTH)
}

fn scan(settings: &Settings, region: &Region) -> anyhow::Result<u64> {
    let (mut scan, seen) = (region.iter(), AtomicU64::new(0));
    while scan
        .next_with(|_, _| seen.fetch_add(1, Ordering::Relaxed))?
        .is_some()
    {}
    let seen = seen.into_inner();
    ensure!(seen == settings.records, "the scan saw {seen} records");
    Ok(seen)
}
