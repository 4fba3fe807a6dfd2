//! Whether every record has the value that was written last.

use crate::engine::Engine;
use crate::keys::hash;
use crate::ycsb::client::Failures;
use crate::ycsb::mix::Mix;
use crate::ycsb::record;

/// What the store must hold.
pub struct Expected {
    /// Sizes.
    pub mix: Mix,
    /// Of each writer, of its records in their order: the version that was written last.
    pub versions: Vec<Vec<u32>>,
}

impl Expected {
    fn records(&self) -> u64 {
        self.versions.iter().map(|own| own.len() as u64).sum()
    }

    fn version(&self, number: u64) -> Option<u32> {
        let of = self.versions.len() as u64;
        let own = self.versions.get((number % of) as usize)?;
        own.get((number / of) as usize).copied()
    }

    fn is_right(&self, number: u64, value: &[u8]) -> bool {
        record::is_value(self.mix, number, value)
            && record::version(value).is_some_and(|told| self.version(number) == Some(told))
    }

    /// Looks for `gets` records, then scans all of them.
    ///
    /// # Errors
    /// Of the store.
    pub fn check(&self, engine: &dyn Engine, gets: u64, seed: u64) -> anyhow::Result<Failures> {
        let mut failures = Failures::default();
        let records = self.records();
        let mut key = Vec::new();
        for n in 0..gets.min(records) {
            let number = hash(seed ^ n) % records;
            record::key(self.mix, number, &mut key);
            let mut is_right = false;
            let found = engine.get(&key, &mut |value| is_right = self.is_right(number, value))?;
            match (found, is_right) {
                (false, _) => failures.missing += 1,
                (true, false) => failures.wrong += 1,
                (true, true) => continue,
            }
            let what = if found {
                "is not what was written last"
            } else {
                "was not found"
            };
            failures
                .first
                .get_or_insert_with(|| format!("record {number} {what}"));
        }
        self.scan(engine, &mut failures)?;
        Ok(failures)
    }

    /// Every record once, in order, with the value that was written last.
    fn scan(&self, engine: &dyn Engine, failures: &mut Failures) -> anyhow::Result<()> {
        let (mut last, mut is_sorted, mut wrong) = (Vec::new(), true, 0);
        // One more than there may be, so that too many are noticed.
        let shown = engine.scan(b"user", self.records() as usize + 1, &mut |key, value| {
            is_sorted &= last.as_slice() < key;
            let number = record::number_of(self.mix, key);
            wrong += u64::from(!number.is_some_and(|number| self.is_right(number, value)));
            last.clear();
            last.extend_from_slice(key);
        })? as u64;
        failures.wrong += wrong;
        failures.missing += self.records().saturating_sub(shown);
        failures.unsorted += u64::from(!is_sorted) + shown.saturating_sub(self.records());
        if wrong > 0 || shown != self.records() || !is_sorted {
            failures.first.get_or_insert_with(|| {
                let all = self.records();
                format!(
                    "a scan of {all} records: {shown}, {wrong} of them wrong, sorted: {is_sorted}"
                )
            });
        }
        Ok(())
    }
}
