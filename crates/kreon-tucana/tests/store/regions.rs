//! Several regions in a store: what each of them shows, and what nobody may do with them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::thread;

use tucana::{
    Direction, Durability, ErrorKind, KEY_BYTES_MAX, Options, REGION_NAME_BYTES_MAX, Region,
    Result, Store,
};

use crate::world::{Model, Random, device, device_of, options};

fn open(device: &std::sync::Arc<kreon_sim::SimDevice>) -> Store {
    Store::open(std::sync::Arc::clone(device) as _, &options()).unwrap()
}

fn all(region: &Region) -> Model {
    let all = region.scan(.., Direction::Forward);
    all.map(Result::unwrap).collect()
}

fn kind<T>(outcome: Result<T>) -> ErrorKind {
    outcome.err().expect("an error").kind()
}

#[test]
fn each_region_has_keys_of_its_own_and_all_of_them_are_there_again() {
    let device = device();
    let store = open(&device);
    for name in ["b", "a", "c"] {
        let region = store.region(name).unwrap();
        assert_eq!((region.name(), all(&region)), (name, Model::new()));
        assert!(!region.put("key", name).unwrap());
    }
    store.region("b").unwrap().delete("key").unwrap();
    store.close().unwrap();
    let store = open(&device);
    assert_eq!(store.region_names().unwrap(), ["a", "b", "c"]);
    for (name, wanted) in [("a", Some("a")), ("b", None), ("c", Some("c"))] {
        let region = store.existing_region(name).unwrap();
        let found = region.get("key").unwrap();
        assert_eq!(found.as_deref(), wanted.map(str::as_bytes), "{name}");
        assert_eq!(region.contains("key").unwrap(), wanted.is_some());
    }
    assert_eq!(store.verify().unwrap().keys, 2);
}

#[test]
fn any_text_of_1_to_255_bytes_is_a_name() {
    let device = device();
    let longest = "ü".repeat(127) + "x";
    assert_eq!(longest.len(), REGION_NAME_BYTES_MAX);
    let names = [
        "\0",
        " ",
        "\u{10ffff}",
        "default",
        "a/b\n",
        longest.as_str(),
    ];
    {
        let store = open(&device);
        for name in names {
            store.region(name).unwrap().put("name", name).unwrap();
        }
        store.close().unwrap();
    }
    let store = open(&device);
    let mut sorted = names.map(str::to_owned);
    sorted.sort();
    assert_eq!(store.region_names().unwrap(), sorted);
    for name in names {
        let region = store.existing_region(name).unwrap();
        let found = region.get("name").unwrap();
        assert_eq!(found.as_deref(), Some(name.as_bytes()));
    }
    for wrong in [String::new(), longest + "y"] {
        assert_eq!(kind(store.region(&wrong)), ErrorKind::InvalidArgument);
        assert_eq!(kind(store.existing_region(&wrong)), ErrorKind::NotFound);
        assert_eq!(kind(store.drop_region(&wrong)), ErrorKind::NotFound);
    }
    assert_eq!(kind(store.existing_region("none")), ErrorKind::NotFound);
    assert_eq!(kind(store.drop_region("none")), ErrorKind::NotFound);
    assert_eq!(store.region_names().unwrap(), sorted);
}

/// Keys that look like those of other regions in the tree, the empty one and the longest.
fn odd_keys() -> Vec<Vec<u8>> {
    let mut keys = vec![
        Vec::new(),
        vec![0xff; KEY_BYTES_MAX],
        vec![0; KEY_BYTES_MAX],
    ];
    for number in [0_u32, 1, 2, 3, u32::MAX] {
        let number = number.to_be_bytes();
        keys.extend([number.to_vec(), [&number[..], b"key"].concat()]);
        keys.push([&[b'k'; KEY_BYTES_MAX - 4][..], &number].concat());
    }
    keys.sort();
    keys
}

#[test]
fn scans_show_no_key_of_another_region_whatever_their_bounds() {
    let store = open(&device());
    let regions = ["first", "second", "third"].map(|name| store.region(name).unwrap());
    let keys = odd_keys();
    for (number, region) in regions.iter().enumerate() {
        for key in &keys {
            region.put(key, [number as u8]).unwrap();
        }
    }
    let bounds: Vec<Bound<Vec<u8>>> = std::iter::once(Bound::Unbounded)
        .chain(keys.iter().cloned().map(Bound::Included))
        .chain(keys.iter().cloned().map(Bound::Excluded))
        .collect();
    let snapshot = store.snapshot().unwrap();
    for (number, region) in regions.iter().enumerate() {
        for (low, high) in bounds
            .iter()
            .flat_map(|low| bounds.iter().map(move |high| (low, high)))
        {
            let is_within = |key: &&Vec<u8>| {
                let is_above = match low {
                    Bound::Included(low) => *key >= low,
                    Bound::Excluded(low) => *key > low,
                    Bound::Unbounded => true,
                };
                let is_below = match high {
                    Bound::Included(high) => *key <= high,
                    Bound::Excluded(high) => *key < high,
                    Bound::Unbounded => true,
                };
                is_above && is_below
            };
            let wanted: Vec<_> = keys.iter().filter(is_within).cloned().collect();
            let range = || (low.clone(), high.clone());
            for scan in [
                region.scan(range(), Direction::Forward),
                snapshot.scan(region, range(), Direction::Forward),
            ] {
                let found: Vec<_> = scan.map(Result::unwrap).collect();
                assert!(
                    found.iter().map(|(key, _)| key).eq(&wanted),
                    "{low:?} {high:?}"
                );
                assert!(found.iter().all(|(_, value)| value[..] == [number as u8]));
            }
            let reverse = region.scan(range(), Direction::Reverse);
            let mut reverse: Vec<_> = reverse.map(|pair| pair.unwrap().0).collect();
            reverse.reverse();
            assert_eq!(reverse, wanted);
        }
    }
}

#[test]
fn keys_of_more_than_a_kibibyte_are_refused_by_every_call() {
    let store = open(&device());
    let region = store.region("r").unwrap();
    let long = vec![7; KEY_BYTES_MAX + 1];
    let snapshot = store.snapshot().unwrap();
    for outcome in [
        region.put(&long, "").map(drop),
        region.get(&long).map(drop),
        region.delete(&long).map(drop),
        region.contains(&long).map(drop),
        snapshot.get(&region, &long).map(drop),
    ] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(
            error.to_string().contains("1025 bytes, the most is 1024"),
            "{error}"
        );
    }
    // A bound may be longer.
    region.put(&long[..KEY_BYTES_MAX], "").unwrap();
    assert_eq!(region.scan(..&long, Direction::Reverse).count(), 1);
    assert_eq!(region.scan(&long.., Direction::Forward).count(), 0);
}

#[test]
fn a_range_is_deleted_in_its_region_only() {
    let store = open(&device());
    let [one, other] = ["one", "other"].map(|name| store.region(name).unwrap());
    for number in 0..3000_u32 {
        one.put(number.to_be_bytes(), "").unwrap();
        other.put(number.to_be_bytes(), "").unwrap();
    }
    let range = 100_u32.to_be_bytes()..2500_u32.to_be_bytes();
    one.delete_range(range.clone()).unwrap();
    let left: Vec<u32> = all(&one)
        .into_keys()
        .map(|key| u32::from_be_bytes(key.try_into().unwrap()))
        .collect();
    assert!(left.into_iter().eq((0..100).chain(2500..3000)));
    assert_eq!(all(&other).len(), 3000);
    one.delete_range_with(.., Durability::Sync).unwrap();
    assert_eq!((all(&one).len(), all(&other).len()), (0, 3000));
    assert_eq!(store.verify().unwrap().keys, 3000);
}

#[test]
fn a_snapshot_shows_all_regions_as_they_were_dropped_ones_too() {
    let store = open(&device());
    let [one, other] = ["one", "other"].map(|name| store.region(name).unwrap());
    for region in [&one, &other] {
        region.put("key", region.name()).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    one.put("key", "new").unwrap();
    store.drop_region("other").unwrap();
    let late = store.region("other").unwrap();
    late.put("key", "late").unwrap();
    for _ in 0..3 {
        store.commit().unwrap();
    }
    for region in [&one, &other] {
        let value = snapshot.get(region, "key").unwrap().unwrap();
        assert_eq!(value, region.name().as_bytes());
        let mut scan = snapshot.scan(region, .., Direction::Reverse);
        assert_eq!(scan.next().unwrap().unwrap().1, region.name().as_bytes());
        assert!(scan.next().is_none());
    }
    assert_eq!(snapshot.get(&late, "key").unwrap(), None);
    let stranger = open(&device()).region("one").unwrap();
    assert_eq!(
        kind(snapshot.get(&stranger, "key")),
        ErrorKind::InvalidArgument
    );
    let mut scan = snapshot.scan(&stranger, .., Direction::Forward);
    assert_eq!(kind(scan.next().unwrap()), ErrorKind::InvalidArgument);
    assert!(scan.next().is_none());
}

#[test]
fn a_closed_store_refuses_all_its_handles_and_others_use_the_device() {
    let device = device();
    let store = open(&device);
    let region = store.region("r").unwrap();
    region.put("key", "value").unwrap();
    let (snapshot, mut scan) = (
        store.snapshot().unwrap(),
        region.scan(.., Direction::Forward),
    );
    let clone = store.clone();
    store.close().unwrap();
    let again = open(&device);
    again.region("r").unwrap().put("key", "newer").unwrap();
    for outcome in [
        region.get("key").map(drop),
        region.put("key", "").map(drop),
        region.delete_range(..),
        snapshot.get(&region, "key").map(drop),
        scan.next().unwrap().map(drop),
        clone.region("r").map(drop),
        clone.region_names().map(drop),
        clone.commit(),
        clone.sync(),
        clone.verify().map(drop),
    ] {
        assert_eq!(kind(outcome), ErrorKind::Closed);
    }
    assert_eq!((scan.next().is_none(), clone.used_bytes()), (true, 0));
    // It has the outcome of the first.
    clone.close().unwrap();
    let found = again.region("r").unwrap().get("key").unwrap();
    assert_eq!(found.as_deref(), Some(&b"newer"[..]));
}

#[test]
fn a_close_waits_for_the_calls_of_others_and_leaves_what_they_acknowledged() {
    for round in 0..20 {
        let device = device();
        let store = open(&device);
        let region = store.region("r").unwrap();
        let written: Vec<u32> = thread::scope(|scope| {
            let write = |thread: u32| {
                let numbers = (0..).map(|number| number * 3 + thread);
                let write = |number: &u32| region.put(number.to_be_bytes(), [1; 300]).is_ok();
                numbers.take_while(write).collect::<Vec<_>>()
            };
            let writers: Vec<_> = (0..3)
                .map(|thread| scope.spawn(move || write(thread)))
                .collect();
            thread::sleep(std::time::Duration::from_micros(200 * round));
            store.close().unwrap();
            writers
                .into_iter()
                .flat_map(|writer| writer.join().unwrap())
                .collect()
        });
        let events = device.events();
        let again = open(&device_of(device.image()));
        let found = again.region("r").unwrap();
        for number in &written {
            assert!(found.contains(number.to_be_bytes()).unwrap(), "{number}");
        }
        assert_eq!(again.verify().unwrap().keys, written.len() as u64);
        assert_eq!(device.events(), events, "nothing is written after a close");
    }
}

#[test]
fn threads_that_make_the_same_regions_have_the_same() {
    const THREADS: u8 = 6;
    let device = device();
    let store = open(&device);
    let name = |number: u32| format!("region {number}");
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for number in 0..30 {
                    let region = store.region(&name(number)).unwrap();
                    region.put([thread], number.to_le_bytes()).unwrap();
                }
            });
        }
    });
    store.close().unwrap();
    let store = open(&device);
    assert_eq!(store.region_names().unwrap().len(), 30);
    for number in 0..30 {
        let region = store.existing_region(&name(number)).unwrap();
        let wanted = (0..THREADS).map(|thread| (vec![thread], number.to_le_bytes().to_vec()));
        assert!(all(&region).into_iter().eq(wanted), "{number}");
    }
}

/// Puts until there is no space for a little pair. Returns how many pairs it has.
fn fill_up(region: &Region) -> usize {
    let refused = (0_u32..).find_map(|number| region.put(number.to_be_bytes(), [1; 3000]).err());
    assert_eq!(refused.unwrap().kind(), ErrorKind::OutOfSpace);
    // What is left of the last segment.
    let little = |number: u32| [&number.to_be_bytes()[..], b"little"].concat();
    let refused = (0..).find_map(|number| region.put(little(number), "").err());
    assert_eq!(refused.unwrap().kind(), ErrorKind::OutOfSpace);
    all(region)
        .values()
        .filter(|value| !value.is_empty())
        .count()
}

#[test]
fn a_full_volume_has_no_new_region_and_a_drop_gives_all_of_its_space_back() {
    let device = device();
    let small = Options {
        volume_bytes_max: 24 << 20,
        ..options()
    };
    let store = Store::open(std::sync::Arc::clone(&device) as _, &small).unwrap();
    let mut had_room_for = Vec::new();
    for _ in 0..5 {
        let region = store.region("full").unwrap();
        had_room_for.push(fill_up(&region));
        let pairs = all(&region);
        for _ in 0..3 {
            assert_eq!(kind(store.region("new")), ErrorKind::OutOfSpace);
            assert_eq!(store.region_names().unwrap(), ["full"]);
            assert_eq!(kind(store.existing_region("new")), ErrorKind::NotFound);
        }
        assert!(all(&region) == pairs);
        assert_eq!(store.verify().unwrap().keys, pairs.len() as u64);
        store.drop_region("full").unwrap();
        assert_eq!(store.verify().unwrap().keys, 0);
    }
    let least = had_room_for[0] * 8 / 10;
    assert!(
        had_room_for[0] > 2000 && had_room_for.iter().all(|count| *count >= least),
        "{had_room_for:?}"
    );
}

/// Everything against a model, in little memory, with openings between.
#[test]
fn regions_are_like_maps_of_their_own() {
    let device = device();
    let tiny = Options {
        memory_bytes: 512 << 10,
        commit_log_bytes: 256 << 10,
        ..options()
    };
    let names = ["a", "b", "a longer name", "d"];
    let mut model: BTreeMap<&str, Model> = BTreeMap::new();
    let mut random = Random(77);
    for round in 0..6 {
        let store = Store::open(std::sync::Arc::clone(&device) as _, &tiny).unwrap();
        for _ in 0..1200 {
            let name = names[random.below(4) as usize];
            if random.below(150) == 0 {
                let dropped = store.drop_region(name);
                assert_eq!(dropped.is_ok(), model.remove(name).is_some());
                continue;
            }
            let (region, pairs) = (store.region(name).unwrap(), model.entry(name).or_default());
            let length = [2, 5, 900][random.below(3) as usize];
            let key = vec![random.below(30) as u8; length];
            match random.below(8) {
                0 => {
                    let (low, high) = (vec![random.below(30) as u8], vec![random.below(30) as u8]);
                    region.delete_range(low.clone()..high.clone()).unwrap();
                    pairs.retain(|key, _| *key < low || *key >= high);
                }
                1 | 2 => {
                    let known = region.delete(&key).unwrap();
                    assert_eq!(known, pairs.remove(&key).is_some());
                }
                3 => assert_eq!(region.get(&key).unwrap().as_ref(), pairs.get(&key)),
                4 => {
                    let scan = region.scan(key.clone().., Direction::Reverse);
                    let wanted = pairs.range(key..).rev();
                    assert!(
                        scan.map(Result::unwrap)
                            .eq(wanted.map(|(k, v)| (k.clone(), v.clone())))
                    );
                }
                _ => {
                    let value = vec![random.below(256) as u8; random.below(900) as usize];
                    let known = region.put(&key, &value).unwrap();
                    assert_eq!(known, pairs.insert(key, value).is_some());
                }
            }
        }
        assert!(store.region_names().unwrap().iter().eq(model.keys()));
        for (name, pairs) in &model {
            assert!(
                all(&store.existing_region(name).unwrap()) == *pairs,
                "round {round}"
            );
        }
        let keys: usize = model.values().map(Model::len).sum();
        assert_eq!(store.verify().unwrap().keys, keys as u64);
        match round % 2 {
            0 => store.close().unwrap(),
            _ => store.sync().unwrap(),
        }
    }
}
