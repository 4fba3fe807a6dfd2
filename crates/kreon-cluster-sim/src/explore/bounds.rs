//! How far the exhaustive search goes.

/// Bounds of an exhaustive search. Everything that can happen within them, happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Servers, all in the set at first.
    pub replicas: usize,
    /// Writes of clients.
    pub writes: usize,
    /// Power cuts.
    pub crashes: u8,
    /// Highest term.
    pub terms: u64,
    /// Joins.
    pub joins: u8,
    /// The search ends, without a verdict, at so many states.
    pub states_max: usize,
}

impl Bounds {
    /// Two replicas, two writes, two power cuts, three terms, one join.
    pub const TWO: Self = Self {
        replicas: 2,
        writes: 2,
        crashes: 2,
        terms: 3,
        joins: 1,
        states_max: 20_000_000,
    };

    /// Three replicas, one write, the rest as in [`TWO`](Self::TWO).
    pub const THREE: Self = Self {
        replicas: 3,
        writes: 1,
        ..Self::TWO
    };

    /// Three replicas, two writes, one power cut, three terms, no join.
    pub const THREE_TWO_WRITES: Self = Self {
        replicas: 3,
        crashes: 1,
        joins: 0,
        ..Self::TWO
    };

    /// The same with two power cuts.
    pub const THREE_TWO_CRASHES: Self = Self {
        crashes: 2,
        states_max: 200_000_000,
        ..Self::THREE_TWO_WRITES
    };
}
