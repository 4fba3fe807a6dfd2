//! Copies are compared, and how far they are is told.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;

use kreon_wire::{Durability, GroupId, WriteBody};

use super::house::House;

const REPLICATED: Durability = Durability::Replicated;

/// Many pairs.
fn fill(house: &House, group: GroupId, value: &[u8], durability: Durability) {
    let mut client = house.client_of(group);
    for part in 0..4 {
        let mut batch = WriteBody::new();
        for number in 0..500 {
            let key = format!("key-{part}-{number}");
            batch.put("t", key.as_bytes(), value).unwrap();
        }
        client.write(group, batch, durability).unwrap();
    }
}

#[test]
fn copies_are_equal_until_a_byte_of_one_is_not() {
    let mut house = House::new(3, 1);
    let group = house.make_table("t", &[]).ranges[0].1;
    fill(
        &house,
        group,
        b"a needle in a haystack of bytes",
        REPLICATED,
    );
    // One of them was lost, and got a whole copy; another one became the primary after a term that ended in between.
    let lost = house.primary(group).me().server;
    house.take(lost).abandon();
    house.wait("it is removed", |house| {
        house.config(group).in_sync.len() == 2
    });
    house.start(lost.0);
    house.wait("all are in sync", |house| {
        house.config(group).in_sync.len() == 3
    });
    fill(&house, group, b"another one", REPLICATED);
    let mut client = house.client_of(group);
    let compared = client.compare(group).unwrap();
    assert_eq!(
        (compared.copies, compared.differing),
        (2, 0),
        "{compared:?}"
    );
    assert!(
        compared.blocks > 20 && compared.unsettled == 0,
        "{compared:?}"
    );

    let primary = house.primary(group).me().server;
    let backup = house.nodes.iter().map(|node| node.me().server);
    let backup = backup.into_iter().find(|server| *server != primary);
    let files = house.files(backup.unwrap(), group);
    let [path] = files.as_slice() else {
        panic!("{files:?}");
    };
    let bytes = std::fs::read(path).unwrap();
    let needle = b"a needle in a haystack";
    let at = bytes
        .windows(needle.len())
        .position(|found| found == needle);
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(b"A", at.unwrap() as u64).unwrap();
    let compared = client.compare(group).unwrap();
    let told = (compared.copies, compared.differing, Some(compared.worst));
    assert_eq!(told, (2, 1, backup), "{compared:?}");
}

#[test]
fn a_primary_tells_how_far_its_backups_are() {
    let mut house = House::new(3, 1);
    let group = house.make_table("t", &[]).ranges[0].1;
    fill(&house, group, &[7; 2000], Durability::Sync);
    let mut client = house.client_of(group);
    let backups = client.backups(group).unwrap();
    assert_eq!(backups.len(), 2);
    for backup in &backups {
        let lag = (backup.is_counted, backup.has_ended, backup.lag_bytes);
        assert_eq!(lag, (true, false, 0), "{backup:?}");
        assert!(backup.durable_lag_bytes < 1 << 20, "{backup:?}");
    }
    let primary = house.primary(group).me().server;
    let lost = backups[0].member.server;
    assert_ne!(lost, primary);
    house.take(lost).abandon();
    house.wait("it is removed", |house| {
        house.config(group).in_sync.len() == 2
    });
    house.start(lost.0);
    house.wait("it is in sync", |house| {
        house.config(group).in_sync.len() == 3
    });
    let status = house.primary(group).status();
    let members = &status.group(group).unwrap().members;
    let joined = members.iter().find(|held| held.member.server == lost);
    let joined = joined.unwrap();
    // All that the store has went over as a copy.
    assert!(joined.traffic.copies_bytes > 3_000_000, "{joined:?}");
    let told = client.backups(group).unwrap();
    let told = told.iter().find(|backup| backup.member.server == lost);
    let told = told.unwrap();
    assert_eq!(told.copied_bytes, joined.traffic.copies_bytes);
    assert!(told.is_counted && told.to_copy_bytes == 0);
}
