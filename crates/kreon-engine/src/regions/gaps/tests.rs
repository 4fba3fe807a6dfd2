use std::collections::BTreeMap;
use std::ops::Bound;

use super::*;
use crate::options::Clock;

const KEYS: u64 = 200;

/// Numbers without order, the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
        (self.0 >> 33) % bound
    }
}

/// A region of which every past state is known, and its gaps.
struct Model {
    gaps: Gaps,
    gate: Gate,
    snapshots: Snapshots,
    /// For each key the positions of its writes, and whether it had a value from then on.
    history: Vec<Vec<(u64, bool)>>,
    tail: u64,
    open: Vec<Moment>,
}

impl Model {
    fn new() -> Self {
        Self {
            gaps: Gaps::default(),
            gate: Gate::default(),
            snapshots: Snapshots::default(),
            history: vec![Vec::new(); KEYS as usize],
            tail: 1,
            open: Vec::new(),
        }
    }

    fn key(number: u64) -> [u8; 2] {
        (2 * number as u16).to_be_bytes()
    }

    fn has(&self, number: u64, at: u64) -> bool {
        let writes = self.history[number as usize].iter().rev();
        let mut seen = writes.filter(|(lsn, _)| *lsn < at);
        seen.next().is_some_and(|(_, has)| *has)
    }

    fn write(&mut self, number: u64, has: bool) {
        let _inside = self.gate.enter();
        self.history[number as usize].push((self.tail, has));
        self.tail += 1;
        if has {
            self.gaps.note_put(&Self::key(number));
        }
    }

    fn delete_range(&mut self, from: u64, to: u64) {
        let (start, end) = (Self::key(from), Self::key(to));
        let end = (to < KEYS).then_some(&end[..]);
        let mark = self.gaps.watch_range(&start, end, &self.gate).unwrap();
        for number in from..to {
            self.history[number as usize].push((self.tail, false));
        }
        self.tail += 1;
        let end = Lsn(self.tail);
        self.gaps.note_deleted_range(mark, end, &self.snapshots);
    }

    fn snapshot(&mut self) -> Moment {
        let tail = self.tail;
        self.snapshots
            .open(&self.gate, &Clock::default(), || Lsn(tail))
    }

    /// Walks from `start` as a scan does, up to the first key with a value. Returns the dead entries that it passed.
    fn walk(&self, start: u64, moment: Moment, direction: Direction) -> u64 {
        let known = self.gaps.known();
        let gaps = known.as_ref().map_or(&[][..], |known| known.gaps());
        let passing = Passing::new(gaps, moment.at, direction);
        let mut run = DeadRun::new(direction);
        let mut place = Bound::Included(Self::key(start).to_vec());
        if let Some(past) = passing.start(&place) {
            let Some(past) = past else { return 0 };
            run.pass_gap(&past);
            place = past;
        }
        while let Some(number) = Self::at(&place, direction) {
            if self.has(number, moment.at.0) {
                break;
            }
            let mut key = Self::key(number).to_vec();
            place = Bound::Excluded(key.clone());
            let past = passing.behind(&key);
            run.pass(&mut key);
            match past {
                None => {}
                Some(None) => break,
                Some(Some(past)) => {
                    run.pass_gap(&past);
                    place = past;
                }
            }
        }
        if run.is_long() {
            let around = (&self.gate, &self.snapshots);
            self.gaps.note_run(&run, moment, &[direction], around);
        }
        run.entries()
    }

    /// The first key at `place` or behind.
    fn at(place: &Bound<Vec<u8>>, direction: Direction) -> Option<u64> {
        let is_at = |number: &u64| {
            let key = Self::key(*number);
            match (direction, place) {
                (_, Bound::Unbounded) => true,
                (Direction::Forward, Bound::Included(place)) => key[..] >= place[..],
                (Direction::Forward, Bound::Excluded(place)) => key[..] > place[..],
                (Direction::Backward, Bound::Included(place)) => key[..] <= place[..],
                (Direction::Backward, Bound::Excluded(place)) => key[..] < place[..],
            }
        };
        match direction {
            Direction::Forward => (0..KEYS).find(is_at),
            Direction::Backward => (0..KEYS).rev().find(is_at),
        }
    }

    /// Every gap holds for the snapshots for which it says so.
    fn check(&self) {
        let Some(known) = self.gaps.known() else {
            return;
        };
        let open = self.open.iter().map(|moment| moment.at.0);
        for at in open.chain([self.tail]) {
            for gap in known.gaps().iter().filter(|gap| gap.since.0 <= at) {
                let inside = (0..KEYS).filter(|number| gap.keys.has(&Self::key(*number)));
                for number in inside {
                    assert!(!self.has(number, at), "{number} at {at}: {gap:?}");
                }
            }
        }
        let pairs = known.gaps().windows(2);
        for pair in pairs {
            assert!(
                !pair[0].keys.has(&pair[1].keys.start) && pair[0].keys.start < pair[1].keys.start
            );
        }
    }
}

#[test]
fn gaps_never_hide_a_value_whatever_is_put_deleted_and_scanned() {
    let mut gaps_seen = 0;
    for seed in 0..12 {
        let (mut dice, mut model) = (Dice(seed), Model::new());
        for number in 0..KEYS {
            model.write(number, true);
        }
        for _ in 0..250 {
            match dice.below(10) {
                0..3 => {
                    let from = dice.below(KEYS);
                    let to = (from + dice.below(90)).min(KEYS);
                    (from..to).for_each(|number| model.write(number, false));
                }
                3 => model.write(dice.below(KEYS), true),
                4 => {
                    let from = dice.below(KEYS);
                    model.delete_range(from, from + 1 + dice.below(KEYS - from));
                }
                5 => {
                    let moment = model.snapshot();
                    model.open.push(moment);
                }
                6 if !model.open.is_empty() => {
                    let at = dice.below(model.open.len() as u64);
                    let moment = model.open.swap_remove(at as usize);
                    model.snapshots.close(moment.at);
                }
                _ => {
                    let moment = match dice.below(3) {
                        0 if !model.open.is_empty() => {
                            model.open[dice.below(model.open.len() as u64) as usize]
                        }
                        _ => {
                            let moment = model.snapshot();
                            model.snapshots.close(moment.at);
                            moment
                        }
                    };
                    let way = [Direction::Forward, Direction::Backward][dice.below(2) as usize];
                    model.walk(dice.below(KEYS), moment, way);
                }
            }
            model.check();
            gaps_seen += model.gaps.known().map_or(0, |known| known.gaps().len());
        }
    }
    assert!(gaps_seen > 200, "{gaps_seen}");
}

#[test]
fn a_queue_passes_few_dead_entries_however_long_it_was() {
    for direction in [Direction::Forward, Direction::Backward] {
        let mut model = Model::new();
        let mut passed = 0;
        let mut numbers: Vec<u64> = (0..KEYS).collect();
        let mut start = 0;
        if direction == Direction::Backward {
            numbers.reverse();
            start = KEYS - 1;
        }
        let mut states: BTreeMap<u64, u64> = BTreeMap::new();
        for (at, number) in numbers.iter().enumerate() {
            model.write(*number, true);
            if let Some(oldest) = at.checked_sub(5) {
                let moment = model.snapshot();
                let dead = model.walk(start, moment, direction);
                model.snapshots.close(moment.at);
                passed += dead;
                *states.entry(dead).or_default() += 1;
                model.write(numbers[oldest], false);
            }
            model.check();
        }
        assert!(passed < 40 * KEYS, "{passed}: {states:?}");
        let most = states.keys().next_back().unwrap();
        assert!(*most <= 2 * RUN_ENTRIES_MIN, "{states:?}");
    }
}

#[test]
fn an_open_snapshot_keeps_the_gaps_that_are_good_for_it() {
    let mut model = Model::new();
    let delete = |model: &mut Model, numbers: std::ops::Range<u64>| {
        numbers.for_each(|number| model.write(number, false));
    };
    let walk = |model: &mut Model| {
        let moment = model.snapshot();
        model.snapshots.close(moment.at);
        model.walk(0, moment, Direction::Forward)
    };
    (0..KEYS).for_each(|number| model.write(number, true));
    delete(&mut model, 0..100);
    assert_eq!([walk(&mut model), walk(&mut model)], [100; 2]);
    assert!(walk(&mut model) <= 1);
    let held = model.snapshot();
    model.open.push(held);
    delete(&mut model, 100..150);
    // The keys behind the gap are watched since the scan before.
    assert_eq!(walk(&mut model), 50);
    assert!(walk(&mut model) <= 1);
    // The snapshot sees the keys from 100 on, and goes past the gap in front of them.
    assert!(model.walk(0, held, Direction::Forward) <= 1);
    model.check();
}

#[test]
fn what_is_put_while_a_range_is_deleted_stays() {
    let mut model = Model::new();
    (0..KEYS).for_each(|number| model.write(number, true));
    let (start, end) = (Model::key(10), Model::key(50));
    let mark = model
        .gaps
        .watch_range(&start, Some(&end), &model.gate)
        .unwrap();
    for number in 10..50 {
        model.history[number].push((model.tail, false));
    }
    model.tail += 1;
    let deleted = Lsn(model.tail);
    // Behind the deletion, before its gap is there.
    model.write(30, true);
    model
        .gaps
        .note_deleted_range(mark, deleted, &model.snapshots);
    model.check();
    let known = model.gaps.known().unwrap();
    assert!(known.gap_around(&Model::key(20)).is_some());
    assert!(known.gap_around(&Model::key(30)).is_none());
}

#[test]
fn gaps_are_few_and_those_that_are_worth_most() {
    let mut model = Model::new();
    (0..KEYS).for_each(|number| model.write(number, true));
    model.delete_range(0, KEYS);
    for number in 0..KEYS {
        model.write(number * 7 % KEYS, true);
        model.check();
        let known = model.gaps.known();
        assert!(known.is_none_or(|known| known.gaps().len() <= 32));
    }
}
