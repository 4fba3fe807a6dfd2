//! All states within small bounds hold what is promised.

use kreon_cluster_sim::explore::{Bounds, search, sweep};
use kreon_cluster_sim::slots::search_slots;

#[test]
fn two_replicas_lose_nothing_in_any_state_within_bounds() {
    let verdict = search(&Bounds::TWO);
    assert!(verdict.found.is_none(), "{:?}", verdict.found);
    assert!(verdict.is_complete);
    assert!(verdict.states > 100_000, "only {} states", verdict.states);
}

#[test]
fn three_replicas_lose_nothing_within_a_first_crash() {
    let bounds = Bounds {
        writes: 1,
        crashes: 1,
        terms: 2,
        ..Bounds::THREE
    };
    let verdict = search(&bounds);
    assert!(verdict.found.is_none(), "{:?}", verdict.found);
    assert!(verdict.is_complete);
}

#[test]
fn every_replica_opens_whatever_slots_survive() {
    let verdict = search_slots();
    assert!(verdict.found.is_none(), "{:?}", verdict.found);
    assert!(verdict.states > 1000, "only {} states", verdict.states);
}

#[test]
fn both_orders_of_search_see_the_same_states() {
    let bounds = Bounds {
        writes: 1,
        crashes: 1,
        ..Bounds::TWO
    };
    let (broad, deep) = (search(&bounds), sweep(&bounds));
    assert!(broad.is_complete && deep.is_complete);
    assert_eq!(broad.states, deep.states);
}
