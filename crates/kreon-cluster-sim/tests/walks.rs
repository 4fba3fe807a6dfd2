//! Random walks keep every promise, and a seed tells all of it.

use kreon_cluster_sim::walk::{Course, walk};

fn course(seed: u64) -> Course {
    Course {
        seed,
        seconds: 30,
        trace: false,
    }
}

#[test]
fn walks_keep_what_was_promised() {
    let (mut acknowledged, mut terms, mut joins) = (0, 0, 0);
    for seed in 1..=100 {
        let walked = walk(&course(seed));
        assert_eq!(walked.broken, None, "seed {seed}");
        let count = |what| walked.counts.get(what).copied().unwrap_or_default();
        acknowledged += count("acknowledged");
        terms += count("term served");
        joins += count("join completed");
    }
    // Otherwise nothing was tried.
    assert!(acknowledged > 5000, "{acknowledged} writes acknowledged");
    assert!(terms > 150 && joins > 50, "{terms} terms, {joins} joins");
}

#[test]
fn the_same_seed_tells_the_same_walk() {
    assert_eq!(walk(&course(7)).counts, walk(&course(7)).counts);
    assert_ne!(walk(&course(7)).counts, walk(&course(8)).counts);
}
