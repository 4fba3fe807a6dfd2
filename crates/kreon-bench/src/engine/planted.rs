//! A store made wrong on purpose, to see that the bench notices.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::{Engine, Inside};
use crate::randomness::Randomness;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Plant {
    /// Now and then a get shows a value with a flipped bit.
    Value,
    /// Now and then a put is forgotten.
    Lost,
    /// Scans show their third and fourth record in the wrong order.
    Unsorted,
    /// Now and then a request is refused.
    Refused,
    /// The process dies in the middle of its work.
    Death,
}

/// See the module's text.
pub struct Planted {
    inner: Box<dyn Engine>,
    plant: Plant,
    calls: AtomicU64,
}

impl Planted {
    /// Makes `inner` wrong.
    pub fn new(inner: Box<dyn Engine>, plant: Plant) -> Self {
        Self {
            inner,
            plant,
            calls: AtomicU64::new(0),
        }
    }

    /// Whether it is time to be wrong in this way.
    fn is_time(&self, plant: Plant) -> bool {
        self.plant == plant && (self.calls.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(101)
    }
}

impl Engine for Planted {
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        anyhow::ensure!(!self.is_time(Plant::Refused), "planted");
        if self.is_time(Plant::Death) {
            std::process::abort();
        }
        match self.is_time(Plant::Lost) {
            true => Ok(()),
            false => self.inner.put(key, value),
        }
    }

    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        let is_wrong = self.is_time(Plant::Value);
        self.inner.get(key, &mut |value| match is_wrong {
            true => {
                let mut wrong = value.to_vec();
                wrong.iter_mut().take(1).for_each(|byte| *byte ^= 1);
                show(&wrong);
            }
            false => show(value),
        })
    }

    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize> {
        if self.plant != Plant::Unsorted {
            return self.inner.scan(start, count, show);
        }
        let mut found = Vec::new();
        let shown = self.inner.scan(start, count, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
        })?;
        if found.len() > 3 {
            found.swap(2, 3);
        }
        found.iter().for_each(|(key, value)| show(key, value));
        Ok(shown)
    }

    fn settle(&self) -> anyhow::Result<()> {
        self.inner.settle()
    }

    fn persist(&self) -> anyhow::Result<()> {
        self.inner.persist()
    }

    fn replay_bytes(&self) -> Option<u64> {
        self.inner.replay_bytes()
    }

    fn take_randomness(&self) -> Option<Randomness> {
        self.inner.take_randomness()
    }

    fn inside(&self) -> Option<Inside> {
        self.inner.inside()
    }
}
