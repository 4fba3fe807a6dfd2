//! The command.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::ensure;
use kreon_device::{Device, FileDevice, FileOptions};
use kvell::{Durability, Options, Region, Store};

use super::cell::Cell;
use super::raw::RawFile;
use super::table::HEAD;
use crate::engine::Kind;
use crate::run::parent::Scratch;
use crate::ycsb::choice::Distribution;
use crate::ycsb::mix::Mix;
use crate::ycsb::record;
use crate::ycsb::workload::Workload;

/// Records that are loaded by one call.
const TOGETHER: u64 = 1024;

/// Bytes of data for each byte of memory: the paper's cells.
const DATA_OVER_MEMORY: u64 = 3;

/// Bytes of an extent of the store.
const EXTENT_BYTES: u64 = 1 << 20;

/// What is measured.
#[derive(clap::Args)]
pub struct Settings {
    /// The store: kvell.
    #[arg(long, value_enum, default_value = "kvell")]
    engine: Kind,
    /// Workloads of reads and updates: a, b, c, c_uniform, f.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "a,b,c")]
    workloads: Vec<Workload>,
    /// Whom requests ask for.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "uniform,zipfian"
    )]
    distributions: Vec<Distribution>,
    /// Requests, and bare transfers, in flight. Two workers of the store have up to 128 transfers in flight of their own accord.
    #[arg(long, value_delimiter = ',', default_value = "64,128", value_parser = clap::value_parser!(u64).range(1..=1024))]
    depths: Vec<u64>,
    /// MiB of keys and values. Memory is a third of that.
    #[arg(long, default_value_t = 192, value_parser = clap::value_parser!(u64).range(12..))]
    data_mib: u64,
    /// Sizes of the pairs.
    #[arg(long, value_enum, default_value = "k")]
    pub mix: Mix,
    /// Seconds of the store's slices for each line; those of the bare device take about as long.
    #[arg(long, default_value_t = 3.0)]
    pub seconds: f64,
    /// Seconds of a line's requests before they are measured.
    #[arg(long, default_value_t = 1.0)]
    pub warm_seconds: f64,
    /// Milliseconds of a slice: long beside the ends of what is in flight, short beside changes of a shared machine.
    #[arg(long, default_value_t = 100)]
    pub slice_ms: u64,
    /// Threads of the store that do the I/O; its own choice if not given.
    #[arg(long)]
    workers: Option<usize>,
    /// Each update is durable when it is answered; otherwise the device has it then, as in the paper.
    #[arg(long)]
    sync: bool,
    /// Of all draws.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder for the store; a new one in the current folder, deleted afterwards, if not given.
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Settings {
    /// Records of the store.
    pub fn records(&self) -> u64 {
        ((self.data_mib << 20) as f64 / self.mix.pair_bytes_mean()) as u64
    }

    /// Of updates.
    pub fn durability(&self) -> Durability {
        match self.sync {
            true => Durability::Sync,
            false => Durability::Buffered,
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        let name = self.engine.name();
        ensure!(self.engine == Kind::Kvell, "no share of {name} is measured");
        for workload in &self.workloads {
            use Workload::{A, B, C, CUniform, F};
            let name = workload.name();
            ensure!(
                matches!(workload, A | B | C | CUniform | F),
                "{name} does not only read and update"
            );
        }
        Ok(())
    }
}

/// Loads a store and prints the table.
///
/// # Errors
/// If the store or the file system fails, or an answer is wrong.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    settings.check()?;
    let scratch = Scratch::new(settings.dir.as_deref())?;
    let file = FileOptions {
        create: true,
        ..FileOptions::default()
    };
    let device = FileDevice::open(scratch.0.join("store.kvell"), &file)?.0;
    let options = Options {
        memory_bytes: ((settings.data_mib << 20) / DATA_OVER_MEMORY) as usize,
        workers: settings.workers,
        ..Options::default()
    };
    let store = options.open_on(Arc::new(device) as Arc<dyn Device>)?;
    let region = store.region("usertable")?;
    load(settings, &region)?;
    store.sync()?;
    let raw = RawFile::new(&scratch.0.join("raw"), store.stats().extents * EXTENT_BYTES)?;
    println!(
        "{} records of {:.0} B, {} MiB of memory, updates {}, {}\n\n{HEAD}",
        settings.records(),
        settings.mix.pair_bytes_mean(),
        options.memory_bytes >> 20,
        match settings.sync {
            true => "durable",
            false => "buffered",
        },
        match raw.is_direct() {
            true => "direct I/O",
            false => "BUFFERED I/O: the page cache is measured, not the device",
        },
    );
    for distribution in &settings.distributions {
        for workload in &settings.workloads {
            for depth in &settings.depths {
                let what = (*workload, *distribution, *depth as usize);
                let cell = Cell::measure(settings, (&store, &region, &raw), what)?;
                println!("{}", cell.line());
            }
        }
    }
    println!("\n{}", memory(&store));
    drop(region);
    Ok(store.close()?)
}

/// What the index takes, beside the paper's.
fn memory(store: &Store) -> String {
    let stats = store.stats();
    format!(
        "index: {:.1} bytes a key, whole keys up to 32 B (paper: 19 with 8 B of each key, `KVell 5.3`); {} MiB in use",
        stats.index_bytes as f64 / stats.keys.max(1) as f64,
        stats.memory_bytes >> 20
    )
}

fn load(settings: &Settings, region: &Region) -> anyhow::Result<()> {
    let records = settings.records();
    let mut first = 0;
    while first < records {
        let end = records.min(first + TOGETHER);
        let pairs = (first..end).map(|number| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            record::key(settings.mix, number, &mut key);
            record::value(settings.mix, number, 0, &mut value);
            (key, Some(value))
        });
        let pairs: Vec<_> = pairs.collect();
        region.write_many(&pairs, Durability::Buffered)?;
        first = end;
    }
    Ok(())
}
