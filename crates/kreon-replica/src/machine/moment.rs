//! Time as a machine sees it.

/// A moment on the monotonic clock of one server, in microseconds. Those of two servers never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

impl Moment {
    /// Microseconds since `earlier`; 0 if that lies ahead.
    pub const fn since_us(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment `us` microseconds later.
    #[must_use]
    pub const fn after_us(self, us: u64) -> Self {
        Self(self.0.saturating_add(us))
    }
}

/// How long machines wait for what. All servers of a cluster have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A peer that answers nothing for so long is silent.
    pub silence_us: u64,
    /// A primary sends beats at least so often, and a replica that is to join asks it again so often.
    pub beat_every_us: u64,
    /// A sole member answers for so long after sending a read of the coordinator that succeeded.
    pub lease_us: u64,
    /// Nobody takes office for so long after loss was accepted: the lease of whoever was alone, with clocks 20 % wrong on
    /// both sides, and some.
    pub grace_us: u64,
    /// A master promotes without members that do not report for so long. A primary that is to hand over waits as long for
    /// what it has not answered, and the master twice as long for the primary.
    pub seal_patience_us: u64,
    /// A candidate that does not serve within this is given up. It doubles with each attempt, up to thirty times as
    /// much.
    pub attempt_us: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            silence_us: 1_000_000,
            beat_every_us: 250_000,
            lease_us: 1_000_000,
            grace_us: 2_000_000,
            seal_patience_us: 1_000_000,
            attempt_us: 1_000_000,
        }
    }
}
