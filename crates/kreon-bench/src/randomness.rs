//! How random transfers are: the metric R of `Kreon 4.4`.
//!
//! R is the mean distance between the end of a transfer and the start of the next, as a share of the volume, for each
//! 4 KiB that were transferred: 0 for a sequential pattern, a third for random transfers of 4 KiB, less for longer ones.

use serde::{Deserialize, Serialize};

/// The unit of the volume's length in the formula.
const PAGE_BYTES: f64 = 4096.0;

/// Sums over the transfers of one direction, or of both, as they come.
#[derive(Clone, Copy, Debug, Default)]
struct Pattern {
    /// Where the last one ended, and its length.
    last: Option<(u64, u64)>,
    /// Sum of `|next.offset - (this.offset + this.length)| + this.length`, in bytes.
    way_bytes: u128,
    /// Sum of `this.length`, in bytes.
    moved_bytes: u128,
}

impl Pattern {
    fn push(&mut self, offset: u64, len_bytes: u64) {
        if let Some((end, last_bytes)) = self.last {
            self.way_bytes += u128::from(offset.abs_diff(end) + last_bytes);
            self.moved_bytes += u128::from(last_bytes);
        }
        self.last = Some((offset + len_bytes, len_bytes));
    }

    fn value(&self, volume_bytes: u64) -> Option<f64> {
        let pages = volume_bytes as f64 / PAGE_BYTES;
        let divisor = pages * self.moved_bytes as f64;
        (divisor > 0.0).then(|| self.way_bytes as f64 / divisor)
    }
}

/// The pattern of transfers in their order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace {
    all: Pattern,
    reads: Pattern,
    writes: Pattern,
}

impl Trace {
    /// Notes a transfer that begins now.
    pub fn push(&mut self, offset: u64, len_bytes: u64, is_write: bool) {
        self.all.push(offset, len_bytes);
        match is_write {
            true => self.writes.push(offset, len_bytes),
            false => self.reads.push(offset, len_bytes),
        }
    }

    /// The metric over a volume of this length.
    pub fn randomness(&self, volume_bytes: u64) -> Randomness {
        Randomness {
            all: self.all.value(volume_bytes),
            reads: self.reads.value(volume_bytes),
            writes: self.writes.value(volume_bytes),
        }
    }
}

/// R of all transfers, of the reads, and of the writes; `None` of fewer than two transfers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Randomness {
    /// The paper's `R_t`.
    pub all: Option<f64>,
    /// The paper's `R_r`.
    pub reads: Option<f64>,
    /// The paper's `R_w`.
    pub writes: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::hash;

    /// R of the reads at these places, by the formula as the paper prints it.
    fn by_the_formula(transfers: &[(u64, u64)], volume_bytes: u64) -> f64 {
        let pairs = || transfers.windows(2);
        let above: f64 = pairs()
            .map(|pair| {
                let (this, next) = (pair[0], pair[1]);
                (next.0 as f64 - (this.0 + this.1) as f64).abs() + this.1 as f64
            })
            .sum();
        let below: f64 = pairs().map(|pair| pair[0].1 as f64).sum();
        above / (volume_bytes as f64 / 4096.0 * below)
    }

    fn of_reads(transfers: &[(u64, u64)], volume_bytes: u64) -> f64 {
        let mut trace = Trace::default();
        for (offset, len_bytes) in transfers {
            trace.push(*offset, *len_bytes, false);
        }
        trace.randomness(volume_bytes).reads.unwrap()
    }

    #[test]
    fn a_hand_made_trace_gives_the_value_worked_out_by_hand() {
        // Ways: |12288 - 4096| + 4096 = 12288, then |0 - 20480| + 8192 = 28672: 40960 in all. Moved: 4096 + 8192.
        // A volume of 10 pages: 40960 / (10 * 12288) = 1/3.
        let transfers = [(0, 4096), (12288, 8192), (0, 4096)];
        let value = of_reads(&transfers, 10 * 4096);
        assert!((value - 1.0 / 3.0).abs() < 1e-12, "{value}");
        assert!((value - by_the_formula(&transfers, 10 * 4096)).abs() < 1e-12);
    }

    #[test]
    fn sequential_and_random_patterns_give_what_the_paper_calibrates_with() {
        const VOLUME_BYTES: u64 = 1 << 30;
        let sequential: Vec<_> = (0..1000).map(|n| (n * 4096, 4096)).collect();
        assert!(of_reads(&sequential, VOLUME_BYTES) < 1e-5);
        let pages = VOLUME_BYTES / 4096;
        let random: Vec<_> = (0..20_000)
            .map(|n| (hash(n) % pages * 4096, 4096))
            .collect();
        let value = of_reads(&random, VOLUME_BYTES);
        assert!((value - 0.333).abs() < 0.01, "{value}");
        assert!((value - by_the_formula(&random, VOLUME_BYTES)).abs() < 1e-9);
    }

    #[test]
    fn directions_are_told_apart() {
        let mut trace = Trace::default();
        for n in 0..100 {
            // Each direction by itself is sequential; together they jump.
            trace.push(n * 4096, 4096, false);
            trace.push((1 << 29) + n * 4096, 4096, true);
        }
        let found = trace.randomness(1 << 30);
        assert!(found.reads.unwrap() < 1e-5 && found.writes.unwrap() < 1e-5);
        assert!((found.all.unwrap() - 0.5).abs() < 0.01, "{found:?}");
        let mut one = Trace::default();
        one.push(0, 4096, true);
        assert_eq!(one.randomness(1 << 30).writes, None);
    }
}
