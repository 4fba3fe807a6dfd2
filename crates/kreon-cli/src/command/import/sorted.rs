//! Rows that come sorted: loaded at once.
//!
//! Whether they do shows while they are read. The first batch decides whether a load begins; the first row
//! that is out of order ends it, with all rows before it in the store.

use kreon::{Error, ErrorKind};

use super::load::{BATCH_BYTES_MAX, Load};
use super::rows::Rows;
use crate::failure::{Failure, Result};

type Pair = (Vec<u8>, Vec<u8>);

/// Loads rows as long as their keys ascend, if the first batch does and does not hold them all; puts the
/// rest of what it had to read for that.
pub fn load_head(rows: &mut Rows<'_>, load: &mut Load) -> Result<()> {
    if !load.loads_at_once() {
        return Ok(());
    }
    let mut head = Head::default();
    // What was read before a bad row goes in.
    let read = head.read(rows, load.batch_rows_max());
    if read.is_err() || !head.is_sorted || head.is_all {
        for (key, value) in &head.pairs {
            load.put(key, value)?;
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
    let ingested = load.load(std::iter::from_fn(|| sorted.next().transpose()));
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
    if let Some((key, value)) = behind {
        load.put(&key, &value)?;
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
    is_sorted: bool,
    /// There are no more rows.
    is_all: bool,
}

impl Head {
    fn read(&mut self, rows: &mut Rows<'_>, rows_max: usize) -> Result<()> {
        self.is_sorted = true;
        let mut bytes = 0;
        while self.is_sorted && self.pairs.len() < rows_max && bytes < BATCH_BYTES_MAX {
            let Some((key, value)) = rows.next()? else {
                self.is_all = true;
                break;
            };
            bytes += key.len() + value.len();
            let last = self.pairs.last();
            self.is_sorted = last.is_none_or(|(last, _)| last.as_slice() <= key);
            self.pairs.push((key.to_vec(), value.to_vec()));
        }
        Ok(())
    }
}

/// The rows up to the first that is out of order, of equal keys the last.
struct Sorted<'r, 'a> {
    rows: &'r mut Rows<'a>,
    head: std::vec::IntoIter<Pair>,
    /// Was read, and may be followed by one with the same key.
    next: Option<Pair>,
    /// The first that is out of order.
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
            let Some((key, value)) = read else {
                return Ok(self.next.take());
            };
            match &mut self.next {
                Some((last, old)) if *last == key => *old = value,
                Some((last, _)) if *last > key => {
                    self.behind = Some((key, value));
                    self.count -= 1;
                    return Ok(self.next.take());
                }
                next => {
                    if let Some(pair) = next.replace((key, value)) {
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
            Ok(Some((key, value))) => {
                self.count += 1;
                Some((key.to_vec(), value.to_vec()))
            }
            Ok(None) => None,
            Err(error) => {
                self.outcome = Err(error);
                None
            }
        }
    }
}
