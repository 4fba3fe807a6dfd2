//! Files of other stores.

use std::sync::Arc;

use kreon_device::Device;
use kreon_engine::{Engine, Options};
use kreon_format::StoreId;
use kreon_volume::superblock;
use kreon_wire::GroupId;

use super::cluster::{Cluster, SILENCE, options, timing, wait_until};
use super::volume::SimVolume;

const GROUP: GroupId = GroupId(1);

fn with_store(store: u64) -> SimVolume {
    let volume = SimVolume::new();
    let options = Options {
        store_id: Some(store),
        ..options()
    };
    let device = Arc::clone(&volume.device) as Arc<dyn Device>;
    let engine = Engine::open(device, options).unwrap();
    engine.close().unwrap();
    volume
}

fn store_of(volume: &SimVolume) -> StoreId {
    superblock::inspect(&*volume.device)
        .unwrap()
        .0
        .unwrap()
        .store
}

#[test]
fn a_member_whose_file_is_of_another_store_is_left_out_and_its_file_as_it_is() {
    let cluster = Cluster::new(&[GROUP], timing());
    let volumes = [with_store(5), with_store(7)];
    let nodes = [1, 2].map(|server| {
        let volume = volumes[server as usize - 1].clone();
        cluster.start(server, vec![(GROUP, Arc::new(volume))], options())
    });
    // As after a restore of files to the wrong place.
    cluster.make(GROUP, &[&nodes[0], &nodes[1]], 1);
    wait_until("one of them serves", || {
        let set = cluster.known(GROUP).config.in_sync;
        set.len() == 1 && nodes.iter().any(|node| node.serves(GROUP))
    });
    // The other one asks to join again and again.
    std::thread::sleep(4 * SILENCE);
    assert_eq!(cluster.known(GROUP).config.in_sync.len(), 1);
    let stores = volumes.each_ref().map(store_of);
    assert_eq!(stores, [StoreId(5), StoreId(7)]);
}
