//! What a store must hold after every prefix of what was acknowledged.
//!
//! Writes and changes of regions count separately. A region is made in the log: it is there if anything is that was
//! written after it, and only if all is that was written before it. A drop is durable when it is acknowledged. A region
//! that is dropped and made again is another *instance*.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::content::{Content, Digest, Pairs, sum, sums, weight};
use crate::script::Change;

/// A change of a key of an instance.
type KeyChange = (usize, Vec<u8>, Option<Digest>);

#[derive(Clone)]
enum RegionChange {
    Made {
        instance: usize,
        /// Units that were written before.
        after: usize,
    },
    Dropped(usize),
}

/// See the module's text.
#[derive(Clone, Default)]
pub struct Model {
    /// Name and pairs at the start of each instance.
    instances: Vec<(String, Pairs)>,
    /// Instances that exist at the start.
    present: Vec<usize>,
    units: Vec<Vec<KeyChange>>,
    /// Units that are loads.
    loads: BTreeSet<usize>,
    region_changes: Vec<RegionChange>,
    /// Instance by name, after everything.
    current: BTreeMap<String, usize>,
    /// Pairs of the instances after everything.
    latest: Vec<Pairs>,
    /// Sums of the instances after each prefix of the units.
    sums: Vec<Vec<u64>>,
}

/// A state of a model: prefixes of the units and of the changes of regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Units.
    pub units: usize,
    /// Changes of regions.
    pub region_changes: usize,
}

impl Model {
    /// A model of a store that holds `content`.
    pub fn of(content: &Content) -> Self {
        let instances: Vec<_> = content
            .iter()
            .map(|(n, p)| (n.clone(), p.clone()))
            .collect();
        Self {
            present: (0..instances.len()).collect(),
            current: content.keys().cloned().zip(0..).collect(),
            latest: content.values().cloned().collect(),
            sums: vec![content.values().map(sum).collect()],
            instances,
            ..Self::default()
        }
    }

    /// Everything that happened.
    pub fn end(&self) -> Prefix {
        Prefix {
            units: self.units.len(),
            region_changes: self.region_changes.len(),
        }
    }

    /// A region is made.
    pub fn make_region(&mut self, name: &str) {
        let instance = self.instances.len();
        self.instances.push((name.to_owned(), Pairs::new()));
        self.latest.push(Pairs::new());
        self.current.insert(name.to_owned(), instance);
        let after = self.units.len();
        let made = RegionChange::Made { instance, after };
        self.region_changes.push(made);
    }

    /// A region is dropped.
    pub fn drop_region(&mut self, name: &str) {
        if let Some(instance) = self.current.remove(name) {
            self.region_changes.push(RegionChange::Dropped(instance));
        }
    }

    /// Takes back the last change of regions: it was refused.
    pub fn undo_region_change(&mut self) {
        match self.region_changes.pop() {
            Some(RegionChange::Made { instance, .. }) => {
                self.current.retain(|_, i| *i != instance);
            }
            Some(RegionChange::Dropped(instance)) => {
                if let Some((name, _)) = self.instances.get(instance) {
                    self.current.insert(name.clone(), instance);
                }
            }
            None => {}
        }
    }

    /// Whether a region exists after everything.
    pub fn has_region(&self, name: &str) -> bool {
        self.current.contains_key(name)
    }

    /// A unit is written.
    pub fn write(&mut self, changes: &[Change], digests: &[Option<Digest>]) {
        let mut unit = Vec::new();
        let mut sums = self.sums.last().cloned().unwrap_or_default();
        sums.resize(self.instances.len(), 0);
        for (change, digest) in changes.iter().zip(digests) {
            let Some(&instance) = self.current.get(&change.region) else {
                continue;
            };
            let latest = &mut self.latest[instance];
            let sum = &mut sums[instance];
            let keys = match change.until {
                None => vec![change.key.clone()],
                Some(_) => latest
                    .keys()
                    .filter(|key| change.erases(key))
                    .cloned()
                    .collect(),
            };
            let digest = digest.filter(|_| change.until.is_none());
            for key in keys {
                apply(latest, &key, digest, Some(&mut *sum));
                unit.push((instance, key, digest));
            }
        }
        self.units.push(unit);
        self.sums.push(sums);
    }

    /// A load is a unit, too.
    pub fn load(&mut self, changes: &[Change], digests: &[Option<Digest>]) {
        self.loads.insert(self.units.len());
        self.write(changes, digests);
    }

    /// Whether `found` is the content after as many units as the bounds say, but for the last load, or the last few,
    /// which never happened.
    pub fn lacks_loads(
        &self,
        found: &Content,
        units: RangeInclusive<usize>,
        region_changes: RangeInclusive<usize>,
    ) -> bool {
        let found = sums(found);
        units.into_iter().any(|units| {
            self.loads.iter().any(|first_lost| {
                let kept = |unit: &usize| unit < first_lost || !self.loads.contains(unit);
                let pairs = self.pairs_of((0..units).filter(kept));
                region_changes.clone().any(|region_changes| {
                    let present = self.present_after(region_changes).into_iter();
                    let of = |instance: usize| pairs.get(instance).map_or(0, sum);
                    present
                        .map(|(name, instance)| (name, of(instance)))
                        .eq(found.iter().cloned())
                })
            })
        })
    }

    /// Takes back the last unit: it was refused.
    pub fn undo_write(&mut self) {
        self.units.pop();
        self.loads.remove(&self.units.len());
        self.sums.pop();
        self.latest = self.pairs_after(self.units.len());
    }

    /// The prefix, within the bounds, that `found` is the content of; the longest.
    pub fn find(
        &self,
        found: &Content,
        units: RangeInclusive<usize>,
        region_changes: RangeInclusive<usize>,
    ) -> Option<Prefix> {
        self.find_sums(&sums(found), units, region_changes)
    }

    /// As [`find`](Self::find), with the [`sums`] of the content.
    pub fn find_sums(
        &self,
        found: &[(String, u64)],
        units: RangeInclusive<usize>,
        region_changes: RangeInclusive<usize>,
    ) -> Option<Prefix> {
        let all = self.candidates(found, units, region_changes);
        all.into_iter().find(|prefix| self.is_of_one_log(*prefix))
    }

    /// As [`find`](Self::find), where lost writes may have changed the order of writes and changes of regions.
    pub fn find_in_any_order(
        &self,
        found: &Content,
        units: RangeInclusive<usize>,
        region_changes: RangeInclusive<usize>,
    ) -> Option<Prefix> {
        let all = self.candidates(&sums(found), units, region_changes);
        all.first().copied()
    }

    /// The longest come first.
    fn candidates(
        &self,
        found: &[(String, u64)],
        units: RangeInclusive<usize>,
        region_changes: RangeInclusive<usize>,
    ) -> Vec<Prefix> {
        let mut all = Vec::new();
        for region_changes in region_changes.rev() {
            let present = self.present_after(region_changes);
            if !present.keys().eq(found.iter().map(|(name, _)| name)) {
                continue;
            }
            for units in units.clone().rev() {
                let Some(sums) = self.sums.get(units) else {
                    continue;
                };
                let mut both = present.values().zip(found);
                if both.all(|(instance, (_, sum))| sums.get(*instance).unwrap_or(&0) == sum) {
                    all.push(Prefix {
                        units,
                        region_changes,
                    });
                }
            }
        }
        all
    }

    /// Whether no region is there without what was written before it was made, and none is missing of which or after
    /// which something was written.
    fn is_of_one_log(&self, prefix: Prefix) -> bool {
        let changes = self.region_changes.iter().enumerate();
        let mut makings = changes.filter_map(|(index, change)| match change {
            RegionChange::Made { after, .. } => Some((index, *after)),
            RegionChange::Dropped(_) => None,
        });
        makings.all(|(index, after)| match index < prefix.region_changes {
            true => prefix.units >= after,
            false => prefix.units <= after,
        })
    }

    /// All prefixes, within the bounds, that `found` is the content of.
    pub fn find_all(
        &self,
        found: &Content,
        units: RangeInclusive<usize>,
        region_changes: RangeInclusive<usize>,
    ) -> Vec<Prefix> {
        let found: BTreeMap<_, _> = found.iter().map(|(n, p)| (n.clone(), sum(p))).collect();
        let mut all = Vec::new();
        for region_changes in region_changes {
            let present = self.present_after(region_changes);
            if !present.keys().eq(found.keys()) {
                continue;
            }
            for units in units.clone() {
                let Some(sums) = self.sums.get(units) else {
                    break;
                };
                let mut both = present.values().zip(found.values());
                if both.all(|(instance, sum)| sums.get(*instance).unwrap_or(&0) == sum) {
                    all.push(Prefix {
                        units,
                        region_changes,
                    });
                }
            }
        }
        all
    }

    /// Forgets what came behind `prefix`: it was lost, and will not come back.
    pub fn truncate(&mut self, prefix: Prefix) {
        self.units.truncate(prefix.units);
        self.loads.split_off(&prefix.units);
        self.sums.truncate(prefix.units + 1);
        self.region_changes.truncate(prefix.region_changes);
        self.latest = self.pairs_after(prefix.units);
        self.current = self.present_after(prefix.region_changes);
    }

    /// The content after a prefix.
    pub fn content(&self, prefix: Prefix) -> Content {
        let pairs = self.pairs_after(prefix.units);
        let present = self.present_after(prefix.region_changes);
        present
            .into_iter()
            .map(|(name, i)| (name, pairs.get(i).cloned().unwrap_or_default()))
            .collect()
    }

    fn present_after(&self, region_changes: usize) -> BTreeMap<String, usize> {
        let name = |i: usize| {
            self.instances
                .get(i)
                .map(|(name, _)| name.clone())
                .unwrap_or_default()
        };
        let mut present: BTreeMap<_, _> = self.present.iter().map(|&i| (name(i), i)).collect();
        for change in self.region_changes.iter().take(region_changes) {
            match change {
                RegionChange::Made { instance, .. } => {
                    present.insert(name(*instance), *instance);
                }
                RegionChange::Dropped(i) => drop(present.remove(&name(*i))),
            }
        }
        present
    }

    fn pairs_after(&self, units: usize) -> Vec<Pairs> {
        self.pairs_of(0..units)
    }

    fn pairs_of(&self, units: impl Iterator<Item = usize>) -> Vec<Pairs> {
        let mut pairs: Vec<_> = self
            .instances
            .iter()
            .map(|(_, pairs)| pairs.clone())
            .collect();
        for (instance, key, digest) in units.filter_map(|unit| self.units.get(unit)).flatten() {
            if let Some(pairs) = pairs.get_mut(*instance) {
                apply(pairs, key, *digest, None);
            }
        }
        pairs
    }
}

fn apply(pairs: &mut Pairs, key: &[u8], digest: Option<Digest>, sum: Option<&mut u64>) {
    let old = match digest {
        Some(digest) => pairs.insert(key.to_vec(), digest),
        None => pairs.remove(key),
    };
    if let Some(sum) = sum {
        let of = |value: Option<Digest>| value.map_or(0, |value| weight(key, value));
        *sum = sum.wrapping_sub(of(old)).wrapping_add(of(digest));
    }
}
