//! Bounded runs of what `kreon-torture` does at length.

use kreon_sim::{Call, Effect, Fault};
use kreon_torture::{Extent, crashes, faults, sim};

#[test]
fn every_crash_state_is_a_prefix_of_what_was_acknowledged() {
    let counts = sim(250, 1000);
    assert_eq!(counts.failed, 0, "{counts}");
    assert!(counts.tried.len() >= 8, "{counts}");
}

#[test]
fn every_single_fault_is_taken_well() {
    let extent = Extent {
        stride: 60,
        ..Extent::default()
    };
    let counts = faults(3, extent);
    assert_eq!(counts.failed, 0, "{counts}");
    assert!(counts.tried.len() >= 20, "{counts}");
}

#[test]
fn a_device_that_flushes_nothing_is_found_out() {
    let lost = Fault::nth(3, Call::Flush, Effect::Lost).for_ever();
    let counts = crashes::sim_with(120, 3, Some(&lost));
    assert!(counts.failed > 5, "{counts}");
}
