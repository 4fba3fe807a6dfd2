//! The workloads: what share of the requests does what (`Kreon 4`, table 1).

use serde::{Deserialize, Serialize};

use super::choice::Distribution;

/// A workload of YCSB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Workload {
    /// Inserts all records into an empty store.
    LoadA,
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads.
    C,
    /// Reads of all records alike.
    CUniform,
    /// Half reads, half updates that read first.
    F,
    /// 95 % reads of new records, 5 % inserts.
    D,
    /// Inserts all records into an empty store again.
    LoadE,
    /// 95 % scans of 1 to 100 records, 5 % inserts.
    E,
    /// Scans of 1 to 100 records.
    G,
    /// G for a given time: stores that lay together what is scanned do that meanwhile.
    #[value(skip)]
    Converging,
    /// E behind that.
    #[value(skip)]
    EConverged,
    /// G behind that.
    #[value(skip)]
    GConverged,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reads a record.
    Read,
    /// Overwrites a record.
    Update,
    /// Inserts a new record.
    Insert,
    /// Reads a record and overwrites it.
    ReadModifyWrite,
    /// Reads the records from one on.
    Scan,
}

/// Longest scan of workloads E and G.
pub const SCAN_RECORDS_MAX: u64 = 100;

impl Workload {
    /// The order in which the papers run them, and then those behind them.
    pub const ALL: [Self; 13] = [
        Self::LoadA,
        Self::A,
        Self::B,
        Self::C,
        Self::CUniform,
        Self::F,
        Self::D,
        Self::LoadE,
        Self::E,
        Self::G,
        Self::Converging,
        Self::EConverged,
        Self::GConverged,
    ];

    /// Those of the papers.
    pub fn of_papers() -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(|workload| !workload.is_behind_scans() && *workload != Self::CUniform)
    }

    /// Whether it asks how scans are after many scans.
    pub fn is_behind_scans(self) -> bool {
        matches!(self, Self::Converging | Self::EConverged | Self::GConverged)
    }

    /// The same after many scans, if it is one that scans.
    pub fn converged(self) -> Option<Self> {
        match self {
            Self::E => Some(Self::EConverged),
            Self::G => Some(Self::GConverged),
            _ => None,
        }
    }

    /// Whether it fills an empty store.
    pub fn is_load(self) -> bool {
        matches!(self, Self::LoadA | Self::LoadE)
    }

    /// Whether it does nothing but scan and insert: such requests cost many times as much.
    pub fn scans(self) -> bool {
        matches!(self, Self::E | Self::G) || self.is_behind_scans()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::LoadA => "Load A",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::CUniform => "C uniform",
            Self::F => "F",
            Self::D => "D",
            Self::LoadE => "Load E",
            Self::E => "E",
            Self::G => "G",
            Self::Converging => "G goes on",
            Self::EConverged => "E later",
            Self::GConverged => "G later",
        }
    }

    /// The distribution that YCSB gives it.
    pub fn distribution(self) -> Distribution {
        match self {
            Self::D => Distribution::Latest,
            Self::CUniform => Distribution::Uniform,
            _ => Distribution::Zipfian,
        }
    }

    /// Share of the requests that write a record.
    pub fn writes_share(self) -> f64 {
        let writes =
            |percent: &u64| !matches!(self.request(*percent), Request::Read | Request::Scan);
        (0..100).filter(writes).count() as f64 / 100.0
    }

    /// The request that a draw of 0 to 99 makes.
    pub fn request(self, percent: u64) -> Request {
        match self {
            Self::LoadA | Self::LoadE => Request::Insert,
            Self::A if percent < 50 => Request::Read,
            Self::B if percent < 95 => Request::Read,
            Self::A | Self::B => Request::Update,
            Self::C | Self::CUniform => Request::Read,
            Self::F if percent < 50 => Request::Read,
            Self::F => Request::ReadModifyWrite,
            Self::D if percent < 95 => Request::Read,
            Self::E | Self::EConverged if percent < 95 => Request::Scan,
            Self::D | Self::E | Self::EConverged => Request::Insert,
            Self::G | Self::GConverged | Self::Converging => Request::Scan,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_table() {
        let share = |workload: Workload, request| {
            (0..100)
                .filter(|percent| workload.request(*percent) == request)
                .count()
        };
        assert_eq!(share(Workload::LoadA, Request::Insert), 100);
        assert_eq!(share(Workload::A, Request::Update), 50);
        assert_eq!(share(Workload::B, Request::Update), 5);
        assert_eq!(share(Workload::C, Request::Read), 100);
        assert_eq!(share(Workload::D, Request::Insert), 5);
        assert_eq!(share(Workload::E, Request::Scan), 95);
        assert_eq!(share(Workload::F, Request::ReadModifyWrite), 50);
        assert_eq!(share(Workload::G, Request::Scan), 100);
    }
}
