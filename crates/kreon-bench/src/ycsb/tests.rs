//! An engine that answers wrongly makes the run fail.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::choice::Distribution;
use super::mix::Mix;
use super::phase::{Outcome, Phase};
use super::workload::Workload;
use crate::engine::Engine;

/// What the engine does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    /// Every hundredth get shows the value of another key.
    Value,
    /// Every hundredth put is forgotten.
    Lost,
    /// Scans of some length show two records in the wrong order.
    Unsorted,
    /// Scans begin one record too late.
    Late,
    /// Scans end one record too early.
    Short,
    /// Puts fail now and then.
    Refused,
}

struct Map {
    pairs: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    wrong: Wrong,
    calls: Mutex<u64>,
}

impl Map {
    /// Whether it is time to be wrong in this way.
    fn is_time(&self, wrong: Wrong) -> bool {
        let mut calls = self.calls.lock().unwrap();
        *calls += 1;
        self.wrong == wrong && calls.is_multiple_of(101)
    }
}

impl Engine for Map {
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        anyhow::ensure!(!self.is_time(Wrong::Refused), "planted");
        if !self.is_time(Wrong::Lost) {
            self.pairs
                .lock()
                .unwrap()
                .insert(key.to_vec(), value.to_vec());
        }
        Ok(())
    }

    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        let pairs = self.pairs.lock().unwrap();
        if self.is_time(Wrong::Value) {
            let other = pairs.iter().find(|(other, _)| other.as_slice() != key);
            return Ok(other.map(|(_, value)| show(value)).is_some());
        }
        Ok(pairs.get(key).map(|value| show(value)).is_some())
    }

    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize> {
        let pairs = self.pairs.lock().unwrap();
        let mut found: Vec<_> = pairs.range(start.to_vec()..).take(count).collect();
        match self.wrong {
            Wrong::Unsorted if found.len() > 5 => found.swap(2, 3),
            Wrong::Late => found = pairs.range(start.to_vec()..).skip(1).take(count).collect(),
            Wrong::Short => drop(found.pop()),
            _ => {}
        }
        found.iter().for_each(|(key, value)| show(key, value));
        Ok(found.len())
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(())
    }
}

fn run(wrong: Wrong, workload: Workload) -> (Outcome, Outcome) {
    run_together(wrong, workload, 1)
}

fn run_together(wrong: Wrong, workload: Workload, reads_together: u32) -> (Outcome, Outcome) {
    let map = Map {
        pairs: Mutex::default(),
        wrong,
        calls: Mutex::default(),
    };
    let mut phase = Phase {
        workload: Workload::LoadA,
        mix: Mix::Sd,
        distribution: Some(Distribution::Uniform),
        records: 0,
        requests: 2000,
        seconds_max: None,
        threads: 2,
        reads_together,
        ops_per_second: None,
        rest_seconds: 0.0,
        seed: 7,
    };
    let load = phase.run(&map, &mut |_, _| {}).unwrap();
    phase.records = load.records;
    phase.workload = workload;
    phase.requests = 1000;
    let outcome = phase.run(&map, &mut |_, _| {}).unwrap();
    (load, outcome)
}

#[test]
fn a_right_store_passes_all_workloads() {
    for workload in Workload::ALL {
        let (load, outcome) = run(Wrong::Nothing, workload);
        assert_eq!(load.records, 2000);
        assert_eq!(outcome.requests, 1000);
        assert_eq!(outcome.latencies.len(), 1000, "{workload:?}");
        assert_eq!(
            outcome.failures.count(),
            0,
            "{workload:?}: {:?}",
            outcome.failures
        );
    }
}

#[test]
fn a_wrong_value_is_a_failure() {
    let (_, outcome) = run(Wrong::Value, Workload::C);
    assert!(outcome.failures.wrong > 0 && outcome.failures.first.is_some());
}

#[test]
fn reads_in_one_call_count_one_by_one_and_are_checked() {
    let (_, outcome) = run_together(Wrong::Nothing, Workload::C, 7);
    assert_eq!((outcome.requests, outcome.latencies.len()), (1000, 1000));
    assert_eq!(outcome.failures.count(), 0, "{:?}", outcome.failures);
    let (_, outcome) = run_together(Wrong::Value, Workload::C, 7);
    assert!(outcome.failures.wrong > 0);
    let (_, outcome) = run_together(Wrong::Lost, Workload::C, 7);
    assert!(outcome.failures.missing > 0);
}

#[test]
fn a_lost_record_is_a_failure() {
    let (_, outcome) = run(Wrong::Lost, Workload::C);
    assert!(outcome.failures.missing > 0);
}

#[test]
fn a_scan_out_of_order_is_a_failure() {
    for wrong in [Wrong::Unsorted, Wrong::Late, Wrong::Short] {
        let (_, outcome) = run(wrong, Workload::G);
        assert!(outcome.failures.unsorted > 0);
    }
}

#[test]
fn a_refused_request_is_a_failure() {
    let (load, _) = run(Wrong::Refused, Workload::C);
    assert!(load.failures.errors > 0);
}
