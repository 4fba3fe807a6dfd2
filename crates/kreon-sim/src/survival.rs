//! What a power cut leaves of writes that were not flushed.

use crate::dice::Dice;

/// A content that a sector, or a length that the device, may have after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Number of the write (or growth) that made it.
    pub write: u64,
    /// Which sector of that write it is, from 0; 0 for a growth.
    pub sector_of_write: u64,
}

/// Chooses what survives a power cut. `versions` holds the choices from oldest to newest, at least
/// one; the answer is an index into it, or `None` for what was durable before them.
pub trait Survival {
    /// The content of `sector` (its offset divided by [`SECTOR_BYTES`](crate::SECTOR_BYTES)).
    fn sector(&mut self, sector: u64, versions: &[Version]) -> Option<usize>;

    /// The length of the device: by default the last.
    fn length(&mut self, versions: &[Version]) -> Option<usize> {
        versions.len().checked_sub(1)
    }
}

impl<F: FnMut(u64, &[Version]) -> Option<usize>> Survival for F {
    fn sector(&mut self, sector: u64, versions: &[Version]) -> Option<usize> {
        self(sector, versions)
    }
}

/// The usual choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Everything arrived.
    All,
    /// Nothing that was not flushed arrived.
    Nothing,
    /// The writes before number `write` arrived whole, the others not at all.
    Before {
        /// Number of the first write that was lost.
        write: u64,
    },
    /// The writes before number `write` arrived whole, and of this one the first `sectors`.
    Torn {
        /// Number of the torn write.
        write: u64,
        /// Sectors of it that arrived.
        sectors: u64,
    },
    /// Exactly these writes arrived, whole, later ones over earlier ones. The numbers to choose from:
    /// [`Crash::pending`](crate::Crash::pending).
    Writes(Vec<u64>),
    /// Each write arrived whole or not at all, by the toss of a coin.
    SomeWrites {
        /// Seed of the tosses.
        seed: u64,
    },
    /// Each sector has any of its contents.
    SomeSectors {
        /// Seed of the dice.
        seed: u64,
    },
}

impl Keep {
    fn keeps(&self, version: &Version) -> bool {
        match self {
            Self::All => true,
            Self::Nothing | Self::SomeSectors { .. } => false,
            Self::Before { write } => version.write < *write,
            Self::Torn { write, sectors } => {
                version.write < *write
                    || version.write == *write && version.sector_of_write < *sectors
            }
            Self::Writes(kept) => kept.contains(&version.write),
            Self::SomeWrites { seed } => Dice::of(*seed, version.write) & 1 == 1,
        }
    }

    fn choose(&self, place: u64, versions: &[Version]) -> Option<usize> {
        if let Self::SomeSectors { seed } = self {
            let choices = versions.len() as u64 + 1;
            let choice = (Dice::of(*seed, place) % choices) as usize;
            return choice.checked_sub(1);
        }
        versions.iter().rposition(|version| self.keeps(version))
    }
}

impl Survival for Keep {
    fn sector(&mut self, sector: u64, versions: &[Version]) -> Option<usize> {
        self.choose(sector, versions)
    }

    fn length(&mut self, versions: &[Version]) -> Option<usize> {
        // No sector has this number.
        self.choose(u64::MAX, versions)
    }
}
