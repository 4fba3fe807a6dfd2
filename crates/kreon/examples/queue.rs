//! A durable queue: `cargo run -p kreon --example queue -- [FILE]`.
//!
//! Keys are numbers that ascend, so the first pair is the oldest job. A job is taken away when it is done; if the process
//! dies before that, it is done again after the next start.

use kreon::{Durability, Region, Result, Store};

struct Queue {
    jobs: Region,
    next: u64,
}

impl Queue {
    fn open(store: &Store) -> Result<Self> {
        let jobs = store.region("jobs")?;
        let last = jobs.last()?.map(|(key, _)| number(&key));
        let next = last.map_or(0, |last| last + 1);
        Ok(Self { jobs, next })
    }

    /// Returns when the job survives a power cut.
    fn push(&mut self, job: &str) -> Result<()> {
        let key = self.next.to_be_bytes();
        self.next += 1;
        self.jobs.put_with(key, job, Durability::Sync)
    }

    /// Does the oldest job, if there is one.
    fn work(&self, done: impl FnOnce(&str)) -> Result<bool> {
        let Some((key, job)) = self.jobs.first()? else {
            return Ok(false);
        };
        done(&String::from_utf8_lossy(&job));
        // `first` does not read its way through what was taken away before.
        self.jobs.delete(&key)?;
        Ok(true)
    }
}

fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap_or_default())
}

fn main() -> Result<()> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "queue.kreon".into());
    let store = Store::open(&path)?;
    let mut queue = Queue::open(&store)?;
    for city in ["Chania", "Heraklion", "Rethymno"] {
        queue.push(&format!("count the people of {city}"))?;
    }
    while queue.work(|job| println!("done: {job}"))? {}
    store.close()
}
