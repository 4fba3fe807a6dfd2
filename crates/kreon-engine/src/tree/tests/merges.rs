//! Thousands of random merges against the model.

use kreon_base::Lsn;

use super::cursors::check_cursors;
use super::keys::{FAMILIES, Family};
use super::model::{Content, Entries, Model, visible};
use super::random::Random;
use super::readers::check_gets;
use crate::tree::MergeRules;

const FILLS: [f32; 6] = [0.02, 0.06, 0.12, 0.3, 0.95, 1.0];

/// A history of writes, snapshots and merges from a seed.
struct History {
    random: Random,
    pool: Vec<Vec<u8>>,
    model: Model,
    snapshots: Vec<Lsn>,
    next_lsn: u64,
    fill: f32,
}

impl History {
    fn new(seed: u64, family: Family, keys: usize) -> Self {
        let mut random = Random::new(seed);
        let pool = family.pool(&mut random, keys);
        let fill = *random.pick(&FILLS);
        let mut model = Model::default();
        // In one merge or in parts; the result must be the same.
        model.parts = [1, 3, 16][seed as usize % 3];
        Self {
            pool,
            model,
            snapshots: Vec::new(),
            next_lsn: 1,
            fill,
            random,
        }
    }

    fn change_snapshots(&mut self) {
        if self.random.one_in(3) {
            self.snapshots.push(Lsn(self.next_lsn));
        }
        if self.random.one_in(3) && !self.snapshots.is_empty() {
            let gone = self.random.below(self.snapshots.len());
            self.snapshots.remove(gone);
        }
    }

    /// Keys that a batch of writes goes to: a share of the pool, all over it or side by side.
    fn draw_keys(&mut self) -> Vec<Vec<u8>> {
        let count = self.pool.len();
        let share = *self
            .random
            .pick(&[1, 2, 5, count / 20 + 1, count / 4 + 1, count]);
        let start = self.random.below(count);
        let clustered = self.random.one_in(2);
        let mut keys: Vec<_> = (0..share)
            .map(|i| {
                let at = if clustered {
                    start + i
                } else {
                    self.random.below(count)
                };
                self.pool[at % count].clone()
            })
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }

    fn write(&mut self) -> Entries {
        let mut input = Entries::new();
        let mostly_deletes = self.random.one_in(3);
        for round in 0..1 + self.random.below(3) {
            for key in self.draw_keys() {
                let lsn = Lsn(self.next_lsn);
                self.next_lsn += 1;
                let content = self.content(&key, mostly_deletes);
                input.entry(key).or_default().insert(0, (lsn, content));
            }
            if round == 0 {
                self.change_snapshots();
            }
        }
        input
    }

    fn content(&mut self, key: &[u8], mostly_deletes: bool) -> Content {
        let is_deletion = self.random.one_in(if mostly_deletes { 1 } else { 6 })
            || (mostly_deletes && !self.random.one_in(8));
        let offset = self.model.memory.log_record(key);
        if is_deletion {
            Content::Deleted(offset)
        } else if key.len() <= 1024 && self.random.one_in(3) {
            Content::Inline(vec![7; self.random.below(120)])
        } else {
            Content::Logged(offset, self.random.below(1 << 20) as u32)
        }
    }

    fn merge(&mut self, input: &Entries) {
        let before = self.model.entries.clone();
        let rules = MergeRules {
            expired_by: None,
            snapshots: &self.snapshots,
            last_level: self.random.one_in(2),
            fill: self.fill,
            rewrites_all: self.random.one_in(4),
            filter_bits_per_key: *self.random.pick(&[0, 1, 10, 24]),
        };
        self.model.merge(input, &rules);
        let ats = self.snapshots.iter().copied().chain([Lsn::MAX]);
        for at in ats {
            check_views(&before, input, &self.model.entries, at, rules.last_level);
        }
    }

    fn run(mut self, merges: usize) {
        for _ in 0..merges {
            let input = self.write();
            self.merge(&input);
            if self.random.one_in(4) {
                // A crash: the snapshots are gone, and the last input is merged again.
                self.snapshots.clear();
                let replayed = newest_only(&input);
                self.merge(&replayed);
            }
            if self.random.one_in(8) {
                check_cursors(&self.model, &self.pool, &mut self.random);
                check_gets(&self.model, &self.pool, &self.snapshots, &mut self.random);
            }
        }
    }
}

/// After a merge every reader sees the same as from the input above the old tree.
fn check_views(before: &Entries, input: &Entries, after: &Entries, at: Lsn, last_level: bool) {
    for key in before.keys().chain(input.keys()) {
        let mut all = input.get(key).cloned().unwrap_or_default();
        all.extend(before.get(key).cloned().unwrap_or_default());
        let hides = |content: &&Content| last_level && matches!(content, Content::Deleted(_));
        let expected = visible(&all, at).filter(|content| !hides(content));
        let found = after.get(key).and_then(|versions| visible(versions, at));
        assert_eq!(found.filter(|content| !hides(content)), expected);
    }
}

fn newest_only(input: &Entries) -> Entries {
    let newest = input
        .iter()
        .map(|(key, versions)| (key.clone(), versions[..1].to_vec()));
    newest.collect()
}

fn run_histories(family: Family, seeds: u64, keys: usize, merges: usize) {
    for seed in 0..seeds {
        History::new(seed, family, keys).run(merges);
    }
}

#[test]
fn merges_of_user_keys_agree_with_the_model() {
    run_histories(Family::User, 40, 400, 25);
    run_histories(Family::User, 3, 6000, 12);
}

#[test]
fn merges_of_sparse_keys_agree_with_the_model() {
    run_histories(Family::Sparse, 60, 500, 25);
}

#[test]
fn merges_of_keys_with_a_long_shared_prefix_agree_with_the_model() {
    run_histories(Family::SharedPrefix, 30, 200, 20);
}

#[test]
fn merges_of_keys_at_the_border_of_long_agree_with_the_model() {
    run_histories(Family::Border, 40, 300, 25);
}

#[test]
fn merges_of_huge_keys_agree_with_the_model() {
    run_histories(Family::Huge, 4, 30, 12);
}

#[test]
fn merges_of_mixed_keys_agree_with_the_model() {
    run_histories(Family::Mixed, 20, 250, 20);
}

#[test]
fn many_versions_of_few_keys_agree_with_the_model() {
    for (seed, family) in (100..).zip(FAMILIES) {
        let mut history = History::new(seed, family, 4);
        for _ in 0..40 {
            history.snapshots.push(Lsn(history.next_lsn));
            let input = history.write();
            history.merge(&input);
        }
        history.run(10);
    }
}
