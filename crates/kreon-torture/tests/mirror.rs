//! A primary and its backup, cut at some moments of a few scripts. `cargo xtask mirror` tries more.

use kreon_torture::{Counts, mirror};

fn passes(counts: &Counts, least: u64) {
    assert_eq!(counts.failed, 0, "{counts}");
    assert!(counts.total() >= least, "{counts}");
}

#[test]
fn a_backup_is_what_its_packets_say_in_their_order() {
    passes(&mirror::followers(1), 20);
}

#[test]
fn a_backup_whose_stream_was_cut_has_all_that_was_acknowledged() {
    // With a thread that sends the log, and a store that the stream brings from its beginning.
    passes(&mirror::stream_cuts(3, false), 60);
    passes(&mirror::stream_cuts(4, false), 60);
}

#[test]
fn after_power_cuts_of_both_either_goes_on_and_the_other_one_opens() {
    passes(&mirror::double_cuts(1), 30);
    passes(&mirror::double_cuts(2), 30);
}

#[test]
fn a_follower_with_more_log_than_its_primary_never_shows_the_rest() {
    passes(&mirror::longer_logs(1), 40);
}

#[test]
fn a_member_that_joins_under_writes_is_no_store_until_it_is_a_whole_one() {
    passes(&mirror::joins(4), 20);
}

#[test]
fn a_joiner_that_dies_again_and_again_or_is_slow_becomes_a_whole_store_in_the_end() {
    passes(&mirror::joins(1), 20);
    passes(&mirror::joins(2), 20);
}
