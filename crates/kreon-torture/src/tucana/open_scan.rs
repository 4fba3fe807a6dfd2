//! A scan that goes on while keys are changed. Keys that nobody changes meanwhile are shown as they are, all of them and in their
//! order; of the others any value.

use std::collections::BTreeSet;
use std::ops::Range;

use ::tucana::{Direction, Result};

use super::compare::{Wrong, shown};
use super::model::{Pairs, Written};
use super::regions::MergedScan;

pub(super) struct OpenScan {
    scan: MergedScan,
    direction: Direction,
    /// Numbers of keys that may come yet.
    rest: Range<usize>,
    /// Keys that were changed since it began.
    changed: BTreeSet<usize>,
}

impl OpenScan {
    pub fn new(scan: MergedScan, direction: Direction, rest: Range<usize>) -> Self {
        Self {
            scan,
            direction,
            rest,
            changed: BTreeSet::new(),
        }
    }

    pub fn was_changed(&mut self, key: usize) {
        self.changed.insert(key);
    }

    /// Takes a pair. Whether there was one.
    pub fn step(
        &mut self,
        keys: &[Vec<u8>],
        pairs: &Pairs,
    ) -> Result<std::result::Result<bool, Wrong>> {
        let Some(pair) = self.scan.next() else {
            let rest = self.rest.clone();
            return Ok(self.passed(rest, pairs).map(|()| false));
        };
        let (key, value) = pair?;
        Ok(self.judge((&key, &value), keys, pairs).map(|()| true))
    }

    fn judge(
        &mut self,
        (key, value): (&[u8], &[u8]),
        keys: &[Vec<u8>],
        pairs: &Pairs,
    ) -> std::result::Result<(), Wrong> {
        let number = keys.binary_search_by(|known| known[..].cmp(key));
        let number = number.map_err(|_| format!("a scan shows {}", shown(key)))?;
        let Range { start, end } = self.rest.clone();
        if !(start..end).contains(&number) {
            return Err(format!(
                "a {:?} scan shows key {number} though only {start}..{end} may come",
                self.direction
            ));
        }
        let passed = match self.direction {
            Direction::Forward => start..number,
            Direction::Reverse => number + 1..end,
        };
        self.passed(passed, pairs)?;
        let found = Written::of(value)?;
        if !self.changed.contains(&number) && Some(found) != pairs[number] {
            return Err(format!(
                "a scan shows key {number} with {found:?}, not {:?}",
                pairs[number]
            ));
        }
        self.rest = match self.direction {
            Direction::Forward => number + 1..end,
            Direction::Reverse => start..number,
        };
        Ok(())
    }

    /// The scan went past these keys.
    fn passed(&self, passed: Range<usize>, pairs: &Pairs) -> std::result::Result<(), Wrong> {
        let is_missed = |key: &usize| pairs[*key].is_some() && !self.changed.contains(key);
        match passed.into_iter().find(is_missed) {
            None => Ok(()),
            Some(key) => Err(format!(
                "a {:?} scan does not show key {key}",
                self.direction
            )),
        }
    }
}
