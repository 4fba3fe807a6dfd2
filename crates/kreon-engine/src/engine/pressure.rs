//! Slowing writers down before L0' is full.
//!
//! While L0 spills, L0' takes the writes. From half of its size on, every write waits a little, growing
//! with the square of the fill, so that the spill keeps ahead and nobody is stopped for its whole
//! length. Only at the full size a writer waits for the spill to end; that bounds the memory.

use std::time::Duration;

use crate::sync::{Condvar, Mutex};
use kreon_base::{Error, Result};

/// The longest delay of one write before L0' is full.
const DELAY_MAX: Duration = Duration::from_millis(2);

/// See the module's text.
#[derive(Default)]
pub struct Pressure {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Counts the ends of spills, successful or not.
    spills_ended: u64,
    /// Why the last spill failed, until one succeeds.
    failure: Option<Error>,
}

/// How full L0' is while a spill is under way, 1.0 at its limit.
pub fn delay(fill: f64) -> Duration {
    let over = ((fill - 0.5) * 2.0).clamp(0.0, 1.0);
    DELAY_MAX.mul_f64(over * over)
}

impl Pressure {
    /// Waits for spills to end while `is_full` holds.
    ///
    /// # Errors
    /// Why spills fail, if they do: there will be no room. That of `is_full`.
    pub fn wait_for_room(&self, is_full: impl Fn() -> Result<bool>) -> Result<()> {
        let mut state = self.state.lock();
        while is_full()? {
            if let Some(failure) = &state.failure {
                return Err(failure.within("no room for new data, because a spill failed"));
            }
            // The time-out is for what nobody tells: that the store was closed or poisoned meanwhile.
            self.changed
                .wait_for(&mut state, Duration::from_millis(200));
        }
        Ok(())
    }

    /// Tells the end of a spill to all who wait.
    pub fn spill_ended(&self, outcome: &Result<()>) {
        let mut state = self.state.lock();
        state.spills_ended += 1;
        state.failure = outcome.as_ref().err().cloned();
        self.changed.notify_all();
    }

    /// Spills that ended since the store was opened.
    pub fn spills_ended(&self) -> u64 {
        self.state.lock().spills_ended
    }

    /// Why the last spill failed.
    pub fn failure(&self) -> Option<Error> {
        self.state.lock().failure.clone()
    }
}

#[cfg(test)]
mod tests {
    use kreon_base::ErrorKind;

    use super::*;

    #[test]
    fn delay_grows_smoothly_from_half_full() {
        assert_eq!(delay(0.3), Duration::ZERO);
        assert_eq!(delay(0.5), Duration::ZERO);
        assert!(delay(0.6) < delay(0.8) && delay(0.8) < delay(1.0));
        assert_eq!(delay(7.0), DELAY_MAX);
    }

    #[test]
    fn a_failed_spill_fails_those_who_wait_for_room() {
        let pressure = Pressure::default();
        pressure.spill_ended(&Err(Error::new(ErrorKind::OutOfSpace, "full")));
        let error = pressure.wait_for_room(|| Ok(true)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfSpace);
        assert!(pressure.wait_for_room(|| Ok(false)).is_ok());
        pressure.spill_ended(&Ok(()));
        assert!(pressure.failure().is_none());
    }
}
