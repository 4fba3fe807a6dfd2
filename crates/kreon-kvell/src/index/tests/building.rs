//! Indexes built of entries that come in order.

use super::super::{Index, IndexBuilder};
use super::memory::shuffled;
use super::model::{Known, Model, location};

fn small() -> IndexBuilder {
    IndexBuilder::of(Model::small().index)
}

#[test]
fn an_index_of_no_entries_is_empty() {
    let index = small().finish();
    index.check();
    assert_eq!(
        index.memory_bytes(),
        Model::small().index.memory_bytes(),
        "no node"
    );
}

#[test]
fn trees_of_every_small_size_are_sound() {
    for count in 1..400_u64 {
        let mut model = Model::small();
        let mut builder = small();
        for number in 0..count {
            let bytes = format!("k{number:03}").into_bytes();
            assert!(builder.push(&bytes, true, location(count - number)));
            model
                .entries
                .insert((bytes, false, location(count - number)));
        }
        model.index = builder.finish();
        model.check();
    }
}

#[test]
fn entries_out_of_order_are_refused_and_change_nothing() {
    let mut builder = small();
    let refused = |builder: &mut IndexBuilder, (bytes, truncated, at): Known| {
        assert!(!builder.push(&bytes, !truncated, at), "{bytes:?}");
    };
    assert!(builder.push(b"b", true, location(2)));
    refused(&mut builder, (b"a".to_vec(), false, location(9)));
    refused(&mut builder, (b"b".to_vec(), false, location(2)));
    // A whole key has one entry.
    refused(&mut builder, (b"b".to_vec(), false, location(3)));
    refused(&mut builder, (b"more than N".to_vec(), true, location(3)));
    for at in [4, 5] {
        assert!(builder.push(b"tie in", false, location(at)));
        refused(&mut builder, (b"tie in".to_vec(), true, location(at)));
    }
    refused(&mut builder, (b"tie in".to_vec(), false, location(6)));
    let mut model = Model::small();
    model.index = builder.finish();
    model.entries.extend([
        (b"b".to_vec(), false, location(2)),
        (b"tie in".to_vec(), true, location(4)),
        (b"tie in".to_vec(), true, location(5)),
    ]);
    model.check();
}

#[test]
fn built_leaves_are_seven_eighths_full_and_take_inserts_without_growing_fast() {
    let mut keys = shuffled(20_000);
    let more = keys.split_off(18_000);
    keys.sort_unstable();
    let mut builder = IndexBuilder::new(32);
    for (number, key) in keys.iter().enumerate() {
        assert!(builder.push(key, true, location(number as u64)));
    }
    let mut index = builder.finish();
    index.check();
    let fill = index.leaf_fill();
    assert!((0.83..=0.875).contains(&fill), "{fill}");
    let before = index.memory_bytes();
    for (number, key) in more.iter().enumerate() {
        assert!(index.insert(key, location(20_000 + number as u64)));
    }
    index.check();
    let grown = index.memory_bytes() as f64 / before as f64;
    assert!(grown < 1.25, "a ninth more entries: {grown}");
}

#[test]
fn the_longest_keys_are_built_into_nodes_of_three() {
    for key_bytes in [512, 1024] {
        let mut builder = IndexBuilder::new(key_bytes);
        for number in 0..300_u32 {
            let mut key = number.to_be_bytes().repeat(key_bytes / 4);
            key.truncate(key_bytes);
            assert!(builder.push(&key, false, location(number.into())));
        }
        let index: Index = builder.finish();
        index.check();
        assert_eq!(index.len(), 300);
    }
}
