//! What packed values cost and save: CPU time of the process for each put, get and pair of a scan, and bytes of the log for
//! each value; of documents, which can be packed, and of noise, which cannot.
//! `cargo run --release -p kreon-bench --example compression_cost [VALUE_BYTES]`

use kreon::{Compression, Region, RegionOptions, Result, Store};

const KEYS: u64 = 50_000;
/// Of each region, by turns; the median counts.
const ROUNDS: usize = 9;
/// Calls of a round.
const CALLS: u64 = 20_000;

const CODECS: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// A list of accounts as JSON.
fn document(dice: &mut Dice, bytes: usize) -> Vec<u8> {
    const NAMES: [&str; 5] = ["anna", "bert", "carla", "dimitris", "eleni"];
    let mut text = Vec::with_capacity(bytes + 100);
    while text.len() < bytes {
        let name = NAMES[dice.roll() as usize % NAMES.len()];
        let (id, cents, active) = (
            dice.roll() % 100_000,
            dice.roll() % 1_000_000,
            dice.roll() % 2,
        );
        text.extend(
            format!(
                "{{\"id\":{id},\"name\":\"{name}\",\"city\":\"chania\",\"balance\":{}.{:02},\"active\":{}}},",
                cents / 100,
                cents % 100,
                active == 0
            )
            .bytes(),
        );
    }
    text.truncate(bytes);
    text
}

fn noise(dice: &mut Dice, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| (dice.roll() >> 32) as u8).collect()
}

type Kind = (&'static str, fn(&mut Dice, usize) -> Vec<u8>);

const KINDS: [Kind; 2] = [("documents", document), ("noise", noise)];

/// CPU time of all threads in ns.
fn cpu_ns() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

struct Bench {
    region: Region,
    dice: Dice,
    /// Values to put.
    values: Vec<Vec<u8>>,
}

impl Bench {
    fn key(&mut self) -> [u8; 8] {
        (self.dice.roll() % KEYS).to_be_bytes()
    }

    fn put(&mut self) -> Result<()> {
        for number in 0..CALLS {
            let key = self.key();
            let value = &self.values[number as usize % self.values.len()];
            self.region.put(key, value)?;
        }
        Ok(())
    }

    fn get(&mut self) -> Result<()> {
        for _ in 0..CALLS {
            let key = self.key();
            let length = self.region.get_with(key, <[u8]>::len)?;
            std::hint::black_box(length);
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<()> {
        for _ in 0..CALLS / 100 {
            let key = self.key();
            let mut scan = self.region.range(&key[..]..).limit(100);
            while scan.next_with(|_, value| value.len())?.is_some() {}
        }
        Ok(())
    }
}

fn median(mut all: Vec<i64>) -> i64 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

/// CPU time of each call in ns, of each bench.
fn measured(benches: &mut [Bench], call: fn(&mut Bench) -> Result<()>) -> Result<Vec<i64>> {
    let mut took = vec![Vec::new(); benches.len()];
    for _ in 0..ROUNDS {
        for (bench, took) in benches.iter_mut().zip(&mut took) {
            let begun = cpu_ns();
            call(bench)?;
            took.push((cpu_ns() - begun) / CALLS as i64);
        }
    }
    Ok(took.into_iter().map(median).collect())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let bytes = std::env::args()
        .nth(1)
        .map_or(Ok(1024), |text| text.parse())?;
    println!(
        "values of {bytes} bytes, {KEYS} keys, in memory; median of {ROUNDS} rounds of {CALLS} calls"
    );
    println!("values      codec   log bytes/value   put ns   get ns   scanned pair ns");
    for (name, value) in KINDS {
        let folder = tempfile::tempdir_in(".")?;
        let store = Store::options()
            .memory_bytes(1 << 30)
            .open(folder.path().join("store"))?;
        let (mut benches, mut stored) = (Vec::new(), Vec::new());
        for codec in CODECS {
            let options = RegionOptions::new().compression(codec);
            let region = store.region_with(codec.name(), &options)?;
            let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
            let before = store.stats().log_live_bytes;
            for key in 0..KEYS {
                region.put(key.to_be_bytes(), value(&mut dice, bytes))?;
            }
            store.checkpoint()?;
            stored.push((store.stats().log_live_bytes - before) / KEYS);
            let values = (0..1000).map(|_| value(&mut dice, bytes)).collect();
            benches.push(Bench {
                region,
                dice,
                values,
            });
        }
        let (gets, scans) = (
            measured(&mut benches, Bench::get)?,
            measured(&mut benches, Bench::scan)?,
        );
        let puts = measured(&mut benches, Bench::put)?;
        for (at, codec) in CODECS.iter().enumerate() {
            println!(
                "{name:<11} {:<6} {:>16} {:>8} {:>8} {:>17}",
                codec.name(),
                stored[at],
                puts[at],
                gets[at],
                scans[at]
            );
        }
    }
    Ok(())
}
