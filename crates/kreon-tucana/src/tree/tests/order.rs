//! Records that come to their leaf in another order than to the log.

use super::World;
use crate::format::Location;
use crate::log::{MemoryLog, Placed, Record, RecordLog};
use crate::tree::change::{LeafChange, put, remove};
use crate::tree::known::KnownKeys;
use crate::tree::reach::{Reached, at_level};

impl World {
    /// Appends a record and does nothing else.
    fn append(&self, value: Option<&[u8]>) -> Placed {
        let (parts, _) = self.tree.inside();
        let region = parts.seal.region;
        let key = b"key";
        let placed = self.log.append(&Record { region, key, value });
        placed.unwrap().expect("a log in memory has room")
    }

    /// Changes the leaf.
    fn change(&self, placed: &Placed, is_put: bool) -> LeafChange {
        let (parts, generation) = self.tree.inside();
        let known = KnownKeys::default();
        let changed = at_level(&generation, b"key", 0, |leaf| match is_put {
            true => put::<MemoryLog>(parts, leaf, (b"key", &known), placed),
            false => remove::<MemoryLog>(parts, leaf, (b"key", &known), placed),
        });
        match changed {
            Reached::Done(change) => change,
            _ => panic!("the only leaf is open"),
        }
    }
}

fn done(before: Option<Location>) -> LeafChange {
    LeafChange::Done(before)
}

#[test]
fn an_older_record_never_replaces_a_newer_one() {
    let world = World::new(1 << 10);
    let (older, newer) = (world.append(Some(b"older")), world.append(Some(b"newer")));
    assert_eq!(world.change(&newer, true), done(None));
    assert_eq!(world.change(&older, true), LeafChange::Superseded);
    assert_eq!(
        world.tree.get(b"key").unwrap().as_deref(),
        Some(&b"newer"[..])
    );
}

#[test]
fn an_older_deletion_never_removes_a_newer_record() {
    let world = World::new(1 << 10);
    let (older, newer) = (world.append(None), world.append(Some(b"newer")));
    assert_eq!(world.change(&newer, true), done(None));
    assert_eq!(world.change(&older, false), LeafChange::Superseded);
    assert_eq!(
        world.tree.get(b"key").unwrap().as_deref(),
        Some(&b"newer"[..])
    );
}

#[test]
fn an_older_record_does_not_come_back_behind_a_deletion() {
    let world = World::new(1 << 10);
    let first = world.append(Some(b"first"));
    let (older, deletion) = (world.append(Some(b"older")), world.append(None));
    assert_eq!(world.change(&first, true), done(None));
    assert_eq!(world.change(&deletion, false), done(Some(first.location)));
    assert_eq!(world.change(&older, true), LeafChange::Outdated);
    // Also when the deletion found nothing.
    let (older, deletion) = (world.append(Some(b"older")), world.append(None));
    assert_eq!(world.change(&deletion, false), done(None));
    assert_eq!(world.change(&older, true), LeafChange::Outdated);
    assert!(!world.tree.put(b"key", b"newest").unwrap());
    assert_eq!(world.pairs(), [(b"key".to_vec(), b"newest".to_vec())]);
}
