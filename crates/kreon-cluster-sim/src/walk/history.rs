//! What clients saw of each key, and whether one order of all calls explains it.
//!
//! Each write has a value of its own, so the check needs no search (Gibbons and Korach, *Testing shared memories*): a
//! write with the reads that saw it is a cluster. If all of a cluster happened one after the other, the key had its
//! value from the first end to the last beginning; these stretches may not overlap, and no cluster whose calls all
//! overlap may lie within one. A write whose outcome is unknown ends never; if nobody saw it, it never was.

use std::collections::BTreeMap;

use crate::toy::Write;

/// Keys that clients use.
pub(super) const KEYS: usize = 4;

/// Number of a call.
pub(super) type Call = u64;

/// A call as its client saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) key: usize,
    pub(super) begun_us: u64,
    /// When it ended well; a write without may take effect at any time.
    pub(super) ended_us: Option<u64>,
    pub(super) what: What,
}

/// What it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Write(Write),
    /// It found this; none: nothing was ever written.
    Read(Option<Write>),
}

/// Calls since loss was last accepted.
#[derive(Debug, Default)]
pub(super) struct History {
    under_way: BTreeMap<Call, Seen>,
    ended: Vec<Seen>,
    /// What keys had at the beginning, which nobody may doubt.
    first: [Option<Write>; KEYS],
    begun_us: u64,
    pub(super) checked: u64,
}

impl History {
    pub(super) fn begin(&mut self, call: Call, key: usize, what: What, now_us: u64) {
        let seen = Seen {
            key,
            begun_us: now_us,
            ended_us: None,
            what,
        };
        self.under_way.insert(call, seen);
    }

    /// The call under way.
    pub(super) fn call(&self, call: Call) -> Option<Seen> {
        self.under_way.get(&call).copied()
    }

    /// It ended well; a read found this.
    pub(super) fn end(&mut self, call: Call, found: Option<Write>, now_us: u64) {
        let Some(mut seen) = self.under_way.remove(&call) else {
            return;
        };
        let is_old = seen.begun_us < self.begun_us;
        match &mut seen.what {
            What::Read(_) if is_old => return, // it may have been answered before the loss
            What::Read(value) => *value = found,
            What::Write(_) if is_old => return self.keep_unknown(seen),
            What::Write(_) => {}
        }
        seen.ended_us = Some(now_us);
        self.ended.push(seen);
    }

    /// Nobody knows whether it was carried out.
    pub(super) fn doubt(&mut self, call: Call) {
        if let Some(seen) = self.under_way.remove(&call) {
            self.keep_unknown(seen);
        }
    }

    /// It was not carried out, and never will be.
    pub(super) fn drop(&mut self, call: Call) {
        self.under_way.remove(&call);
    }

    fn keep_unknown(&mut self, seen: Seen) {
        if matches!(seen.what, What::Write(_)) {
            self.ended.push(seen);
        }
    }

    /// Loss was accepted: from now on keys have these values, unless a write without an answer comes yet.
    pub(super) fn begin_anew(
        &mut self,
        first: [Option<Write>; KEYS],
        now_us: u64,
    ) -> Option<usize> {
        let wrong = self.check();
        (self.first, self.begun_us) = (first, now_us);
        self.ended
            .retain(|seen| matches!(seen.what, What::Write(_)) && seen.ended_us.is_none());
        for seen in &mut self.ended {
            seen.begun_us = now_us;
        }
        wrong
    }

    /// A key for which no order of the calls explains what clients saw.
    pub(super) fn check(&mut self) -> Option<usize> {
        self.checked += self.ended.len() as u64;
        let under_way = self.under_way.values();
        let writes = under_way.filter(|seen| matches!(seen.what, What::Write(_)));
        let calls: Vec<Seen> = self.ended.iter().chain(writes).copied().collect();
        (0..KEYS).find(|key| {
            let of_key = calls.iter().filter(|seen| seen.key == *key);
            !is_explained(self.first[*key], of_key)
        })
    }
}

/// A write, and when it was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Cluster {
    written_us: Option<u64>,
    first_end_us: u64,
    last_begin_us: u64,
    was_read: bool,
    has_ended: bool,
}

impl Cluster {
    fn from(written_us: u64, ended_us: Option<u64>) -> Self {
        Self {
            written_us: Some(written_us),
            first_end_us: ended_us.unwrap_or(u64::MAX),
            last_begin_us: written_us,
            was_read: false,
            has_ended: ended_us.is_some(),
        }
    }
}

fn is_explained<'a>(first: Option<Write>, calls: impl Iterator<Item = &'a Seen> + Clone) -> bool {
    let mut clusters = BTreeMap::from([(first, Cluster::from(0, Some(0)))]);
    for seen in calls.clone() {
        if let What::Write(write) = seen.what
            && first != Some(write)
        {
            clusters.insert(Some(write), Cluster::from(seen.begun_us, seen.ended_us));
        }
    }
    for seen in calls {
        if let (What::Read(found), Some(ended_us)) = (seen.what, seen.ended_us) {
            let Some(cluster) = clusters.get_mut(&found) else {
                return false; // of a write that was refused, or lost
            };
            if cluster.written_us.is_some_and(|us| ended_us < us) {
                return false;
            }
            cluster.was_read = true;
            cluster.first_end_us = cluster.first_end_us.min(ended_us);
            cluster.last_begin_us = cluster.last_begin_us.max(seen.begun_us);
        }
    }
    let counts = |cluster: &&Cluster| cluster.was_read || cluster.has_ended;
    let counted: Vec<&Cluster> = clusters.values().filter(counts).collect();
    let ahead = |c: &&&Cluster| c.first_end_us < c.last_begin_us;
    let mut held: Vec<(u64, u64)> = counted
        .iter()
        .filter(ahead)
        .map(|c| (c.first_end_us, c.last_begin_us))
        .collect();
    held.sort_unstable();
    if held.windows(2).any(|pair| pair[1].0 < pair[0].1) {
        return false;
    }
    let mut open = counted.iter().filter(|c| !ahead(c));
    !open.any(|c| {
        let before = held.partition_point(|stretch| stretch.0 < c.last_begin_us);
        before > 0 && c.first_end_us < held[before - 1].1
    })
}

#[cfg(test)]
mod tests {
    use kreon_sim::Dice;

    use super::*;

    /// Whether some order of the calls explains them, by trying all.
    fn by_force(calls: &[Seen], done: u32, value: Option<Write>) -> bool {
        let open = |at: usize| done >> at & 1 == 0;
        let must = |at: &usize| open(*at) && calls[*at].ended_us.is_some();
        if !(0..calls.len()).any(|at| must(&at)) {
            return true;
        }
        let first_end = (0..calls.len())
            .filter(must)
            .filter_map(|at| calls[at].ended_us)
            .min();
        (0..calls.len()).filter(|at| open(*at)).any(|at| {
            let may = first_end.is_none_or(|end| calls[at].begun_us <= end);
            let next = match calls[at].what {
                What::Write(write) => Some(Some(write)),
                What::Read(found) => (found == value).then_some(value),
            };
            may && next.is_some_and(|next| by_force(calls, done | 1 << at, next))
        })
    }

    fn seen(begun_us: u64, ended_us: Option<u64>, what: What) -> Seen {
        Seen {
            key: 0,
            begun_us,
            ended_us,
            what,
        }
    }

    #[test]
    fn the_check_says_what_trying_all_orders_says() {
        let (mut explained, mut wrong) = (0, 0);
        for seed in 0..60_000 {
            let mut dice = Dice::new(seed);
            let count = 2 + dice.below(5) as usize;
            let mut moments: Vec<u64> = (1..=2 * count as u64).collect();
            let mut draw = || moments.swap_remove(dice.below(moments.len() as u64) as usize);
            let times: Vec<(u64, u64)> = (0..count)
                .map(|_| {
                    let (a, b) = (draw(), draw());
                    (a.min(b), a.max(b))
                })
                .collect();
            let writes = 1 + dice.below(count as u64) as usize;
            let mut calls = Vec::new();
            for (at, (begun, ended)) in times.iter().enumerate() {
                let (what, ended) = if at < writes {
                    let known = dice.below(4) != 0;
                    (What::Write(at as Write), known.then_some(*ended))
                } else {
                    let found = dice.below(writes as u64 + 1);
                    let found = (found as usize != writes).then_some(found as Write);
                    (What::Read(found), Some(*ended))
                };
                calls.push(seen(*begun, ended, what));
            }
            let expected = by_force(&calls, 0, None);
            assert_eq!(is_explained(None, calls.iter()), expected, "{calls:?}");
            *if expected { &mut explained } else { &mut wrong } += 1;
        }
        assert!(explained > 1000 && wrong > 1000, "{explained}, {wrong}");
    }

    #[test]
    fn a_read_of_what_was_refused_is_not_explained() {
        let mut history = History::default();
        history.begin(1, 0, What::Write(5), 10);
        history.drop(1);
        history.begin(2, 0, What::Read(None), 20);
        history.end(2, Some(5), 30);
        assert_eq!(history.check(), Some(0));
    }

    #[test]
    fn after_accepted_loss_keys_have_what_is_left() {
        let mut history = History::default();
        history.begin(1, 0, What::Write(5), 10);
        history.end(1, None, 20);
        assert_eq!(history.begin_anew([None; KEYS], 30), None);
        history.begin(2, 0, What::Read(None), 40);
        history.end(2, None, 50);
        assert_eq!(history.check(), None);
        history.begin(3, 0, What::Read(None), 60);
        history.end(3, Some(5), 70);
        assert_eq!(history.check(), Some(0));
    }
}
