//! Loads, and what is done around and within them: most of what can go wrong with a load needs a write of one of its
//! keys, a snapshot, a spill, or an end of a log segment at the right moment.

use std::collections::BTreeMap;

use kreon_engine::Durability;

use super::{Author, Change, Handed, Lifetime, Step, Value};

/// Longer than a log segment: what was logged before lies in one that ends.
const GIANT_BYTES: usize = 2 << 20;

impl Author {
    /// A load of up to twenty pairs, often under a snapshot, which is read behind it.
    pub(super) fn load(&mut self, steps: &mut Vec<Step>) {
        let index = self.dice.below(self.regions.len() as u64) as usize;
        let region = self.regions.get(index).cloned().unwrap_or_default();
        if self.dice.below(3) == 0 {
            steps.push(Step::Snapshot);
        }
        let count = self.dice.below(20);
        let pairs: BTreeMap<_, _> = (0..count).map(|_| (self.key(), self.value())).collect();
        let keys: Vec<_> = pairs.keys().cloned().collect();
        let mut handed = Vec::new();
        for (key, value) in pairs {
            let mut before = Vec::new();
            if self.dice.below(4) == 0 {
                self.beside(&region, &keys, &mut before);
            }
            handed.push(Handed { before, key, value });
        }
        self.pass_segment(&mut handed);
        steps.push(Step::Ingest(region, handed));
        match self.dice.below(8) {
            0..=2 => steps.push(Step::Release),
            3 | 4 => steps.push(Step::Read),
            5 => steps.push(Step::Reopen),
            6 if self.shape.kills => steps.push(Step::Kill),
            _ => {}
        }
    }

    /// What others do while a load into `region` with these keys runs.
    fn beside(&mut self, region: &str, keys: &[Vec<u8>], steps: &mut Vec<Step>) {
        steps.push(match self.dice.below(18) {
            0..=7 => {
                let mut changes: Vec<_> =
                    (0..1 + self.dice.below(3)).map(|_| self.change()).collect();
                let at = self.dice.below(2 * keys.len() as u64) as usize;
                if let (Some(key), Some(change)) = (keys.get(at), changes.first_mut()) {
                    change.region = region.to_owned();
                    change.key.clone_from(key);
                }
                Step::Write(changes, self.durability())
            }
            8..=10 => Step::Checkpoint,
            11 => Step::Sync,
            12 => Step::Image,
            13 => Step::Snapshot,
            14 => Step::Release,
            15 | 16 => Step::Collect,
            _ => Step::Read,
        });
    }

    /// Now and then the log leaves the segment behind that holds what was handed in first, and a checkpoint comes.
    fn pass_segment(&mut self, handed: &mut [Handed]) {
        let allowed = self.shape.giants_max;
        if self.giants >= allowed || self.dice.below(3) > 0 {
            return;
        }
        let at = self.dice.below(handed.len().max(1) as u64) as usize;
        let (Some(handed), Some(region)) = (handed.get_mut(at), self.regions.first()) else {
            return;
        };
        self.giants += 1;
        let giant = Change {
            region: region.clone(),
            key: b"giant".to_vec(),
            value: Some(Value {
                len_bytes: GIANT_BYTES,
                seed: self.dice.roll(),
            }),
            until: None,
            lifetime: Lifetime::Unlimited,
        };
        let write = Step::Write(vec![giant], Durability::Buffered);
        handed.before.extend([write, Step::Checkpoint]);
    }
}
