//! Values that end.

use std::sync::atomic::{AtomicU64, Ordering};

use kreon_base::Timestamp;

use super::*;
use crate::options::Clock;

/// The most milliseconds that a value lives.
const TTL_MAX: u64 = 60;

/// A clock that goes on when it is told to, and when values end.
pub struct Hands {
    ms: Arc<AtomicU64>,
    pub until: BTreeMap<Vec<u8>, Timestamp>,
}

impl Default for Hands {
    fn default() -> Self {
        Self {
            ms: Arc::new(AtomicU64::new(1000)),
            until: BTreeMap::new(),
        }
    }
}

impl Hands {
    pub fn clock(&self) -> Clock {
        let ms = Arc::clone(&self.ms);
        Clock::of(move || Timestamp::of_ms(ms.load(Ordering::Relaxed)))
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::of_ms(self.ms.load(Ordering::Relaxed))
    }

    /// A key was written.
    pub fn note(&mut self, key: &[u8], ttl: Option<u64>) {
        match ttl {
            Some(ttl) => self.until.insert(key.to_vec(), self.now().plus_ms(ttl)),
            None => self.until.remove(key),
        };
    }
}

impl Run {
    pub fn ttl(&mut self) -> Option<u64> {
        (self.dice.below(3) == 0).then(|| 1 + self.dice.below(TTL_MAX))
    }

    /// Time goes on: the map loses what has ended. Those of snapshots stay as they are.
    pub fn tick(&mut self) {
        let by = self.dice.below(TTL_MAX / 2);
        let now = Timestamp::of_ms(self.hands.ms.fetch_add(by, Ordering::Relaxed) + by);
        let ended = self.hands.until.extract_if(.., |_, until| *until <= now);
        for (key, _) in ended {
            self.map.remove(&key);
        }
    }
}
