//! Which record a request asks for.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::zipf::{Zipf, permute, spread};

/// How requests spread over the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Distribution {
    /// YCSB's scrambled Zipfian, 0.99 over ten billion items hashed to the records.
    Zipfian,
    /// A true Zipfian, 0.99 over the records.
    TrueZipfian,
    /// All records alike.
    Uniform,
    /// The newest records most often, by a Zipfian over their age.
    Latest,
}

impl Distribution {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zipfian => "zipfian",
            Self::TrueZipfian => "true-zipfian",
            Self::Uniform => "uniform",
            Self::Latest => "latest",
        }
    }
}

/// Records that exist: what was loaded, and what the clients insert.
pub struct Records {
    /// The next number to insert.
    next: AtomicU64,
    /// For each client the number that it is inserting; [`u64::MAX`] if none.
    inserting: Vec<AtomicU64>,
}

impl Records {
    /// `loaded` records are there.
    pub fn new(loaded: u64, clients: usize) -> Self {
        Self {
            next: AtomicU64::new(loaded),
            inserting: (0..clients).map(|_| AtomicU64::new(u64::MAX)).collect(),
        }
    }

    /// A number for a record that `client` inserts; it counts as there after [`Self::inserted`].
    pub fn begin(&self, client: usize) -> u64 {
        // A bound that holds before the number is known, so that nobody takes it for inserted in between.
        self.inserting[client].store(self.next.load(Ordering::SeqCst), Ordering::SeqCst);
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        self.inserting[client].store(number, Ordering::SeqCst);
        number
    }

    /// What `client` began is there.
    pub fn inserted(&self, client: usize) {
        self.inserting[client].store(u64::MAX, Ordering::SeqCst);
    }

    /// All records below this are there.
    pub fn there(&self) -> u64 {
        // First the next number: who begins later inserts that or a higher one.
        let next = self.next.load(Ordering::SeqCst);
        let begun = self
            .inserting
            .iter()
            .map(|n| n.load(Ordering::SeqCst))
            .min();
        begun.unwrap_or(u64::MAX).min(next)
    }
}

/// Chooses records.
#[derive(Clone, Copy)]
pub struct Chooser {
    distribution: Distribution,
    zipf: Zipf,
}

impl Chooser {
    /// For `records` records.
    pub fn new(distribution: Distribution, records: u64) -> Self {
        let zipf = match distribution {
            Distribution::Zipfian => Zipf::scrambled(),
            Distribution::TrueZipfian | Distribution::Latest => Zipf::new(records),
            // Not used.
            Distribution::Uniform => Zipf::new(1),
        };
        Self { distribution, zipf }
    }

    /// One of the first `there` records; `uniform` is from 0 to below 1.
    pub fn choose(&self, there: u64, uniform: f64) -> u64 {
        let there = there.max(1);
        match self.distribution {
            Distribution::Uniform => ((uniform * there as f64) as u64).min(there - 1),
            Distribution::Zipfian => spread(self.zipf.rank(uniform), there),
            Distribution::TrueZipfian => permute(self.zipf.rank(uniform), there),
            Distribution::Latest => there - 1 - self.zipf.rank(uniform).min(there - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_there_in_order_of_their_numbers() {
        let records = Records::new(10, 2);
        let (first, second) = (records.begin(0), records.begin(1));
        assert_eq!((first, second), (10, 11));
        records.inserted(1);
        assert_eq!(records.there(), 10, "10 is not there yet");
        records.inserted(0);
        assert_eq!(records.there(), 12);
    }

    #[test]
    fn every_choice_exists() {
        use Distribution::{Latest, TrueZipfian, Uniform, Zipfian};
        for distribution in [Zipfian, TrueZipfian, Uniform, Latest] {
            let chooser = Chooser::new(distribution, 100);
            for there in [1, 2, 100, 150] {
                for uniform in [0.0, 0.5, 0.99, 0.999_999_9] {
                    assert!(chooser.choose(there, uniform) < there);
                }
            }
        }
    }

    #[test]
    fn the_newest_come_most_often() {
        let chooser = Chooser::new(Distribution::Latest, 1000);
        assert_eq!(chooser.choose(1000, 0.0), 999);
        assert!(chooser.choose(1000, 0.2) > 990);
    }
}
