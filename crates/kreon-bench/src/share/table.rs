//! The table of shares, beside what the paper tells.

use hdrhistogram::Histogram;

use super::cell::Cell;
use crate::report::summary::median;

/// Share of the device's rate from which on the paper's claim counts as reached: the paper has 0.98 in workload A
/// (`KVell 6.3.1`), on a machine whose processor does not limit it.
pub const SHARE_MIN: f64 = 0.90;

/// The longest request may take so many times the longest bare transfer.
pub const LONGEST_MAX: f64 = 2.0;

/// Head of the table.
pub const HEAD: &str = "\
    | workload | keys | depth | k requests/s | transfers, flushes a request | share of raw, quartiles | paper | | request p50, p99, max us | raw p50, p99, max us | max over raw | | CPU us a request | CPU us a raw transfer |\n\
    |---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

impl Cell {
    /// Its line.
    pub fn line(&self) -> String {
        let requests = self.store.latencies.len().max(1) as f64;
        let steps = self.raw.latencies.len().max(1) as f64;
        let share = self.share();
        let longest = self.longest();
        let [low, high] = [0.25, 0.75].map(|at| quantile(&self.shares, at));
        format!(
            "| {} | {} | {} | {:.1} | {:.2}, {:.4} | {share:.2}, {low:.2}-{high:.2} | 0.98 | {} | {} | {} | {longest:.1} | {} | {:.1} | {:.1} |",
            self.workload.name(),
            self.distribution.name(),
            self.depth,
            requests / self.store.seconds / 1e3,
            self.transfers as f64 / requests,
            self.flushes as f64 / requests,
            verdict(share >= SHARE_MIN),
            times(&self.store.latencies),
            times(&self.raw.latencies),
            verdict(longest <= LONGEST_MAX),
            self.store.cpu_seconds * 1e6 / requests,
            self.raw.cpu_seconds * 1e6 / steps,
        )
    }

    /// The median over all pairs of slices.
    fn share(&self) -> f64 {
        median(self.shares.iter().copied())
    }

    /// The longest request over the longest bare transfer.
    fn longest(&self) -> f64 {
        self.store.latencies.max() as f64 / self.raw.latencies.max().max(1) as f64
    }
}

fn verdict(is_reached: bool) -> &'static str {
    match is_reached {
        true => "reached",
        false => "not reached",
    }
}

fn times(latencies: &Histogram<u64>) -> String {
    let us = |at| latencies.value_at_percentile(at) as f64 / 1e3;
    format!("{:.0}, {:.0}, {:.0}", us(50.0), us(99.0), us(100.0))
}

/// The value below which there is such a part of all.
fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_those_of_the_order() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&values, 0.25), 2.0);
        assert_eq!(quantile(&values, 0.75), 4.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
