//! Waiting for another thread that copies bytes, or puts them into an index.

use std::time::Duration;

/// Waits ever longer: what is waited for takes well under a microsecond, unless the other thread lost
/// its core.
#[derive(Default)]
pub struct Pause {
    rounds: u32,
}

const SPIN_ROUNDS: u32 = 6;
const YIELD_ROUNDS: u32 = 40;
const SLEEP: Duration = Duration::from_micros(50);

impl Pause {
    /// Waits a little.
    pub fn wait(&mut self) {
        match self.rounds {
            0..SPIN_ROUNDS => (0..1 << self.rounds).for_each(|_| std::hint::spin_loop()),
            SPIN_ROUNDS..YIELD_ROUNDS => crate::sync::yield_now(),
            _ => crate::sync::sleep(SLEEP),
        }
        self.rounds += 1;
    }
}
