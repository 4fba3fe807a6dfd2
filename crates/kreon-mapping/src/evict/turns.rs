//! Turns of eviction: one for each group of shards, so that threads evict beside each other (FastMap keeps its lists by
//! core for the same reason).
//!
//! A thread goes through the shards of its group first. Priorities hold over all shards: before it takes a page of a
//! lower number in its group, it goes through all others.

use crate::shared::{EvictGuard, EvictMutex};
use crate::well::thread_number;

/// Shards of a group.
const SHARDS_OF_GROUP: usize = 2;

/// Fewest frames for each group: threads that evict a batch each at the same time leave nearly all pages where they are.
const FRAMES_OF_GROUP: usize = 1024;

/// All turns.
pub(super) struct Turns {
    /// Where each group goes on: counts the shards that were looked at.
    hands: Box<[EvictMutex<usize>]>,
    shards: usize,
}

/// A turn, until dropped.
pub(super) struct Turn<'a> {
    hand: EvictGuard<'a, usize>,
    group: usize,
    groups: usize,
    shards: usize,
}

/// Which shards a hunt goes through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Those of the turn's group.
    Group,
    /// All.
    All,
}

impl Turns {
    /// Turns over `shards` shards that share `frames` frames.
    pub(super) fn new(shards: usize, frames: usize) -> Self {
        let groups = (shards / SHARDS_OF_GROUP).min(frames / FRAMES_OF_GROUP);
        Self {
            hands: (0..groups.max(1)).map(|_| EvictMutex::default()).collect(),
            shards,
        }
    }

    /// How many there are.
    #[cfg(feature = "lock-times")]
    pub(super) fn len(&self) -> usize {
        self.hands.len()
    }

    /// The turn of this thread's group, or else the next one that nobody has. Waits if others have them all.
    pub(super) fn take(&self) -> Turn<'_> {
        let groups = self.hands.len();
        let own = thread_number() % groups;
        let mut near = (0..groups).map(|i| (own + i) % groups);
        let free = near.find_map(|group| Some((group, self.hands[group].try_lock()?)));
        let (group, hand) = free.unwrap_or_else(|| (own, self.hands[own].lock()));
        Turn {
            hand,
            group,
            groups,
            shards: self.shards,
        }
    }
}

impl Turn<'_> {
    /// How many shards there are within reach.
    pub(super) fn shards(&self, reach: Reach) -> usize {
        match reach {
            Reach::Group => (self.shards - self.group).div_ceil(self.groups),
            Reach::All => self.shards,
        }
    }

    /// The next shard within reach.
    pub(super) fn next(&mut self, reach: Reach) -> usize {
        *self.hand = self.hand.wrapping_add(1);
        let i = *self.hand % self.shards(reach);
        match reach {
            Reach::Group => self.group + i * self.groups,
            Reach::All => i,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn groups_share_all_shards_and_none_twice() {
        for shards in [1, 2, 3, 7, 8, 64] {
            let turns = Turns::new(shards, 1 << 20);
            let mut seen = BTreeSet::new();
            let mut taken = Vec::new();
            for _ in 0..turns.hands.len() {
                let mut turn = turns.take();
                for _ in 0..turn.shards(Reach::Group) {
                    let shard = turn.next(Reach::Group);
                    assert!(shard < shards && seen.insert(shard), "{shard} of {shards}");
                }
                taken.push(turn);
            }
            assert_eq!(seen.len(), shards);
        }
    }

    #[test]
    fn a_turn_that_reaches_all_goes_through_every_shard() {
        let turns = Turns::new(8, 1 << 20);
        let mut turn = turns.take();
        turn.next(Reach::Group);
        let seen: BTreeSet<_> = (0..8).map(|_| turn.next(Reach::All)).collect();
        assert_eq!(seen.len(), 8);
    }

    #[test]
    fn few_frames_have_one_turn() {
        assert_eq!(Turns::new(8, 2047).hands.len(), 1);
        assert_eq!(Turns::new(8, 2048).hands.len(), 2);
        assert_eq!(Turns::new(8, 1 << 20).hands.len(), 4);
    }
}
