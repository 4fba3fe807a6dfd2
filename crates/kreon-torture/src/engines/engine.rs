//! What the hunts need of an engine.

use kreon_base::Result;

use crate::Counts;
use crate::seeds::{judged, many};

/// When a change is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// When it can be seen.
    Buffered,
    /// When it survives a power cut.
    Sync,
}

/// Whether a key had a value before a change, if the engine tells.
pub(crate) type HadOne = Option<bool>;

/// An open store of an engine.
pub(crate) trait Engine: Sized + Send + Sync {
    /// Its name in commands.
    const NAME: &'static str;

    /// Gives a key a value, or deletes it.
    fn change(&self, key: &[u8], value: Option<&[u8]>, durability: Durability) -> Result<HadOne>;

    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// The values of all keys that the store can have.
    fn contents(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>>;

    /// Makes everything durable that was acknowledged before.
    fn sync(&self) -> Result<()>;

    /// Reads everything on the device.
    fn verify(&self) -> Result<()>;

    /// Closes the store. All that was acknowledged is durable then.
    fn close(self) -> Result<()>;
}

/// An engine whose power is cut, on one thread.
pub(crate) trait Cut: Engine {
    /// Crash states of a seed.
    const STATES: u64;

    /// Cuts the power of a store by `seed`, and checks what is left. What else was counted, and what is wrong.
    fn cuts(seed: u64) -> (Counts, std::result::Result<(), String>);

    /// The same as a verdict.
    fn states(seed: u64) -> Counts {
        let (tried, outcome) = Self::cuts(seed);
        let mut counts = judged((Self::NAME, "stores"), seed, Ok(outcome));
        counts.add(tried);
        counts
    }
}

/// Tries at least `states` crash states, some of each seed from `seed` on. A failure does not end it.
pub(crate) fn many_states<E: Cut>(states: u64, seed: u64) -> Counts {
    many(E::NAME, states.div_ceil(E::STATES), seed, E::states)
}
