//! The clock by which values expire.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kreon_base::Timestamp;

type Read = dyn Fn() -> Timestamp + Send + Sync;

/// The clock by which values expire: the wall clock, unless a test gives another. It never goes back: while what it reads is
/// earlier than before, it stands still.
#[derive(Clone)]
pub struct Clock {
    read: Arc<Read>,
    /// The latest time that it told, in milliseconds.
    latest: Arc<AtomicU64>,
}

impl Clock {
    /// A clock that shows what `read` returns.
    pub fn of(read: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            read: Arc::new(read),
            latest: Arc::new(AtomicU64::new(0)),
        }
    }

    /// The time; never earlier than what any clone of it told before.
    pub fn now(&self) -> Timestamp {
        let read = (self.read)().ms();
        let latest = self.latest.load(Ordering::Acquire);
        match read > latest {
            // Once a millisecond at the most, whatever the number of readers.
            true => Timestamp::of_ms(self.latest.fetch_max(read, Ordering::AcqRel).max(read)),
            false => Timestamp::of_ms(latest),
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::of(|| Timestamp::of_ms(kreon_device::wall_clock_ms()))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock")
            .field(&self.latest.load(Ordering::Relaxed))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_stands_still_until_it_is_as_late_again() {
        let shown = Arc::new(AtomicU64::new(100));
        let read = Arc::clone(&shown);
        let clock = Clock::of(move || Timestamp::of_ms(read.load(Ordering::Relaxed)));
        let other = clock.clone();
        let told = |ms| {
            shown.store(ms, Ordering::Relaxed);
            (clock.now().ms(), other.now().ms())
        };
        assert_eq!(told(100), (100, 100));
        assert_eq!(told(40), (100, 100));
        assert_eq!(told(101), (101, 101));
    }
}
