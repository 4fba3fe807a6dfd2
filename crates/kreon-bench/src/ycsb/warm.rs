//! Between a load and the workloads behind it, where everything fits in memory: brings it there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::mix::Mix;
use super::record;
use crate::engine::Engine;

/// Longest time that it may take.
const SECONDS_MAX: Duration = Duration::from_secs(20);

/// Gets every record once, unmeasured. A scan would be quicker, but some stores do not keep what only scans read.
///
/// # Errors
/// Of the store. What is missing or wrong is for the workloads to find.
pub fn warm(engine: &dyn Engine, mix: Mix, records: u64, threads: usize) -> anyhow::Result<()> {
    let (started, is_over) = (Instant::now(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..threads as u64)
            .map(|first| {
                let is_over = &is_over;
                scope.spawn(move || -> anyhow::Result<()> {
                    let mut key = Vec::new();
                    for number in (first..records).step_by(threads) {
                        record::key(mix, number, &mut key);
                        engine.get(&key, &mut |_| {})?;
                        if number % 1024 < threads as u64 && started.elapsed() > SECONDS_MAX {
                            is_over.store(true, Ordering::Relaxed);
                        }
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        for client in clients {
            let ended = client.join();
            ended.map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        Ok(())
    })
}
