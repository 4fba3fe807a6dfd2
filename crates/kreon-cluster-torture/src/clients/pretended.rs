//! A cluster that is none: a map under a lock, with faults on command, to test the judgement.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::face::{Change, Moment, Pairs, Said, Store};

/// What it does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing.
    None,
    /// Some answers to writes are lost; half of these writes were carried out.
    LostReplies,
    /// A read shows what was before the last write, now and then.
    StaleRead,
    /// An acknowledged write is not carried out, now and then.
    LostWrite,
    /// The changes of a batch are made one after the other.
    TornBatch,
    /// A write of unknown outcome is carried out again later.
    Repeated,
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// See the module's text.
#[derive(Clone)]
pub struct Pretended {
    flaw: Flaw,
    calls: Arc<AtomicU64>,
    map: Arc<Mutex<Map>>,
    old: Arc<Mutex<Map>>,
    kept: Arc<Mutex<Vec<Change>>>,
}

impl Pretended {
    pub fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            calls: Arc::default(),
            map: Arc::default(),
            old: Arc::default(),
            kept: Arc::default(),
        }
    }

    /// True one time in `every`, if it has this flaw.
    fn errs(&self, flaw: Flaw, every: u64) -> bool {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.flaw == flaw && call % every == every - 1
    }

    fn read(&self) -> Map {
        match self.errs(Flaw::StaleRead, 50) {
            true => self.old.lock().clone(),
            false => self.map.lock().clone(),
        }
    }

    fn apply(&self, changes: &[Change]) {
        let mut map = self.map.lock();
        *self.old.lock() = map.clone();
        changes.iter().for_each(|change| apply(&mut map, change));
    }
}

fn apply(map: &mut Map, change: &Change) {
    match change {
        Change::Put(key, value) => _ = map.insert(key.clone(), value.clone()),
        Change::Delete(key) => _ = map.remove(key),
        Change::DeleteRange(start, end) => map.retain(|key, _| key < start || key >= end),
    }
}

fn pairs(map: &Map, start: &[u8], end: &[u8]) -> Pairs {
    let within = map
        .iter()
        .filter(|(key, _)| start <= key.as_slice() && key.as_slice() < end);
    within
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

impl Store for Pretended {
    fn get_many(&mut self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Said> {
        let map = self.read();
        Ok(keys.iter().map(|key| map.get(key).cloned()).collect())
    }

    fn write(&mut self, changes: &[Change], _is_sync: bool) -> Result<(), Said> {
        if self.errs(Flaw::LostWrite, 50) {
            return Ok(());
        }
        if self.errs(Flaw::LostReplies, 20) {
            if self.calls.load(Ordering::Relaxed).is_multiple_of(2) {
                self.apply(changes);
            }
            return Err(Said::Unknown("lost".into()));
        }
        if self.errs(Flaw::Repeated, 50) {
            self.apply(&std::mem::take(&mut *self.kept.lock()));
            self.kept.lock().extend_from_slice(changes);
        }
        if self.flaw == Flaw::TornBatch {
            for change in changes {
                self.apply(std::slice::from_ref(change));
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            return Ok(());
        }
        self.apply(changes);
        Ok(())
    }

    fn scan(&mut self, start: &[u8], end: &[u8], is_reverse: bool) -> Result<Pairs, Said> {
        let mut pairs = pairs(&self.read(), start, end);
        if is_reverse {
            pairs.reverse();
        }
        Ok(pairs)
    }

    fn snapshot(&mut self, _key: &[u8]) -> Result<Box<dyn Moment + '_>, Said> {
        Ok(Box::new(Then(self.read())))
    }
}

struct Then(Map);

impl Moment for Then {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Said> {
        Ok(self.0.get(key).cloned())
    }

    fn scan(&mut self, start: &[u8], end: &[u8]) -> Result<Pairs, Said> {
        Ok(pairs(&self.0, start, end))
    }
}
