//! Devices that fail, and stores that cannot be opened.

use std::sync::Arc;

use kreon_engine::Options;
use kreon_sim::{Call, Effect, Fault};
use kreon_sync::Ordering;
use kreon_wire::GroupId;

use super::super::Volume as _;
use super::cluster::{Cluster, Node, SILENCE, options, timing, wait_until};
use super::volume::SimVolume;
use crate::machine::Timing;

const GROUP: GroupId = GroupId(1);

fn fails_for_ever(volume: &SimVolume, call: Call) {
    let fault = Fault::nth(1, call, Effect::Io).for_ever();
    volume.device.inject(fault);
}

fn start(cluster: &Cluster, server: u32, volume: &SimVolume, options: Options) -> Node {
    cluster.start(server, vec![(GROUP, Arc::new(volume.clone()))], options)
}

/// The index of the primary, and that of the other one.
fn roles(nodes: &[Node; 2]) -> (usize, usize) {
    match nodes[0].serves(GROUP) {
        true => (0, 1),
        false => (1, 0),
    }
}

#[test]
fn a_primary_whose_log_cannot_be_written_resigns_though_nobody_asks_for_a_flush() {
    let cluster = Cluster::new(&[GROUP], timing());
    let volumes = [SimVolume::new(), SimVolume::new()];
    let nodes = [1, 2].map(|server| {
        let volume = &volumes[server as usize - 1];
        start(&cluster, server, volume, options())
    });
    cluster.make(GROUP, &[&nodes[0], &nodes[1]], 1);
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
    let (first, second) = roles(&nodes);
    assert!(nodes[first].put(GROUP, 0..50));
    fails_for_ever(&volumes[first], Call::Write);
    // What the other one has in memory is acknowledged, whatever the device here does.
    nodes[first].put(GROUP, 50..60);
    wait_until("the other one serves", || nodes[second].serves(GROUP));
    assert!(nodes[second].has(GROUP, 0..50));
    // When it can be written again, the first one is copied to as a whole.
    volumes[first].device.clear_faults();
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
    assert!(nodes[second].serves(GROUP));
}

#[test]
fn a_candidate_whose_store_cannot_be_opened_leaves_the_office_to_another_at_once() {
    // So long that an attempt never ends by its time.
    let cluster = Cluster::new(
        &[GROUP],
        Timing {
            attempt_us: 600_000_000,
            silence_us: 2_000_000,
            ..timing()
        },
    );
    let volumes = [SimVolume::new(), SimVolume::new(), SimVolume::new()];
    let no_memory = Options {
        memory_bytes: 1,
        ..options()
    };
    let nodes: Vec<Node> = [options(), no_memory, options()]
        .into_iter()
        .enumerate()
        .map(|(index, options)| start(&cluster, index as u32 + 1, &volumes[index], options))
        .collect();
    cluster.make(GROUP, &[&nodes[0], &nodes[1], &nodes[2]], 1);
    // Of equals the first one is promoted, then the second one.
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1], &nodes[2]]);
    let (first, last) = match nodes[0].serves(GROUP) {
        true => (0, 2),
        false => (2, 0),
    };
    assert!(nodes[first].put(GROUP, 0..100));
    nodes[first].server.end();
    wait_until("the last one serves", || nodes[last].serves(GROUP));
    assert!(nodes[last].has(GROUP, 0..100));
}

#[test]
fn what_a_failed_device_has_is_not_reported_before_it_is_copied_or_known() {
    let cluster = Cluster::new(&[GROUP], timing());
    let volumes = [SimVolume::new(), SimVolume::new()];
    let start = |server: u32| start(&cluster, server, &volumes[server as usize - 1], options());
    let nodes = [1, 2].map(start);
    cluster.make(GROUP, &[&nodes[0], &nodes[1]], 1);
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
    let (first, second) = roles(&nodes);
    assert!(nodes[first].put(GROUP, 0..100));
    nodes[first].sync(GROUP);
    // Its flush fails, when it is sealed at the latest; and the only other member is gone.
    fails_for_ever(&volumes[second], Call::Flush);
    nodes[first].server.end();
    wait_until("the device has failed", || {
        nodes[second].group(GROUP).core().has_failed
    });
    std::thread::sleep(4 * SILENCE);
    assert!(!nodes[second].serves(GROUP));
    assert_eq!(cluster.known(GROUP).config.primary, None);
    // A flush that succeeds now says nothing.
    volumes[second].device.clear_faults();
    std::thread::sleep(4 * SILENCE);
    assert!(!nodes[second].serves(GROUP));
    drop(nodes);
    let nodes = [1, 2].map(start);
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
    let (first, _) = roles(&nodes);
    assert!(nodes[first].has(GROUP, 0..100));
}

#[test]
fn a_backup_whose_device_failed_is_copied_to_as_a_whole_and_counts_again() {
    let cluster = Cluster::new(&[GROUP], timing());
    let volumes = [SimVolume::new(), SimVolume::new()];
    let nodes = [1, 2].map(|server| {
        let volume = &volumes[server as usize - 1];
        start(&cluster, server, volume, options())
    });
    cluster.make(GROUP, &[&nodes[0], &nodes[1]], 1);
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
    let (first, second) = roles(&nodes);
    fails_for_ever(&volumes[second], Call::Write);
    assert!(nodes[first].put(GROUP, 0..100));
    wait_until("it is removed", || {
        cluster.known(GROUP).config.in_sync.len() == 1
    });
    volumes[second].device.clear_faults();
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
    assert!(!nodes[second].group(GROUP).core().has_failed);
    nodes[first].server.end();
    wait_until("it serves", || nodes[second].serves(GROUP));
    assert!(nodes[second].has(GROUP, 0..100));
}

#[test]
fn what_was_seen_and_could_not_be_kept_is_kept_later_and_nothing_reported_before() {
    let cluster = Cluster::new(&[GROUP], timing());
    let volumes = [SimVolume::new(), SimVolume::new()];
    volumes[1].keeps_nothing.store(true, Ordering::Release);
    let nodes = [1, 2].map(|server| {
        let volume = &volumes[server as usize - 1];
        start(&cluster, server, volume, options())
    });
    cluster.make(GROUP, &[&nodes[0], &nodes[1]], 1);
    wait_until("one of them serves", || nodes[0].serves(GROUP));
    assert!(volumes[1].seen().unwrap().is_none());
    volumes[1].keeps_nothing.store(false, Ordering::Release);
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
    let latest = cluster.known(GROUP).stamp();
    wait_until("it is kept", || volumes[1].seen().unwrap() == Some(latest));
}
