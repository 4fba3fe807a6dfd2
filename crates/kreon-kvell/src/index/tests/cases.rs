//! Single rules.

use super::super::{Index, KEY_BYTES_LIMIT, Location};
use super::model::{Model, Random, location};

fn found(index: &Index, key: &[u8]) -> Vec<Location> {
    index.find(key).collect()
}

#[test]
fn location_is_a_multiple_of_8_below_2_pib() {
    for offset in [0, 8, 4096, (1 << 51) - 8] {
        assert_eq!(Location::new(offset).map(Location::offset), Some(offset));
    }
    for offset in [1, 4, 4097, 1 << 51, u64::MAX - 7] {
        assert_eq!(Location::new(offset), None);
    }
}

#[test]
fn largest_location_comes_back() {
    let mut index = Index::new(4);
    let most = Location::new((1 << 51) - 8).expect("the largest");
    for key in [&b"key"[..], b"longer key"] {
        index.insert(key, most);
        assert_eq!(found(&index, key), [most]);
        assert!(index.replace(key, most, location(1)));
        assert!(index.replace(key, location(1), most));
        assert!(index.remove(key, most));
    }
}

#[test]
fn empty_index_finds_and_changes_nothing() {
    let mut index = Index::new(32);
    assert!(found(&index, b"key").is_empty());
    assert!(!index.remove(b"key", location(1)));
    assert!(!index.replace(b"key", location(1), location(2)));
    assert!(index.is_empty());
}

#[test]
fn empty_key_is_a_key() {
    let mut index = Index::new(32);
    assert!(index.insert(b"", location(0)));
    assert!(index.insert(&[0], location(1)));
    assert_eq!(
        (found(&index, b""), found(&index, &[0])),
        (vec![location(0)], vec![location(1)])
    );
    assert!(found(&index, &[0, 0]).is_empty());
}

#[test]
fn key_and_its_continuation_by_zeroes_are_two_keys() {
    // Heads are filled up with zeroes.
    let mut index = Index::new(32);
    let keys: Vec<Vec<u8>> = (0..10)
        .map(|zeroes| [&b"k"[..], &vec![0; zeroes]].concat())
        .collect();
    for (number, key) in keys.iter().enumerate().rev() {
        index.insert(key, location(number as u64));
        index.check();
    }
    for (number, key) in keys.iter().enumerate() {
        assert_eq!(found(&index, key), [location(number as u64)]);
    }
}

#[test]
fn whole_key_and_longer_keys_with_its_bytes_do_not_look_alike() {
    let mut index = Index::new(4);
    index.insert(b"abcd", location(9));
    index.insert(b"abcde", location(7));
    index.insert(b"abcdf", location(3));
    assert!(index.is_whole(b"abcd") && !index.is_whole(b"abcde"));
    assert_eq!(found(&index, b"abcd"), [location(9)]);
    assert_eq!(found(&index, b"abcdx"), [location(3), location(7)]);
    assert!(!index.remove(b"abcd", location(3)));
    assert!(index.remove(b"abcdx", location(3)));
    assert_eq!(found(&index, b"abcdf"), [location(7)]);
}

#[test]
fn entry_that_stands_is_not_added_again() {
    let mut index = Index::new(4);
    assert!(index.insert(b"key", location(1)));
    assert!(!index.insert(b"key", location(1)));
    assert_eq!(index.len(), 1);
}

#[test]
fn tie_group_of_100_000_keys_is_searched_and_not_walked() {
    // Were any of these linear in the group, this test took minutes.
    const COUNT: u64 = 100_000;
    let mut index = Index::new(8);
    let key = |number: u64| format!("tie group {number}").into_bytes();
    let place = |number: u64| location(number * 7919 % COUNT);
    for number in 0..COUNT {
        assert!(index.insert(&key(number), place(number)));
    }
    index.check();
    assert!(
        index.memory_bytes() < 20 * COUNT as usize,
        "{}",
        index.memory_bytes()
    );
    assert!(index.find(b"tie group").eq((0..COUNT).map(location)));
    for number in 0..COUNT {
        assert!(index.replace(
            &key(number),
            place(number),
            location(place(number).offset() / 8 + COUNT)
        ));
    }
    index.check();
    for number in 0..COUNT {
        assert!(index.remove(&key(number), location(place(number).offset() / 8 + COUNT)));
    }
    assert!(index.is_empty());
    index.check();
}

#[test]
fn longest_keys_with_any_common_prefix_fit() {
    for key_bytes_max in [1, 2, 31, 200, 512, 513, KEY_BYTES_LIMIT, 5000] {
        let mut index = Index::new(key_bytes_max);
        let longest = key_bytes_max.min(KEY_BYTES_LIMIT);
        let mut random = Random(key_bytes_max as u64);
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for number in 0..600 {
            // A prefix of an earlier key, or nothing, then one byte over and over.
            let mut key = Vec::new();
            if let Some(earlier) = keys.get(random.below(number + 1) as usize) {
                key.extend_from_slice(&earlier[..random.below(earlier.len() as u64 + 1) as usize]);
            }
            let length = if random.below(2) == 0 {
                longest
            } else {
                random.below(longest as u64 + 9) as usize
            };
            key.resize(length.max(key.len()), random.below(256) as u8);
            index.insert(&key, location(number));
            keys.push(key);
        }
        index.check();
        for (number, key) in keys.iter().enumerate() {
            assert!(index.find(key).any(|at| at == location(number as u64)));
        }
        while let Some(key) = keys.pop() {
            assert!(index.remove(&key, location(keys.len() as u64)));
            if keys.len().is_multiple_of(50) {
                index.check();
            }
        }
        assert!(index.is_empty());
    }
}

#[test]
fn key_without_the_prefix_of_a_full_node_goes_beside_it() {
    let mut model = Model::new(400, 2048);
    let long = |number: u8| [&vec![b'm'; 350][..], &[number]].concat();
    for number in 0..250 {
        model.insert(&long(number), location(u64::from(number)));
    }
    model.insert(b"a", location(1000));
    model.insert(b"z", location(1001));
    model.insert(&[&vec![b'm'; 350][..], &[100, 0]].concat(), location(1002));
    model.insert(&[b'm'; 200], location(1003));
    model.check();
    for number in 0..250 {
        model.remove(&long(number), location(u64::from(number)));
        model.index.check();
    }
    model.check();
}

#[test]
fn replace_in_a_tie_group_keeps_the_other_entries() {
    // Every seventh location is free; besides: one in use, the same, one of no entry.
    for (old, new) in [
        (0, 31),
        (39, 3),
        (11, 10),
        (9, 10),
        (39, 100),
        (0, 100),
        (5, 30),
        (20, 20),
        (3, 17),
    ] {
        let mut model = Model::new(8, 2048);
        for number in (0..40).filter(|number| number % 7 != 3) {
            model.insert(b"tie group", location(number));
        }
        model.replace(b"tie group", location(old), location(new));
        model.find(b"tie group");
        model.check();
    }
}

#[test]
fn keys_below_a_removed_first_child_find_their_place() {
    let key = |number: u64| (number as u16).to_be_bytes();
    for first in (0..200).step_by(7) {
        let mut model = Model::small();
        for number in 0..300 {
            model.insert(&key(number), location(number));
        }
        for number in first..first + 60 {
            model.remove(&key(number), location(number));
            model.index.check();
        }
        for number in (first..first + 60).rev() {
            model.insert(&key(number), location(number));
            model.index.check();
        }
        model.check();
    }
}
