//! Waiting for a moment: for another thread that copies bytes or inserts into an index.

use std::time::Duration;

/// Each wait is longer: the other thread takes well under a microsecond, unless it has lost its core.
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
            SPIN_ROUNDS..YIELD_ROUNDS => kreon_sync::yield_now(),
            _ => kreon_sync::sleep(SLEEP),
        }
        self.rounds += 1;
    }
}
