//! One line of the table: a workload at a depth, in slices of the store and of the bare device by turns.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use kvell::{Region, Store};

use super::command::Settings;
use super::plan::{Step, steps};
use super::raw::RawFile;
use super::requests::Requests;
use crate::meter::{Meter, Taken};
use crate::ycsb::choice::Distribution;
use crate::ycsb::client::latencies;
use crate::ycsb::workload::Workload;

/// What is measured.
pub struct Cell {
    /// Shares of reads and updates.
    pub workload: Workload,
    /// Whom they ask for.
    pub distribution: Distribution,
    /// Requests, and bare transfers, in flight.
    pub depth: usize,
    /// Time of the bare transfers over that of the store, of each pair of slices.
    pub shares: Vec<f64>,
    /// The slices of the store.
    pub store: Side,
    /// Those of the bare device.
    pub raw: Side,
    /// Reads and writes that the store has made, and the bare device with it.
    pub transfers: u64,
    /// Flushes, of either.
    pub flushes: u64,
}

/// The store's slices, or those of the bare device.
pub struct Side {
    /// Of all slices.
    pub seconds: f64,
    /// CPU time of the whole process, the requests' own included.
    pub cpu_seconds: f64,
    /// Of requests, or of transfers and flushes, in ns.
    pub latencies: Histogram<u64>,
}

impl Side {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            seconds: 0.0,
            cpu_seconds: 0.0,
            latencies: latencies()?,
        })
    }

    fn add(&mut self, taken: &Taken) {
        self.seconds += taken.seconds;
        self.cpu_seconds += taken.cpu_seconds;
    }
}

impl Cell {
    /// Measures a cell; the store is warmed up with its own requests first.
    ///
    /// # Errors
    /// Of the store or the device, or if an answer is wrong.
    pub fn measure(
        settings: &Settings,
        (store, region, raw): (&Store, &Region, &RawFile),
        (workload, distribution, depth): (Workload, Distribution, usize),
    ) -> anyhow::Result<Self> {
        let mut requests = Requests::new(
            (store, region),
            (workload, distribution),
            (settings.mix, settings.records()),
            settings.durability(),
            settings.seed,
        );
        let mut queue = raw.queue(depth, settings.seed);
        let warm = Instant::now() + Duration::from_secs_f64(settings.warm_seconds);
        requests.run(depth, warm, &mut latencies()?)?;
        store.sync()?;
        let mut cell = Self {
            workload,
            distribution,
            depth,
            shares: Vec::new(),
            store: Side::new()?,
            raw: Side::new()?,
            transfers: 0,
            flushes: 0,
        };
        while cell.store.seconds < settings.seconds {
            let before = store.stats().device;
            let meter = Meter::start();
            let end = Instant::now() + Duration::from_millis(settings.slice_ms);
            requests.run(depth, end, &mut cell.store.latencies)?;
            // What is left would come into the slice of the bare device.
            store.sync()?;
            let stored = meter.stop();
            let steps = steps(&before, &store.stats().device, raw.block_bytes());
            let meter = Meter::start();
            queue.run(&steps, &mut cell.raw.latencies)?;
            cell.add(&steps, &stored, &meter.stop());
        }
        Ok(cell)
    }

    fn add(&mut self, steps: &[Step], stored: &Taken, bare: &Taken) {
        let flushes = steps.iter().filter(|step| **step == Step::Flush).count();
        self.flushes += flushes as u64;
        self.transfers += (steps.len() - flushes) as u64;
        self.shares.push(bare.seconds / stored.seconds);
        self.store.add(stored);
        self.raw.add(bare);
    }
}
