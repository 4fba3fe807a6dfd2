//! Rows that come sorted: loaded at once.
//!
//! Whether they do shows while they are read. The first batch decides whether a load begins; the first row
//! that is out of order, or expires, ends it, with all rows before it in the store.

use kreon::{Error, ErrorKind};

use super::load::{BATCH_BYTES_MAX, Load};
use super::rows::Rows;
use crate::failure::{Failure, Result};
use crate::rows::Pair;

/// Loads rows as long as their keys ascend and none expires, if the first batch is so and does not hold them all; puts the
/// rest of what it had to read for that.
pub fn load_head(rows: &mut Rows<'_>, load: &mut Load) -> Result<()> {
    if !load.loads_at_once() {
        return Ok(());
    }
    let mut head = Head::default();
    // What was read before a bad row goes in.
    let read = head.read(rows, load.batch_rows_max());
    if read.is_err() || !head.is_sorted || head.is_all {
        for pair in &head.pairs {
            load.put(pair)?;
        }
        return read;
    }
    let mut sorted = Sorted {
        rows,
        count: head.pairs.len() as u64,
        next: None,
        head: head.pairs.into_iter(),
        behind: None,
        outcome: Ok(()),
    };
    let pairs = std::iter::from_fn(|| sorted.next().transpose());
    let ingested = load.load(pairs.map(|pair| pair.map(|pair| (pair.key, pair.value))));
    let Sorted {
        behind,
        outcome,
        count,
        ..
    } = sorted;
    if outcome.as_ref().is_err_and(Failure::is_interruption) {
        load.is_undone = true;
        return outcome;
    }
    ingested?;
    load.count_loaded(count);
    if let Some(pair) = behind {
        load.put(&pair)?;
    }
    outcome
}

/// What the summary says of loaded rows.
pub fn summary(loaded: u64, all: u64) -> String {
    match loaded {
        0 => String::new(),
        loaded if loaded == all => "; they came sorted and were loaded at once".to_owned(),
        loaded => format!("; the first {loaded} came sorted and were loaded at once"),
    }
}

/// The first rows.
#[derive(Default)]
struct Head {
    pairs: Vec<Pair>,
    /// So far as can be loaded at once.
    is_sorted: bool,
    /// There are no more rows.
    is_all: bool,
}

impl Head {
    fn read(&mut self, rows: &mut Rows<'_>, rows_max: usize) -> Result<()> {
        self.is_sorted = true;
        let mut bytes = 0;
        while self.is_sorted && self.pairs.len() < rows_max && bytes < BATCH_BYTES_MAX {
            let Some(pair) = rows.next()? else {
                self.is_all = true;
                break;
            };
            bytes += pair.key.len() + pair.value.len();
            let last = self.pairs.last();
            let ascends = last.is_none_or(|last| last.key <= pair.key);
            self.is_sorted = ascends && pair.expires_ms.is_none();
            self.pairs.push(pair.clone());
        }
        Ok(())
    }
}

/// The rows up to the first that is out of order or expires, of equal keys the last.
struct Sorted<'r, 'a> {
    rows: &'r mut Rows<'a>,
    head: std::vec::IntoIter<Pair>,
    /// Was read, and may be followed by one with the same key.
    next: Option<Pair>,
    /// The first that is out of order or expires.
    behind: Option<Pair>,
    /// What ended the rows.
    outcome: Result<()>,
    /// Rows so far.
    count: u64,
}

impl Sorted<'_, '_> {
    /// The next pair; an error breaks the load off.
    fn next(&mut self) -> kreon::Result<Option<Pair>> {
        loop {
            let read = self.read();
            if self.outcome.as_ref().is_err_and(Failure::is_interruption) {
                return Err(Error::new(ErrorKind::Closed, "interrupted"));
            }
            let Some(pair) = read else {
                return Ok(self.next.take());
            };
            let is_behind = |last: &Pair| last.key > pair.key;
            if pair.expires_ms.is_some() || self.next.as_ref().is_some_and(is_behind) {
                self.behind = Some(pair);
                self.count -= 1;
                return Ok(self.next.take());
            }
            match &mut self.next {
                Some(last) if last.key == pair.key => *last = pair,
                next => {
                    if let Some(pair) = next.replace(pair) {
                        return Ok(Some(pair));
                    }
                }
            }
        }
    }

    fn read(&mut self) -> Option<Pair> {
        if let Some(pair) = self.head.next() {
            return Some(pair);
        }
        if self.behind.is_some() || self.outcome.is_err() {
            return None;
        }
        match self.rows.next() {
            Ok(Some(pair)) => {
                self.count += 1;
                Some(pair.clone())
            }
            Ok(None) => None,
            Err(error) => {
                self.outcome = Err(error);
                None
            }
        }
    }
}
