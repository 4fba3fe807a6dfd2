//! What an operator gives up, and how the master finds out that a process has ended.

use std::sync::Arc;

use kreon_sync::Ordering;
use kreon_wire::{GroupId, ServerId};

use super::cluster::{ALL_SERVERS, Cluster, options, timing, wait_until};
use super::volume::SimVolume;
use crate::machine::master::Stage;

const GROUP: GroupId = GroupId(1);

#[test]
fn a_loss_is_accepted_when_a_start_of_a_server_proves_that_the_one_of_the_set_has_ended() {
    let cluster = Cluster::new(&[GROUP], timing());
    let volumes = [SimVolume::new(), SimVolume::new()];
    let start = |server: u32| {
        let volume = volumes[server as usize - 1].clone();
        cluster.start(server, vec![(GROUP, Arc::new(volume))], options())
    };
    let (one, two) = (start(1), start(2));
    cluster.make(GROUP, &[&one, &two], 1);
    cluster.await_set(GROUP, &[&one, &two]);
    let primary = if one.serves(GROUP) { &one } else { &two };
    assert!(primary.put(GROUP, 0..100));
    // All will end at one time.
    primary.sync(GROUP);
    // Nothing is lost as yet.
    let master = cluster.master();
    master.accept_loss(GROUP, ServerId(2), None).unwrap();
    wait_until("a refusal", || master.loss_is_refused(GROUP));
    let term = cluster.known(GROUP).config.term;
    // At one time: otherwise the one that is left goes on alone.
    cluster.cut_off.store(ALL_SERVERS, Ordering::Release);
    wait_until("a group that waits", || {
        master.stage(GROUP) == Some(Stage::Waiting)
    });
    drop((one, two));
    cluster.cut_off.store(0, Ordering::Release);
    let again = start(2);
    wait_until("a group that waits", || {
        master.stage(GROUP) == Some(Stage::Waiting)
    });
    assert!(!again.serves(GROUP), "the other one may have more");
    assert_eq!(cluster.known(GROUP).config.in_sync.len(), 2);
    // The new start of the second server answers, whose former one was in the set.
    master.accept_loss(GROUP, ServerId(2), None).unwrap();
    cluster.await_set(GROUP, &[&again]);
    let known = cluster.known(GROUP);
    assert!(known.config.term > term && known.config.in_sync.len() == 1);
    assert!(!master.loss_is_refused(GROUP));
    assert!(again.has(GROUP, 0..100));
}

#[test]
fn no_loss_is_accepted_while_all_of_the_set_may_be_answering() {
    let cluster = Cluster::new(&[GROUP], timing());
    let start = |server: u32| {
        let volume = Arc::new(SimVolume::new());
        cluster.start(server, vec![(GROUP, volume)], options())
    };
    let (one, two) = (start(1), start(2));
    cluster.make(GROUP, &[&one, &two], 1);
    cluster.await_set(GROUP, &[&one, &two]);
    cluster.cut_off.store(ALL_SERVERS, Ordering::Release);
    let master = cluster.master();
    wait_until("a group that waits", || {
        master.stage(GROUP) == Some(Stage::Waiting)
    });
    // Both processes answer the master's probes: they are those of the set.
    master.accept_loss(GROUP, ServerId(2), None).unwrap();
    wait_until("a refusal", || master.loss_is_refused(GROUP));
    let config = cluster.known(GROUP).config;
    assert!(!config.after_loss && config.in_sync.len() == 2);
    cluster.cut_off.store(0, Ordering::Release);
    cluster.await_set(GROUP, &[&one, &two]);
    assert!(master.accept_loss(GroupId(7), ServerId(2), None).is_err());
}
