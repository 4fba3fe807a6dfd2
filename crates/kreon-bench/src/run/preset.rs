//! Presets: what is worth measuring, so that figures can be compared.

use crate::engine::Kind;
use crate::ycsb::choice::Distribution;
use crate::ycsb::mix::Mix;
use crate::ycsb::workload::Workload;

/// See the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Preset {
    /// kreon alone, under a minute.
    Quick,
    /// Everything fits in memory.
    Small,
    /// Everything fits in memory, and each store has what suits it best there.
    Memory,
    /// Four times as much data as memory.
    Large,
    /// `small` and the paper's ratios beside ours: kreon and RocksDB.
    Paper,
    /// `large` and the paper's ratios beside ours: kreon and RocksDB.
    PaperLarge,
    /// Every write durable: 1, 4 and 64 clients.
    Sync,
    /// L0 from 1 % to 16 % of the memory (`Kreon 4.5`).
    SweepL0,
    /// A checkpoint of L0 every 1 to 8 seconds, and none (`Kreon 4.5`).
    SweepCheckpoint,
    /// Tebis' mixes of sizes, all in memory: kreon and RocksDB.
    Mixes,
    /// The same with four times as much data as memory.
    MixesLarge,
    /// Values of 0 to 256 bytes in the leaves of the index, four times as much data as memory.
    SweepInline,
    /// KVell's cells: three times as much data as memory, 64 requests in flight, both distributions (`KVell 6.3`).
    Kvell,
    /// Tucana's claims: everything in memory, and five times as much data as memory (`Tucana 2.4`).
    Tucana,
    /// Tucana and kreon over the memory for an index that is large for its pairs: from a quarter of the leaves of Tucana to
    /// all of them and more.
    Leaves,
}

/// One point of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// As the store likes it.
    Default,
    /// L0 takes so many percent of the memory.
    L0Percent(u32),
    /// A checkpoint of L0 every so many seconds; 0: none.
    CheckpointSeconds(u32),
    /// Values up to this length stand in the leaves.
    InlineBytes(u32),
    /// Requests are so distributed over the records.
    Distribution(Distribution),
}

const MIB: u64 = 1 << 20;

impl Preset {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Small => "small",
            Self::Memory => "memory",
            Self::Large => "large",
            Self::Paper => "paper",
            Self::PaperLarge => "paper-large",
            Self::Sync => "sync",
            Self::SweepL0 => "sweep-l0",
            Self::SweepCheckpoint => "sweep-checkpoint",
            Self::Mixes => "mixes",
            Self::MixesLarge => "mixes-large",
            Self::SweepInline => "sweep-inline",
            Self::Kvell => "kvell",
            Self::Tucana => "tucana",
            Self::Leaves => "leaves",
        }
    }

    /// The stores that it compares, where none are named.
    pub fn engines(self) -> Vec<Kind> {
        match self {
            Self::Paper | Self::PaperLarge | Self::Mixes | Self::MixesLarge => {
                vec![Kind::Kreon, Kind::Rocksdb]
            }
            Self::Kvell => vec![Kind::Kvell, Kind::Kreon, Kind::Rocksdb, Kind::Wiredtiger],
            Self::Tucana => vec![Kind::Tucana, Kind::Kreon, Kind::Rocksdb],
            Self::Leaves => vec![Kind::Tucana, Kind::Kreon],
            _ => vec![Kind::Kreon],
        }
    }

    /// Bytes of keys and values to load.
    pub fn data_bytes(self) -> u64 {
        match self {
            Self::Quick => 100 * MIB,
            Self::Mixes | Self::SweepInline => 256 * MIB,
            Self::MixesLarge => 512 * MIB,
            Self::Small | Self::Memory | Self::Paper | Self::SweepL0 | Self::Tucana => 400 * MIB,
            // 4 million pairs: Tucana's leaves take about 115 MiB.
            Self::Leaves => 275 * MIB,
            Self::SweepCheckpoint => 6144 * MIB,
            Self::Large | Self::PaperLarge => 2048 * MIB,
            Self::Sync => 20 * MIB,
            Self::Kvell => 768 * MIB,
        }
    }

    /// Memory of each store: one point of the run for each.
    pub fn memories(self) -> Vec<u64> {
        match self {
            Self::Tucana => [1536, 128].map(|mib| mib * MIB).to_vec(),
            Self::Leaves => [64, 128, 192, 320, 512].map(|mib| mib * MIB).to_vec(),
            _ => vec![self.memory_bytes()],
        }
    }

    /// The same, of presets with one.
    fn memory_bytes(self) -> u64 {
        match self {
            Self::Quick | Self::Large | Self::PaperLarge | Self::Sync | Self::Leaves => 512 * MIB,
            Self::Small | Self::Paper | Self::Tucana => 1536 * MIB,
            Self::Memory => 1740 * MIB,
            Self::SweepL0 | Self::Kvell => 256 * MIB,
            Self::Mixes => 1024 * MIB,
            Self::MixesLarge => 128 * MIB,
            Self::SweepInline => 64 * MIB,
            // L0 takes some seconds to fill.
            Self::SweepCheckpoint => 2048 * MIB,
        }
    }

    /// Requests of each workload behind the load.
    pub fn operations(self) -> u64 {
        match self {
            Self::Quick => 100_000,
            Self::Small | Self::Memory | Self::Paper | Self::Kvell | Self::Tucana => 400_000,
            Self::Leaves => 1_000_000,
            Self::Large | Self::PaperLarge => 200_000,
            Self::Sync | Self::SweepL0 | Self::SweepCheckpoint => 100_000,
            Self::Mixes => 1_000_000,
            Self::MixesLarge | Self::SweepInline => 200_000,
        }
    }

    /// No workload behind the load takes longer.
    pub fn seconds_max(self) -> Option<f64> {
        match self {
            Self::Quick => Some(4.0),
            Self::Large | Self::PaperLarge | Self::MixesLarge | Self::SweepInline => Some(6.0),
            _ => Some(10.0),
        }
    }

    /// No load takes longer: a store that is slow beyond measure must not take the others' time. Half a load makes
    /// the phases behind it small, so it is marked, and the bound is one that few stores reach.
    pub fn load_seconds_max(self) -> Option<f64> {
        match self {
            Self::Quick => Some(15.0),
            Self::Sync => Some(10.0),
            Self::Large | Self::PaperLarge => Some(40.0),
            // What comes behind must see the same data at each point: here a store is slow on purpose.
            Self::Leaves => Some(300.0),
            _ => Some(60.0),
        }
    }

    /// Between Load E and the scans behind it nobody asks for anything for so long.
    pub fn rest_seconds(self) -> f64 {
        match self {
            Self::Large | Self::PaperLarge => 60.0,
            _ => 0.0,
        }
    }

    /// Rounds.
    pub fn rounds(self) -> u32 {
        match self {
            // Of a curve the points show how far rounds are apart.
            Self::Quick | Self::Leaves => 1,
            _ => 3,
        }
    }

    /// Clients.
    pub fn threads(self) -> Vec<usize> {
        match self {
            Self::Sync => vec![1, 4, 64],
            Self::Kvell => vec![64],
            // A put of Tucana that misses waits for its leaf: so many are read at once.
            Self::Leaves => vec![8],
            _ => vec![2],
        }
    }

    /// What was loaded is read into memory before the workloads: else stores that live on the page cache would start
    /// with all of it there, and those with direct I/O with nothing.
    pub fn is_warmed(self, memory_bytes: u64) -> bool {
        match self {
            Self::Quick | Self::Small | Self::Memory | Self::Paper | Self::Mixes => true,
            Self::Tucana => memory_bytes > 2 * self.data_bytes(),
            _ => false,
        }
    }

    /// The randomness of device transfers is watched, too.
    pub fn is_traced(self) -> bool {
        matches!(self, Self::Paper | Self::PaperLarge)
    }

    /// Every write is durable when it returns.
    pub fn is_sync(self) -> bool {
        self == Self::Sync
    }

    /// What it runs.
    pub fn workloads(self) -> Vec<Workload> {
        match self {
            Self::Sync | Self::SweepCheckpoint => vec![Workload::LoadA],
            Self::SweepL0 | Self::Mixes | Self::MixesLarge | Self::SweepInline => {
                vec![Workload::LoadA, Workload::A, Workload::C]
            }
            Self::Kvell => {
                use Workload::{A, B, C, E, LoadA};
                vec![LoadA, A, B, C, E]
            }
            Self::Memory => {
                use Workload::{A, B, C, CUniform, D, E, F, LoadA, LoadE};
                vec![LoadA, A, B, C, CUniform, F, D, LoadE, E]
            }
            Self::Leaves => vec![Workload::LoadA, Workload::A, Workload::C],
            Self::Quick
            | Self::Small
            | Self::Large
            | Self::Paper
            | Self::PaperLarge
            | Self::Tucana => Workload::of_papers().collect(),
        }
    }

    /// Sizes of the pairs.
    pub fn mixes(self) -> Vec<Mix> {
        match self {
            Self::Mixes | Self::MixesLarge => {
                vec![Mix::S, Mix::M, Mix::L, Mix::Sd, Mix::Md, Mix::Ld]
            }
            Self::SweepInline => vec![Mix::S, Mix::M, Mix::Sd],
            Self::Leaves => vec![Mix::T],
            _ => vec![Mix::K],
        }
    }

    /// Longest value that stands in the leaves of the index, where the preset sets it: beside Tucana kreon has its values in
    /// the log, too.
    pub fn inline_bytes(self) -> Option<u32> {
        (self == Self::Leaves).then_some(0)
    }

    /// The points of its sweep; one if it is none.
    pub fn sweep(self) -> Vec<Sweep> {
        match self {
            Self::SweepL0 => [1, 2, 4, 8, 16].map(Sweep::L0Percent).to_vec(),
            Self::SweepCheckpoint => [1, 2, 4, 8, 0].map(Sweep::CheckpointSeconds).to_vec(),
            Self::SweepInline => [0, 64, 128, 256].map(Sweep::InlineBytes).to_vec(),
            Self::Kvell => [Distribution::Uniform, Distribution::Zipfian]
                .map(Sweep::Distribution)
                .to_vec(),
            // All records alike: what is asked for again and again would be in memory at each point.
            Self::Leaves => vec![Sweep::Distribution(Distribution::Uniform)],
            _ => vec![Sweep::Default],
        }
    }
}

impl Sweep {
    /// What tells it from others.
    pub fn name(self) -> String {
        match self {
            Self::Default => String::new(),
            Self::L0Percent(percent) => format!("L0 {percent} % of memory"),
            Self::CheckpointSeconds(0) => "no checkpoint of L0".to_owned(),
            Self::CheckpointSeconds(seconds) => format!("a checkpoint of L0 every {seconds} s"),
            Self::InlineBytes(bytes) => format!("values up to {bytes} B in leaves"),
            Self::Distribution(distribution) => distribution.name().to_owned(),
        }
    }

    /// Whom requests ask for.
    pub fn distribution(self) -> Option<Distribution> {
        match self {
            Self::Distribution(distribution) => Some(distribution),
            _ => None,
        }
    }

    /// See [`Means`](crate::engine::tuning::Means).
    pub fn l0_percent(self) -> Option<u32> {
        match self {
            Self::L0Percent(percent) => Some(percent),
            _ => None,
        }
    }

    /// See [`Means`](crate::engine::tuning::Means).
    pub fn l0_checkpoint_seconds(self) -> Option<u32> {
        match self {
            Self::CheckpointSeconds(seconds) => Some(seconds),
            _ => None,
        }
    }

    /// See [`Means`](crate::engine::tuning::Means).
    pub fn inline_bytes(self) -> Option<u32> {
        match self {
            Self::InlineBytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tuning::Means;
    use clap::ValueEnum;

    #[test]
    fn names_are_those_of_the_command_line() {
        for preset in Preset::value_variants() {
            let value = preset.to_possible_value();
            assert_eq!(value.unwrap().get_name(), preset.name());
        }
    }

    #[test]
    fn the_cells_of_kvell_have_three_times_as_much_data_as_memory_and_64_clients() {
        let preset = Preset::Kvell;
        assert_eq!(preset.data_bytes(), 3 * preset.memory_bytes());
        assert_eq!(preset.threads(), [64]);
        let distributions = preset.sweep().into_iter().filter_map(Sweep::distribution);
        assert_eq!(distributions.count(), 2);
    }

    #[test]
    fn the_claims_of_tucana_are_of_data_in_memory_and_of_five_times_as_much() {
        let preset = Preset::Tucana;
        let warmed: Vec<bool> = preset
            .memories()
            .into_iter()
            .map(|memory| preset.is_warmed(memory))
            .collect();
        assert_eq!(warmed, [true, false]);
        let means = Means {
            memory_bytes: preset.memories()[1],
            ..Means::default()
        };
        assert!(preset.data_bytes() >= 5 * means.own_memory_bytes() as u64);
    }

    #[test]
    fn the_leaves_of_tucana_are_larger_and_smaller_than_the_memory() {
        let preset = Preset::Leaves;
        let pairs = preset.data_bytes() as f64 / Mix::T.pair_bytes_mean();
        // 203 entries of a page, 70 % of them taken.
        let leaf_bytes = pairs / (203.0 * 0.7) * 4096.0;
        let own: Vec<f64> = preset
            .memories()
            .into_iter()
            .map(|memory_bytes| {
                let means = Means {
                    memory_bytes,
                    ..Means::default()
                };
                means.own_memory_bytes() as f64
            })
            .collect();
        assert!(leaf_bytes > 3.0 * own[0] && leaf_bytes < own[own.len() - 1] / 3.0);
        assert!(own.is_sorted());
    }

    #[test]
    fn the_mixes_of_the_paper_are_all_there_with_and_without_room() {
        for preset in [Preset::Mixes, Preset::MixesLarge] {
            assert_eq!(preset.mixes().len(), 6);
            assert_eq!(preset.engines(), [Kind::Kreon, Kind::Rocksdb]);
            assert_eq!(preset.workloads().len(), 3);
        }
        assert!(Preset::Mixes.memory_bytes() >= 4 * Preset::Mixes.data_bytes());
        assert!(Preset::MixesLarge.data_bytes() >= 4 * Preset::MixesLarge.memory_bytes());
    }
}
