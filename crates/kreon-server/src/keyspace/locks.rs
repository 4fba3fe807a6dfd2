//! Locks of keys: 4,096 stripes, each for the keys of one hash.
//!
//! A write holds the stripes of its keys alone, in ascending order, so that no two wait for each other. A read of several
//! records shares them if they are free, and reads a snapshot if not: it never waits.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::key_hash::key_hash;

/// Number of stripes.
pub(crate) const STRIPES: u16 = 4096;
/// What a writer takes of a stripe; a reader takes one.
const WHOLE: u32 = 1 << 20;

/// The stripes of the keys of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stripes {
    One(u16),
    /// Ascending, each once.
    Many(Vec<u16>),
    All,
}

impl Stripes {
    /// Of any stripes.
    pub(crate) fn of(stripes: impl IntoIterator<Item = u16>) -> Self {
        let mut stripes: Vec<u16> = stripes.into_iter().collect();
        stripes.sort_unstable();
        stripes.dedup();
        match stripes[..] {
            [one] => Self::One(one),
            _ => Self::Many(stripes),
        }
    }

    fn get(&self, index: usize) -> Option<u16> {
        match self {
            Self::One(stripe) => (index == 0).then_some(*stripe),
            Self::Many(stripes) => stripes.get(index).copied(),
            Self::All => u16::try_from(index).ok().filter(|&stripe| stripe < STRIPES),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> {
        (0..).map_while(|index| self.get(index))
    }

    pub(crate) fn has(&self, stripe: u16) -> bool {
        match self {
            Self::One(one) => *one == stripe,
            Self::Many(stripes) => stripes.binary_search(&stripe).is_ok(),
            Self::All => true,
        }
    }
}

/// The locks.
#[derive(Debug)]
pub(crate) struct Locks {
    stripes: Box<[Semaphore]>,
}

/// Locks that are held until the drop, by whichever thread.
#[derive(Debug)]
pub(crate) struct Held {
    locks: Arc<Locks>,
    stripes: Stripes,
    /// So many of them, from the first on.
    taken: usize,
    /// Of each.
    permits: u32,
}

impl Locks {
    pub(crate) fn new() -> Arc<Self> {
        let stripes = (0..STRIPES).map(|_| Semaphore::new(WHOLE as usize));
        Arc::new(Self {
            stripes: stripes.collect(),
        })
    }

    /// The stripe of a key.
    pub(crate) fn stripe(&self, db: usize, key: &[u8]) -> u16 {
        (key_hash(db, key) >> 32) as u16 % STRIPES
    }

    /// Waits until nobody else has any of `stripes`.
    pub(crate) async fn alone(self: &Arc<Self>, stripes: Stripes) -> Held {
        let mut held = self.none(stripes, WHOLE);
        while let Some(semaphore) = self.next(&held) {
            // Never closed: an error cannot be.
            if let Ok(permit) = semaphore.acquire_many(WHOLE).await {
                permit.forget();
            }
            held.taken += 1;
        }
        held
    }

    /// Takes `stripes` alone if nobody has any of them.
    pub(crate) fn try_alone(self: &Arc<Self>, stripes: Stripes) -> Option<Held> {
        self.try_take(stripes, WHOLE)
    }

    /// Shares `stripes` if no writer has any of them.
    pub(crate) fn try_shared(self: &Arc<Self>, stripes: Stripes) -> Option<Held> {
        self.try_take(stripes, 1)
    }

    fn try_take(self: &Arc<Self>, stripes: Stripes, permits: u32) -> Option<Held> {
        let mut held = self.none(stripes, permits);
        while let Some(semaphore) = self.next(&held) {
            semaphore.try_acquire_many(permits).ok()?.forget();
            held.taken += 1;
        }
        Some(held)
    }

    /// Whether each of `stripes` is taken by a writer.
    pub(crate) fn are_taken_alone(&self, stripes: &Stripes) -> bool {
        let mut semaphores = stripes
            .iter()
            .filter_map(|stripe| self.stripes.get(usize::from(stripe)));
        semaphores.all(|semaphore| semaphore.available_permits() == 0)
    }

    fn none(self: &Arc<Self>, stripes: Stripes, permits: u32) -> Held {
        Held {
            locks: Arc::clone(self),
            stripes,
            taken: 0,
            permits,
        }
    }

    fn next(&self, held: &Held) -> Option<&Semaphore> {
        self.stripes.get(usize::from(held.stripes.get(held.taken)?))
    }
}

impl Held {
    pub(crate) fn stripes(&self) -> &Stripes {
        &self.stripes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for stripe in self.stripes.iter().take(self.taken) {
            if let Some(semaphore) = self.locks.stripes.get(usize::from(stripe)) {
                semaphore.add_permits(self.permits as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn writer_excludes_others_until_it_is_dropped() {
        let locks = Locks::new();
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = |stripes: Stripes| {
            pin!(locks.alone(stripes))
                .as_mut()
                .poll(&mut context)
                .is_ready()
        };
        let held = locks.try_shared(Stripes::of([3, 5, 3])).unwrap();
        assert!(locks.try_shared(Stripes::One(5)).is_some());
        assert!(!poll(Stripes::of([1, 5])));
        assert!(
            poll(Stripes::One(1)),
            "a wait that is dropped gives back what it had"
        );
        assert!(!poll(Stripes::All));
        drop(held);
        assert!(poll(Stripes::All));
        let alone = {
            let mut wait = pin!(locks.alone(Stripes::of([1, 5])));
            match wait.as_mut().poll(&mut context) {
                std::task::Poll::Ready(held) => held,
                std::task::Poll::Pending => panic!("the locks are free"),
            }
        };
        assert!(locks.try_shared(Stripes::One(5)).is_none());
        assert!(locks.try_shared(Stripes::One(6)).is_some());
        drop(alone);
        assert!(locks.try_shared(Stripes::One(5)).is_some());
    }

    #[test]
    fn keys_spread_over_stripes() {
        let locks = Locks::new();
        let mut hits = vec![0_u32; usize::from(STRIPES)];
        for number in 0..40_960_u32 {
            hits[usize::from(locks.stripe(0, format!("key:{number:012}").as_bytes()))] += 1;
        }
        assert!(hits.iter().all(|&hits| hits < 40), "ten each on average");
    }
}
