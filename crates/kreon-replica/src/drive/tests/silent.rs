//! Servers that say nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_sync::Ordering;
use kreon_wire::GroupId;

use super::cluster::{Cluster, SILENCE, options, timing, wait_until};
use super::volume::SimVolume;
use crate::machine::Timing;

const GROUP: GroupId = GroupId(1);

#[test]
fn a_candidate_does_not_wait_out_its_patience_for_a_frozen_member_without_a_session() {
    let patience = 20 * SILENCE;
    let timing = Timing {
        silence_us: patience.as_micros() as u64,
        attempt_us: 10 * patience.as_micros() as u64,
        ..timing()
    };
    let cluster = Cluster::new(&[GROUP], timing);
    let nodes = [1, 2, 3].map(|server| {
        let volume = Arc::new(SimVolume::new());
        cluster.start(server, vec![(GROUP, volume)], options())
    });
    cluster.make(GROUP, &[&nodes[0], &nodes[1], &nodes[2]], 1);
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1], &nodes[2]]);
    let frozen = nodes.iter().find(|node| node.serves(GROUP)).unwrap();
    assert!(frozen.put(GROUP, 0..50));
    frozen.filter.lose(|_| true);
    let started = Instant::now();
    cluster
        .cut_off
        .store(1 << frozen.me.server.0, Ordering::Release);
    let others = || nodes.iter().filter(|node| node.me != frozen.me);
    wait_until("another one serves", || {
        others().any(|node| node.serves(GROUP))
    });
    let took: Duration = started.elapsed();
    assert!(took < patience / 2, "{took:?} of {patience:?}");
    let next = others().find(|node| node.serves(GROUP)).unwrap();
    assert!(next.has(GROUP, 0..50));
    assert_eq!(cluster.known(GROUP).config.in_sync.len(), 2);
}

#[test]
fn a_backup_that_hears_of_its_removal_from_nobody_comes_back() {
    let cluster = Cluster::new(&[GROUP], timing());
    let nodes = [1, 2].map(|server| {
        let volume = Arc::new(SimVolume::new());
        cluster.start(server, vec![(GROUP, volume)], options())
    });
    cluster.make(GROUP, &[&nodes[0], &nodes[1]], 1);
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
    let (primary, backup) = match nodes[0].serves(GROUP) {
        true => (&nodes[0], &nodes[1]),
        false => (&nodes[1], &nodes[0]),
    };
    assert!(primary.put(GROUP, 0..20));
    let bit = 1 << backup.me.server.0;
    cluster.unwatched.store(bit, Ordering::Release);
    backup.filter.lose(|_| true);
    wait_until("it is removed, as it answers no beats", || {
        cluster.known(GROUP).config.in_sync.len() == 1
    });
    // The primary has closed the stream by then, and said so to nobody who heard it.
    std::thread::sleep(SILENCE / 4);
    backup.filter.let_pass();
    cluster.await_set(GROUP, &[primary, backup]);
}

#[test]
fn a_last_backup_that_answers_no_flush_is_removed_though_somebody_waits_for_that_flush() {
    let cluster = Cluster::new(&[GROUP], timing());
    let nodes = [1, 2].map(|server| {
        let volume = Arc::new(SimVolume::new());
        cluster.start(server, vec![(GROUP, volume)], options())
    });
    cluster.make(GROUP, &[&nodes[0], &nodes[1]], 1);
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
    let (primary, backup) = match nodes[0].serves(GROUP) {
        true => (&nodes[0], &nodes[1]),
        false => (&nodes[1], &nodes[0]),
    };
    assert!(primary.put(GROUP, 0..20));
    let bit = 1 << backup.me.server.0;
    cluster.unwatched.store(bit, Ordering::Release);
    backup.filter.is_deaf.store(true, Ordering::Release);
    backup.filter.lose(|_| true);
    // Waits for the backup, which hears nothing of it.
    let store = primary.group(GROUP).store().unwrap();
    primary.group(GROUP).sync(store.engine().log_tail());
    std::thread::sleep(SILENCE / 4);
    assert!(
        primary.put(GROUP, 20..30),
        "acknowledged without the backup"
    );
    assert_eq!(cluster.known(GROUP).config.in_sync[..], [primary.me]);
    backup.filter.is_deaf.store(false, Ordering::Release);
    backup.filter.let_pass();
    cluster.await_set(GROUP, &[primary, backup]);
}
