//! Every planted bug of the machines is found, and by a way that is short enough to read.

use std::sync::Mutex;

use kreon_base::Bug;
use kreon_cluster_sim::explore::{Bounds, search};
use kreon_cluster_sim::slots::search_slots;
use kreon_cluster_sim::walk::{Course, walk};

/// Bugs are planted in the whole process.
static PLANT: Mutex<()> = Mutex::new(());

fn with<T>(bug: Bug, hunt: impl FnOnce() -> T) -> T {
    let _alone = PLANT
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    bug.plant();
    let found = hunt();
    Bug::pull_out();
    found
}

/// The search with two replicas finds `bug` within so many steps.
fn is_found(bug: Bug, steps_max: usize) {
    let verdict = with(bug, || search(&Bounds::TWO));
    let found = verdict
        .found
        .unwrap_or_else(|| panic!("{bug:?} was not found"));
    let steps = found.steps.len();
    assert!(
        steps <= steps_max,
        "{bug:?}: {steps} steps: {:?}",
        found.steps
    );
}

#[test]
fn a_removed_member_that_is_counted_is_found() {
    is_found(Bug::RemovedMemberCounted, 10);
}

#[test]
fn a_joiner_that_is_not_counted_is_found() {
    is_found(Bug::JoinerUncounted, 13);
}

#[test]
fn acknowledging_while_a_member_is_removed_is_found() {
    is_found(Bug::NoFreeze, 10);
}

#[test]
fn being_alone_without_a_flush_is_found() {
    is_found(Bug::NoFlushBeforeAlone, 10);
}

#[test]
fn accepting_lower_terms_is_found() {
    is_found(Bug::LowerTermAccepted, 12);
}

#[test]
fn an_end_computed_before_the_drain_is_found() {
    is_found(Bug::EndBeforeDrain, 10);
}

#[test]
fn a_restarted_process_that_is_kept_is_found() {
    is_found(Bug::RestartedProcessKept, 10);
}

#[test]
fn a_promotion_by_a_part_of_a_set_that_failed_is_found() {
    is_found(Bug::PartOfSetSuffices, 11);
}

#[test]
fn an_ignored_outcome_of_a_swap_is_found() {
    is_found(Bug::CasIgnored, 10);
}

#[test]
fn slots_that_are_repaired_only_if_older_are_found() {
    let verdict = with(Bug::OnlyOlderSlotsRepaired, search_slots);
    let steps = verdict.found.expect("the bug is found");
    assert!(steps.len() <= 9, "{steps:?}");
}

/// One of the first `seeds` walks finds `bug`.
fn is_met(bug: Bug, seeds: u64) {
    let walked = |seed| {
        let course = Course {
            seed,
            seconds: 30,
            trace: false,
            operator_lies: false,
        };
        walk(&course).broken
    };
    let met = with(bug, || (1..=seeds).find_map(walked));
    assert!(met.is_some(), "{bug:?} was not met");
}

#[test]
fn a_dirty_read_is_met() {
    is_met(Bug::DirtyRead, 1000);
}

#[test]
fn a_read_that_waits_for_a_part_of_a_batch_is_met() {
    is_met(Bug::BatchByFirstRecord, 1000);
}

#[test]
fn a_read_confirmed_by_an_earlier_beat_is_met() {
    is_met(Bug::BeatBeforeValue, 1000);
}

#[test]
fn a_lost_reply_read_without_sync_is_met() {
    is_met(Bug::LostReplyReadWithoutSync, 1000);
}

#[test]
fn taking_office_by_message_is_met() {
    is_met(Bug::OfficeByMessage, 1000);
}

#[test]
fn a_sole_member_without_a_lease_is_met() {
    is_met(Bug::AloneWithoutLease, 1000);
}

#[test]
fn taking_office_at_once_after_accepted_loss_is_met() {
    is_met(Bug::AcceptLossWithoutGrace, 1000);
}
