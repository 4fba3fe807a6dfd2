//! The last minutes, second by second, for the charts of the page.

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::figures::memory_classes;
use crate::metrics::{Process, Totals};
use crate::shared::{Shared, unix_s};

const EVERY: Duration = Duration::from_secs(1);

/// What counts up, at one moment.
struct Counted {
    requests: u64,
    received_bytes: u64,
    sent_bytes: u64,
    cpu_s: f64,
    written_bytes: u64,
    read_bytes: u64,
    times_ns: Option<Histogram<u64>>,
}

impl Counted {
    fn new(totals: &Totals, process: &Process, store: &kreon::Stats) -> Self {
        Self {
            requests: totals.requests,
            received_bytes: totals.received_bytes,
            sent_bytes: totals.sent_bytes,
            cpu_s: process.user_s + process.system_s,
            written_bytes: store.device_write_bytes,
            read_bytes: store.device_read_bytes,
            times_ns: totals.times_ns(),
        }
    }

    /// Percentiles of the times since `earlier`, in microseconds; none if there was no request or the figures were reset.
    fn percentiles_us(&self, earlier: &Self) -> Option<[f64; 3]> {
        let mut times = self.times_ns.clone()?;
        times.subtract(earlier.times_ns.as_ref()?).ok()?;
        let us = |share| times.value_at_quantile(share) as f64 / 1000.0;
        (!times.is_empty()).then(|| [us(0.5), us(0.99), us(0.999)])
    }
}

/// Takes a sample each second until it is dropped.
pub(crate) async fn take_samples(shared: Arc<Shared>) {
    let mut clock = tokio::time::interval(EVERY);
    let mut earlier: Option<Counted> = None;
    loop {
        clock.tick().await;
        let (totals, process) = (shared.recorders.totals(), Process::now());
        let store = shared.keyspace.store().stats();
        let now = Counted::new(&totals, &process, &store);
        if let Some(earlier) = &earlier {
            shared.history.push(sample(&shared, earlier, &now, &store));
        }
        earlier = Some(now);
    }
}

fn sample(shared: &Shared, earlier: &Counted, now: &Counted, store: &kreon::Stats) -> Value {
    let live_bytes = store.collection.live_bytes;
    json!({
        "at_s": unix_s(),
        "requests": now.requests.saturating_sub(earlier.requests),
        "received_bytes": now.received_bytes.saturating_sub(earlier.received_bytes),
        "sent_bytes": now.sent_bytes.saturating_sub(earlier.sent_bytes),
        "cpu_s": (now.cpu_s - earlier.cpu_s).max(0.0),
        "written_bytes": now.written_bytes.saturating_sub(earlier.written_bytes),
        "read_bytes": now.read_bytes.saturating_sub(earlier.read_bytes),
        "times_us": now.percentiles_us(earlier),
        "clients": shared.clients.count(),
        "volume_bytes": store.volume_bytes,
        "live_bytes": live_bytes,
        "l0_bytes": store.l0_bytes,
        "memory": memory_classes(store),
    })
}
