//! One kind of calls of one store.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::store::{End, Load, Store};
use super::table::{Cpu, Kind, Sample};
use crate::meter::Meter;
use crate::ycsb::client::latencies;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Calls one at a time.
    pub calls: u64,
    /// Of many calls.
    pub seconds: f64,
    pub depth: u64,
    pub records: u64,
    pub value_bytes: usize,
}

impl Plan {
    fn many(&self, end: End) -> Load {
        Load {
            depth: self.depth,
            records: self.records,
            value_bytes: self.value_bytes,
            is_in_order: false,
            end,
        }
    }

    /// Has a store take all records.
    ///
    /// # Errors
    /// Of the store.
    pub fn load(&self, store: &mut dyn Store) -> Result<()> {
        let all = Load {
            is_in_order: true,
            ..self.many(End::After(self.records))
        };
        store.puts(&all)?;
        Ok(())
    }
}

/// Has `store` carry out calls of a kind.
///
/// # Errors
/// Of the store; a value that was acknowledged is missing.
pub fn measure(plan: &Plan, store: &mut dyn Store, kind: Kind) -> Result<Sample> {
    // What the phase before has left to be done, in all processes.
    std::thread::sleep(Duration::from_millis(300));
    let mut times = latencies()?;
    let (before, meter) = (store.servers().cpu_seconds()?, Meter::start());
    let many = plan.many(End::At(
        Instant::now() + Duration::from_secs_f64(plan.seconds),
    ));
    let (mut name, mut value) = (Vec::new(), Vec::new());
    let calls = match kind {
        Kind::PutAlone | Kind::GetAlone => {
            for n in 0..plan.calls {
                many.pair(n, &mut name, &mut value);
                let start = Instant::now();
                match kind {
                    Kind::PutAlone => store.put(&name, &value)?,
                    _ => ensure!(store.get(&name)?, "a value is missing"),
                }
                times.saturating_record(start.elapsed().as_nanos() as u64);
            }
            plan.calls
        }
        Kind::PutMany => store.puts(&many)?,
        Kind::GetMany => store.gets(&many)?,
    };
    let (taken, after) = (meter.stop(), store.servers().cpu_seconds()?);
    let each_us = |seconds: f64| seconds * 1e6 / calls.max(1) as f64;
    let us = |quantile: f64| times.value_at_quantile(quantile) as f64 / 1e3;
    Ok(Sample {
        kind,
        thousands_per_second: calls as f64 / taken.seconds / 1e3,
        p50_us: us(0.5),
        p99_us: us(0.99),
        cpu_us: Cpu {
            client: each_us(taken.cpu_seconds),
            primary: each_us(after.primary - before.primary),
            backup: each_us(after.backup - before.backup),
            others: each_us(after.others - before.others),
        },
    })
}
