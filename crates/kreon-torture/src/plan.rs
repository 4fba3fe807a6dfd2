//! Which crash states are tried at a power cut.

use kreon_format::SUPERBLOCK_PAGES;
use kreon_sim::{Crash, Dice, Keep};

use crate::stale::Stale;

/// A crash state and the name of its class.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its class, for counting.
    pub class: &'static str,
    /// What survives.
    pub keep: Keep,
    /// Superblock slots that show an older content after it, if any.
    pub stale: Option<Stale>,
}

impl Choice {
    /// A state in which nothing is stale.
    fn new(class: &'static str, keep: Keep) -> Self {
        Self {
            class,
            keep,
            stale: None,
        }
    }

    /// Whether part of a superblock slot survives a write of it.
    pub fn tears_superblock(&self, crash: &Crash<'_>) -> bool {
        let slots = SUPERBLOCK_PAGES.map(|page| page.offset_bytes());
        let is_of_slot = |write: u64| {
            let mut pending = crash.pending().into_iter();
            pending.any(|p| p.write == write && slots.contains(&p.offset))
        };
        match &self.keep {
            Keep::Torn { write, .. } => is_of_slot(*write),
            Keep::SomeSectors { .. } => crash.pending().iter().any(|p| slots.contains(&p.offset)),
            _ => false,
        }
    }
}

/// Pairwise drops are tried when no more writes than this are open.
const PAIRS_MAX: usize = 8;

/// Of prefixes, drops, and torn writes so many are tried at one cut.
const EACH_MAX: usize = 24;

/// The states that are tried at `crash`. `seed` is that of the random ones.
pub fn choices(crash: &Crash<'_>, seed: u64) -> Vec<Choice> {
    let mut all = Vec::new();
    let mut add = |class, keep| all.push(Choice::new(class, keep));
    let pending = crash.pending();
    let writes: Vec<u64> = pending.iter().map(|w| w.write).collect();
    add("nothing", Keep::Nothing);
    if writes.is_empty() {
        return all;
    }
    add("all", Keep::All);
    let mut dice = Dice::new(seed);
    let without = |gone: &[u64]| {
        Keep::Writes(
            writes
                .iter()
                .copied()
                .filter(|w| !gone.contains(w))
                .collect(),
        )
    };
    if writes.len() > 1 {
        for &write in some(&mut dice, &writes) {
            if Some(&write) != writes.first() {
                add("prefix", Keep::Before { write });
            }
            add("drop one", without(&[write]));
            add("keep one", Keep::Writes(vec![write]));
        }
    }
    if (3..=PAIRS_MAX).contains(&writes.len()) {
        for (index, &one) in writes.iter().enumerate() {
            for &other in writes.iter().skip(index + 1) {
                add("drop two", without(&[one, other]));
            }
        }
    }
    for write in some(&mut dice, &pending) {
        if write.sectors > 1 {
            let middle = 1 + dice.below(write.sectors - 1);
            for sectors in [1, middle, write.sectors - 1] {
                add(
                    "torn",
                    Keep::Torn {
                        write: write.write,
                        sectors,
                    },
                );
            }
        }
    }
    if writes.len() > 2 {
        for _ in 0..4 {
            add("some writes", Keep::SomeWrites { seed: dice.roll() });
        }
    }
    for _ in 0..6 {
        add("some sectors", Keep::SomeSectors { seed: dice.roll() });
    }
    all
}

/// Up to [`EACH_MAX`] of `items`, evenly, the last always among them.
fn some<'a, T>(dice: &mut Dice, items: &'a [T]) -> impl Iterator<Item = &'a T> + use<'a, T> {
    let stride = items.len().div_ceil(EACH_MAX).max(1);
    let shift = dice.below(stride as u64) as usize;
    let last = items.len().saturating_sub(1);
    items
        .iter()
        .enumerate()
        .filter(move |(index, _)| index % stride == shift || *index == last)
        .map(|(_, item)| item)
}
