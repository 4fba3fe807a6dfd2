//! How long keys and values are.

use serde::{Deserialize, Serialize};

use crate::keys::hash;

/// A distribution of the sizes of pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[value(rename_all = "lower")]
pub enum Mix {
    #[default]
    /// Keys of 30 B and values of 1000 B, as YCSB's ten columns (`Kreon 4.1`).
    K,
    /// Small pairs: 33 B (`Tebis`, table 3.2). Here and below keys have 24 B.
    S,
    /// Medium pairs: 123 B.
    M,
    /// Large pairs: 1023 B.
    L,
    /// Small-dominated: 60 % small, 20 % medium, 20 % large.
    Sd,
    /// Medium-dominated: 20 % small, 60 % medium, 20 % large.
    Md,
    /// Large-dominated: 20 % small, 20 % medium, 60 % large.
    Ld,
    /// Keys of 24 B and values of 48 B, of no paper: an index that is large for its pairs.
    T,
}

const SMALL_BYTES: usize = 33;
const MEDIUM_BYTES: usize = 123;
const LARGE_BYTES: usize = 1023;
const INDEXED_BYTES: usize = 72;

impl Mix {
    /// Length of every key.
    pub fn key_bytes(self) -> usize {
        match self {
            Self::K => 30,
            _ => 24,
        }
    }

    /// Length of the value of record `number`: the same for every version of it.
    pub fn value_bytes(self, number: u64) -> usize {
        let pair_bytes = match self {
            Self::K => return 1000,
            Self::S => SMALL_BYTES,
            Self::M => MEDIUM_BYTES,
            Self::L => LARGE_BYTES,
            Self::Sd => of_shares(number, 60, 20),
            Self::Md => of_shares(number, 20, 60),
            Self::Ld => of_shares(number, 20, 20),
            Self::T => INDEXED_BYTES,
        };
        pair_bytes - self.key_bytes()
    }

    /// Mean length of key and value together.
    pub fn pair_bytes_mean(self) -> f64 {
        let mean = |small: usize, medium: usize, large: usize| {
            (small * SMALL_BYTES + medium * MEDIUM_BYTES + large * LARGE_BYTES) as f64 / 100.0
        };
        match self {
            Self::K => 1030.0,
            Self::S => mean(100, 0, 0),
            Self::M => mean(0, 100, 0),
            Self::L => mean(0, 0, 100),
            Self::Sd => mean(60, 20, 20),
            Self::Md => mean(20, 60, 20),
            Self::Ld => mean(20, 20, 60),
            Self::T => INDEXED_BYTES as f64,
        }
    }

    /// Its name, as the papers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::K => "K",
            Self::S => "S",
            Self::M => "M",
            Self::L => "L",
            Self::Sd => "SD",
            Self::Md => "MD",
            Self::Ld => "LD",
            Self::T => "T",
        }
    }
}

fn of_shares(number: u64, small_percent: u64, medium_percent: u64) -> usize {
    match hash(number ^ 0x517e) % 100 {
        percent if percent < small_percent => SMALL_BYTES,
        percent if percent < small_percent + medium_percent => MEDIUM_BYTES,
        _ => LARGE_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_have_their_mean() {
        for mix in [
            Mix::K,
            Mix::S,
            Mix::M,
            Mix::L,
            Mix::Sd,
            Mix::Md,
            Mix::Ld,
            Mix::T,
        ] {
            let sum: usize = (0..20_000)
                .map(|n| mix.key_bytes() + mix.value_bytes(n))
                .sum();
            let mean = sum as f64 / 20_000.0;
            assert!(
                (mean / mix.pair_bytes_mean() - 1.0).abs() < 0.03,
                "{mix:?}: {mean}"
            );
        }
    }
}
