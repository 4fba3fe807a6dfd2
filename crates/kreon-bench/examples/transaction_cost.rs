//! What transactions and updates cost beside the same reads and writes without them, in CPU time of one thread.
//! `cargo run --release --example transaction_cost -p kreon`

use kreon::{Durability, Isolation, Region, Result, Store, TransactionOptions, Update, WriteBatch};

const KEYS: u64 = 200_000;
const ROUNDS: u64 = 50_000;
/// Of each way, by turns; the quickest counts.
const TURNS: usize = 5;

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

const WAYS: [Way; 8] = [
    ("4 gets and a batch of 4", Bench::plain),
    ("snapshot, 4 + 4", |bench| {
        bench.transaction(Isolation::Snapshot)
    }),
    ("serializable, 4 + 4", |bench| {
        bench.transaction(Isolation::Serializable)
    }),
    ("4 gets and a batch of 4, beside a put", Bench::plain_beside),
    ("serializable, 4 + 4, beside a put", |bench| {
        bench.beside(Isolation::Serializable)
    }),
    ("get and put", Bench::get_and_put),
    ("update", Bench::update),
    ("serializable, 1 + 1", Bench::by_transaction),
];

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
    let mut best = [i64::MAX; WAYS.len()];
    for _ in 0..TURNS {
        for ((_, way), best) in WAYS.iter().zip(&mut best) {
            let begun = cpu_ns();
            for _ in 0..ROUNDS {
                way(&mut bench)?;
            }
            *best = (*best).min((cpu_ns() - begun) / ROUNDS as i64);
        }
    }
    for ((name, _), ns) in WAYS.iter().zip(best) {
        println!("{name:<40} {ns:>6} ns");
    }
    drop(bench);
    let _ = std::fs::remove_file(&path);
    Ok(())
}
