//! Servers that say nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_sync::Ordering;
use kreon_wire::GroupId;

use super::cluster::{Cluster, SILENCE, SimVolume, options, timing, wait_until};
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
