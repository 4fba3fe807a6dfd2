//! Random walks keep every promise, and a seed tells all of it.

use std::collections::BTreeMap;

use kreon_cluster_sim::walk::{CLASSES, Course, walk};

fn course(seed: u64) -> Course {
    Course {
        seed,
        seconds: 30,
        trace: false,
        operator_lies: false,
    }
}

#[test]
fn walks_keep_what_was_promised_and_everything_happens() {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 1..=300 {
        let walked = walk(&course(seed));
        assert_eq!(walked.broken, None, "seed {seed}");
        for (what, count) in walked.counts {
            *counts.entry(what).or_default() += count;
        }
    }
    // Otherwise nothing was tried.
    let never = |class: &&&str| counts.get(**class).is_none_or(|count| *count == 0);
    let never: Vec<_> = CLASSES.iter().filter(never).collect();
    assert!(never.is_empty(), "never happened: {never:?} of {counts:?}");
}

#[test]
fn an_operator_who_vouches_for_processes_that_run_is_met() {
    let lying = |seed| Course {
        operator_lies: true,
        ..course(seed)
    };
    assert!((1..=300).any(|seed| walk(&lying(seed)).broken.is_some()));
}

#[test]
fn the_same_seed_tells_the_same_walk() {
    assert_eq!(walk(&course(7)).counts, walk(&course(7)).counts);
    assert_ne!(walk(&course(7)).counts, walk(&course(8)).counts);
}
