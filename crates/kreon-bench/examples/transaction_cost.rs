//! What transactions and updates cost beside the same reads and writes without them: CPU time of the one thread, and how
//! many a second. `cargo run --release -p kreon-bench --example transaction_cost`

use std::time::Instant;

use kreon::{Durability, Isolation, Region, Result, Store, TransactionOptions, Update, WriteBatch};

const KEYS: u64 = 200_000;
/// Of each way, by turns; the median counts.
const ROUNDS: usize = 15;
/// Calls of a round.
const CALLS: u64 = 4000;

struct Bench {
    store: Store,
    region: Region,
    dice: u64,
}

impl Bench {
    fn key(&mut self) -> [u8; 8] {
        self.dice = self
            .dice
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.dice >> 33) % KEYS).to_be_bytes()
    }

    fn plain(&mut self) -> Result<()> {
        let mut batch = WriteBatch::new();
        for _ in 0..4 {
            let key = self.key();
            let value = self.region.get(key)?.unwrap_or_default();
            batch.put(&self.region, key, value);
        }
        self.store.write(batch, Durability::Buffered)
    }

    fn transaction(&mut self, isolation: Isolation) -> Result<()> {
        let options = TransactionOptions::default().isolation(isolation);
        let mut transaction = self.store.transaction_with(options);
        for _ in 0..4 {
            let key = self.key();
            let value = transaction.get(&self.region, key)?.unwrap_or_default();
            transaction.put(&self.region, key, value)?;
        }
        transaction.commit(Durability::Buffered)
    }

    /// The same beside a put by somebody else, without which a commit need not look for changes.
    fn beside(&mut self, isolation: Isolation) -> Result<()> {
        let options = TransactionOptions::default().isolation(isolation);
        let mut transaction = self.store.transaction_with(options);
        for _ in 0..4 {
            let key = self.key();
            let value = transaction.get(&self.region, key)?.unwrap_or_default();
            transaction.put(&self.region, key, value)?;
        }
        self.region.put("somebody else's", [1; 100])?;
        transaction.commit(Durability::Buffered)
    }

    fn plain_beside(&mut self) -> Result<()> {
        self.region.put("somebody else's", [1; 100])?;
        self.plain()
    }

    fn get_and_put(&mut self) -> Result<()> {
        let key = self.key();
        let value = self.region.get(key)?.unwrap_or_default();
        self.region.put(key, value)
    }

    fn update(&mut self) -> Result<()> {
        let key = self.key();
        let same = |old: Option<&[u8]>| Update::Put(old.unwrap_or_default().to_vec());
        self.region.update(key, same).map(drop)
    }

    fn by_transaction(&mut self) -> Result<()> {
        let mut transaction = self.store.transaction();
        let key = self.key();
        let value = transaction.get(&self.region, key)?.unwrap_or_default();
        transaction.put(&self.region, key, value)?;
        transaction.commit(Durability::Buffered)
    }
}

fn cpu_ns() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

type Way = (&'static str, fn(&mut Bench) -> Result<()>);

/// In groups: the others are compared with the first.
const GROUPS: [&[Way]; 3] = [
    &[
        ("4 gets and a batch of 4", Bench::plain),
        ("snapshot, 4 + 4", |bench| {
            bench.transaction(Isolation::Snapshot)
        }),
        ("serializable, 4 + 4", |bench| {
            bench.transaction(Isolation::Serializable)
        }),
    ],
    &[
        ("4 gets and a batch of 4, beside a put", Bench::plain_beside),
        ("serializable, 4 + 4, beside a put", |bench| {
            bench.beside(Isolation::Serializable)
        }),
    ],
    &[
        ("get and put", Bench::get_and_put),
        ("update", Bench::update),
        ("serializable, 1 + 1", Bench::by_transaction),
    ],
];

/// What a round took: CPU time of the thread, and time, in ns for each.
#[derive(Clone, Copy, Default)]
struct Took {
    cpu: i64,
    wall: i64,
}

fn median(took: &[Took], of: fn(&Took) -> i64) -> i64 {
    let mut all: Vec<_> = took.iter().map(of).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

fn round(bench: &mut Bench, way: fn(&mut Bench) -> Result<()>) -> Result<Took> {
    let (begun, cpu) = (Instant::now(), cpu_ns());
    for _ in 0..CALLS {
        way(bench)?;
    }
    Ok(Took {
        cpu: (cpu_ns() - cpu) / CALLS as i64,
        wall: begun.elapsed().as_nanos() as i64 / CALLS as i64,
    })
}

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("kreon-cost-{}", std::process::id()));
    let store = Store::options().memory_bytes(1 << 30).open(&path)?;
    let region = store.region("r")?;
    for key in 0..KEYS {
        region.put(key.to_be_bytes(), [7; 100])?;
    }
    let mut bench = Bench {
        store,
        region,
        dice: 1,
    };
    let mut took = GROUPS.map(|group| vec![Vec::new(); group.len()]);
    // Interleaved: what else the machine does befalls all of them.
    for _ in 0..ROUNDS {
        for (group, took) in GROUPS.iter().zip(&mut took) {
            for ((_, way), took) in group.iter().zip(took) {
                took.push(round(&mut bench, *way)?);
            }
        }
    }
    println!("medians of {ROUNDS} interleaved rounds of {CALLS}");
    println!(
        "{:<40} {:>8} {:>6} {:>10} {:>6}",
        "", "CPU ns", "x", "a second", "x"
    );
    for (group, took) in GROUPS.iter().zip(&took) {
        let mut first = None;
        for ((name, _), took) in group.iter().zip(took) {
            let (cpu, wall) = (
                median(took, |took| took.cpu),
                median(took, |took| took.wall),
            );
            let (of_cpu, of_wall) = *first.get_or_insert((cpu, wall));
            println!(
                "{name:<40} {cpu:>8} {:>6.2} {:>10} {:>6.2}",
                cpu as f64 / of_cpu as f64,
                1_000_000_000 / wall.max(1),
                of_wall as f64 / wall as f64,
            );
        }
    }
    drop(bench);
    let _ = std::fs::remove_file(&path);
    Ok(())
}
