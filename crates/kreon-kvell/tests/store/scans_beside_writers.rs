//! Scans while keys change.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use kreon_sim::Dice;
use kvell::Durability::Buffered;
use kvell::{Options, Region};

use crate::world::{open, options, simulated, value};

/// Keys that stay, and as many that come and go between them.
const STAYING: u64 = 200;

/// Every fourth key begins as its neighbours do, and is too long to stand whole in the index.
fn key(number: u64) -> Vec<u8> {
    let mut key = vec![(number / 40) as u8];
    if number.is_multiple_of(4) {
        key.extend(b"tied tied");
    }
    key.extend(number.to_be_bytes());
    key
}

fn small(index_key_bytes: usize) -> Options {
    Options {
        index_key_bytes,
        memory_bytes: 800 << 10,
        partitions: 3,
        ..options()
    }
}

/// Changes a key that comes and goes, or gives one that stays another value of any size, so that its item moves.
fn change(region: &Region, dice: &mut Dice) {
    let number = dice.below(2 * STAYING);
    let key = key(number);
    if number % 2 == 1 && dice.below(2) == 0 {
        region.delete(&key, Buffered).expect("a deletion");
    } else {
        let len_bytes = [20, 300, 700, 1500][dice.below(4) as usize];
        let value = value(number, len_bytes);
        region.put(&key, value, Buffered).expect("a put");
    }
}

fn fill(region: &Region) {
    for number in (0..2 * STAYING).step_by(2) {
        let value = value(number, 300);
        region.put(key(number), value, Buffered).expect("a put");
    }
}

/// Notes a pair: its value is one of its key.
fn note(
    found: &mut BTreeMap<Vec<u8>, u64>,
    pair: Option<kvell::Result<(Vec<u8>, Vec<u8>)>>,
) -> bool {
    let Some(pair) = pair else {
        return false;
    };
    let (key, value) = pair.expect("a pair");
    let number = value.first_chunk().copied().map(u64::from_le_bytes);
    let number = number.expect("a value");
    assert_eq!(key, self::key(number));
    assert!(found.insert(key, number).is_none(), "{number} twice");
    true
}

fn check_staying(found: &BTreeMap<Vec<u8>, u64>) {
    for number in (0..2 * STAYING).step_by(2) {
        assert!(found.contains_key(&key(number)), "{number} is missing");
    }
}

#[test]
fn keys_that_stay_show_once_however_the_others_and_their_items_move() {
    for seed in 0..24 {
        let device = simulated(1 << 40);
        let store = open(&device, &small([4, 5, 8, 16][seed as usize % 4]));
        let region = store.region("r").expect("a region");
        fill(&region);
        let mut dice = Dice::new(seed);
        let mut scan = region.iter();
        let mut found = BTreeMap::new();
        let backward = [0, 2, 1][seed as usize % 3];
        loop {
            let is_back = dice.below(2) < backward;
            let pair = if is_back {
                scan.next_back()
            } else {
                scan.next()
            };
            if !note(&mut found, pair) {
                break;
            }
            for _ in 0..dice.below(6) {
                change(&region, &mut dice);
            }
        }
        check_staying(&found);
    }
}

#[test]
fn keys_that_stay_show_once_and_in_order_beside_threads_that_write() {
    let device = simulated(1 << 40);
    let store = open(&device, &small(5));
    let region = store.region("r").expect("a region");
    fill(&region);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (region, is_over) = (&region, &is_over);
            scope.spawn(move || {
                let mut dice = Dice::new(thread);
                while !is_over.load(Relaxed) {
                    change(region, &mut dice);
                }
            });
        }
        for _ in 0..10 {
            let (mut found, mut last) = (BTreeMap::new(), None);
            for pair in region.iter() {
                let key = pair.as_ref().ok().map(|it| it.0.clone());
                assert!(last < key, "{last:?} before {key:?}");
                last = key;
                note(&mut found, Some(pair));
            }
            check_staying(&found);
            let mut found = BTreeMap::new();
            let mut scan = region.iter();
            while note(&mut found, scan.next_back()) {}
            check_staying(&found);
        }
        is_over.store(true, Relaxed);
    });
}
