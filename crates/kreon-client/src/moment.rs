//! Time as a client sees it.

/// A moment on the monotonic clock of the client, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

/// How long a client waits for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A call ends after this, whatever became of it.
    pub limit_us: u64,
    /// A read that nobody answers for so long is sent again.
    pub patience_us: u64,
    /// After the second refusal a call rests so long; twice as long after each further one, up to 32 times.
    pub rest_us: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            limit_us: 10_000_000,
            patience_us: 1_000_000,
            rest_us: 10_000,
        }
    }
}
