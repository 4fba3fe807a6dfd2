//! Requests of one thread, many in flight, as futures of the store.

use std::future::Future;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use futures_util::{StreamExt, stream::FuturesUnordered};
use hdrhistogram::Histogram;
use kvell::{Durability, Region, Store};

use crate::keys::hash;
use crate::ycsb::choice::{Chooser, Distribution};
use crate::ycsb::mix::Mix;
use crate::ycsb::record;
use crate::ycsb::workload::{Request, Workload};

/// What is asked for.
pub struct Requests<'a> {
    store: &'a Store,
    region: &'a Region,
    workload: Workload,
    mix: Mix,
    chooser: Chooser,
    records: u64,
    durability: Durability,
    draws: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> Requests<'a> {
    /// Requests for the first `records` records, which exist.
    pub fn new(
        (store, region): (&'a Store, &'a Region),
        (workload, distribution): (Workload, Distribution),
        (mix, records): (Mix, u64),
        durability: Durability,
        seed: u64,
    ) -> Self {
        Self {
            store,
            region,
            workload,
            mix,
            chooser: Chooser::new(distribution, records),
            records,
            durability,
            draws: hash(seed),
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Keeps `depth` requests in flight until `end`, then waits for those. Notes how long each took, in ns.
    ///
    /// # Errors
    /// Of the store, or if an answer is wrong.
    pub fn run(
        &mut self,
        depth: usize,
        end: Instant,
        latencies: &mut Histogram<u64>,
    ) -> anyhow::Result<()> {
        self.store.drive(async {
            let mut under_way: FuturesUnordered<_> = (0..depth).map(|_| self.begin()).collect();
            while let Some(started) = under_way.next().await {
                let now = Instant::now();
                latencies.saturating_record(((now - started?).as_nanos() as u64).max(1));
                if now < end {
                    under_way.push(self.begin());
                }
            }
            Ok(())
        })?
    }

    /// Begins a request. Its future tells when that was.
    fn begin(&mut self) -> impl Future<Output = anyhow::Result<Instant>> + use<'a> {
        let request = self.workload.request(self.draw() % 100);
        let uniform = (self.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        let number = self.chooser.choose(self.records, uniform);
        let version = self.draw() as u32;
        let (region, mix, durability) = (self.region, self.mix, self.durability);
        record::key(mix, number, &mut self.key);
        let (reads, writes) = match request {
            Request::ReadModifyWrite => (true, true),
            Request::Update | Request::Insert => (false, true),
            Request::Read | Request::Scan => (true, false),
        };
        if writes {
            record::value(mix, number, version, &mut self.value);
        }
        let started = Instant::now();
        let get = reads.then(|| region.get_async(&self.key));
        let put = (!reads).then(|| region.put_async(&self.key, &self.value, durability));
        let later = (reads && writes).then(|| (self.key.clone(), self.value.clone()));
        async move {
            if let Some(get) = get {
                let value = get.await?.context("a record is missing")?;
                ensure!(record::is_value(mix, number, &value), "a wrong value");
            }
            if let Some(put) = put {
                put.await?;
            }
            if let Some((key, value)) = later {
                region.put_async(key, value, durability).await?;
            }
            Ok(started)
        }
    }

    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash(self.draws)
    }
}
