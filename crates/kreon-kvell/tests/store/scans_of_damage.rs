//! Scans over damaged items, of failed and of closed stores.

use std::sync::Arc;

use kreon_base::ErrorKind;
use kreon_device::{AlignedBuf, Device};
use kreon_sim::{Call, Effect, Fault, SimDevice};
use kvell::Durability::{Buffered, Sync};
use kvell::{Options, Region, Store};

use crate::world::{open, options, simulated};

const KEYS: u8 = 100;

fn name(number: u8) -> Vec<u8> {
    format!("a key of some length {number:03}").into_bytes()
}

/// Items of their own cells, with values that stand on the device as they are; nothing is cached.
fn store_of(index_key_bytes: usize) -> (Arc<SimDevice>, Store, Region) {
    let options = Options {
        index_key_bytes,
        ..options()
    };
    let device = simulated(1 << 40);
    let store = open(&device, &options);
    let region = store.region("r").expect("a region");
    for number in 0..KEYS {
        let value = [number; 900];
        region.put(name(number), value, Buffered).expect("a put");
    }
    store.close().expect("a close");
    let store = open(&device, &options);
    let region = store.region("r").expect("the region");
    (device, store, region)
}

/// Changes a byte of the only place on the device where `text` stands, `at` bytes behind its beginning.
fn damage(device: &SimDevice, text: &[u8], at: usize) {
    const STEP: u64 = 1 << 20;
    let mut bytes = AlignedBuf::new(STEP as usize);
    for offset in (0..device.len_bytes()).step_by(STEP as usize) {
        let left = (device.len_bytes() - offset).min(STEP) as usize;
        device.read_at(offset, &mut bytes[..left]).expect("a read");
        let found = bytes.windows(text.len()).position(|it| it == text);
        if let Some(place) = found {
            let sector = (place + at) / 512 * 512;
            bytes[place + at] ^= 1;
            let mut one = AlignedBuf::new(512);
            one.copy_from_slice(&bytes[sector..sector + 512]);
            let offset = offset + sector as u64;
            return device.write_at(offset, &one).expect("a write");
        }
    }
    panic!("the text is not there");
}

/// What scans in both directions have: pairs, and kinds of errors.
fn both_ways(region: &Region) -> [(Vec<Vec<u8>>, Vec<ErrorKind>); 2] {
    let sort = |scan: Vec<kvell::Result<(Vec<u8>, Vec<u8>)>>| {
        let mut found = (Vec::new(), Vec::new());
        for pair in scan {
            match pair {
                Ok((key, _)) => found.0.push(key),
                Err(error) => found.1.push(error.kind()),
            }
        }
        found
    };
    let mut backward = sort(region.iter().rev().collect());
    backward.0.reverse();
    [sort(region.iter().collect()), backward]
}

fn all_but(missing: &[u8]) -> Vec<Vec<u8>> {
    let there = (0..KEYS).filter(|number| !missing.contains(number));
    there.map(name).collect()
}

#[test]
fn a_damaged_value_is_an_error_and_the_scan_goes_on_behind_it() {
    for index_key_bytes in [8, 32] {
        let (device, _store, region) = store_of(index_key_bytes);
        damage(&device, &[50; 900], 100);
        damage(&device, &[99; 900], 899);
        for (keys, errors) in both_ways(&region) {
            assert_eq!(keys, all_but(&[50, 99]));
            assert_eq!(errors, [ErrorKind::Corruption; 2]);
        }
        let mut scan = region.iter().skip(50);
        assert_eq!(
            scan.next().unwrap().unwrap_err().kind(),
            ErrorKind::Corruption
        );
        assert_eq!(scan.next().unwrap().unwrap().0, name(51));
        assert_eq!(region.iter().keys().count(), usize::from(KEYS));
    }
}

#[test]
fn an_item_that_does_not_tell_its_key_is_an_error_in_front_of_those_that_begin_alike() {
    let (device, _store, region) = store_of(8);
    damage(&device, &name(50), 10);
    for (keys, errors) in both_ways(&region) {
        assert_eq!(keys, all_but(&[50]));
        assert_eq!(errors, [ErrorKind::Corruption]);
    }
    let mut keys = region.iter().keys();
    assert_eq!(
        keys.next().unwrap().unwrap_err().kind(),
        ErrorKind::Corruption
    );
    assert_eq!(keys.next().unwrap().unwrap(), name(0));
}

#[test]
fn a_cell_that_cannot_be_read_is_an_error_once_and_nobody_waits_for_ever() {
    for index_key_bytes in [8, 32] {
        let (device, store, region) = store_of(index_key_bytes);
        device.inject(Fault::nth(30, Call::Read, Effect::Io));
        let scan: Vec<_> = region.iter().collect();
        let errors = scan.iter().filter_map(|it| it.as_ref().err());
        let kinds: Vec<_> = errors.map(|error| error.kind()).collect();
        assert_eq!(kinds, [ErrorKind::Io]);
        assert_eq!(scan.len(), usize::from(KEYS));
        assert_eq!(both_ways(&region)[0].0, all_but(&[]));
        region.put(name(0), "value", Sync).expect("a put");
        store.close().expect("a close");
    }
}

#[test]
fn after_a_failed_write_scans_go_on() {
    for index_key_bytes in [8, 32] {
        let (device, _store, region) = store_of(index_key_bytes);
        device.inject(Fault::nth(1, Call::Write, Effect::Io));
        region.put("new", "value", Sync).unwrap_err();
        for (keys, errors) in both_ways(&region) {
            let keys: Vec<_> = keys.into_iter().filter(|key| key != b"new").collect();
            assert_eq!(keys, all_but(&[]));
            assert_eq!(errors, []);
        }
    }
}

#[test]
fn a_scan_of_a_closed_store_ends() {
    for index_key_bytes in [8, 32] {
        let (_device, store, region) = store_of(index_key_bytes);
        let (mut begun, mut fresh) = (region.iter(), region.iter());
        assert!(begun.next().is_some());
        store.close().expect("a close");
        // What was read ahead before may show.
        let kinds = begun.filter_map(Result::err).map(|error| error.kind());
        assert_eq!(kinds.collect::<Vec<_>>(), [ErrorKind::Closed]);
        assert_eq!(fresh.next().unwrap().unwrap_err().kind(), ErrorKind::Closed);
        assert!(fresh.next().is_none() && fresh.next_back().is_none());
        let mut keys = region.iter().keys();
        assert_eq!(keys.next().unwrap().unwrap_err().kind(), ErrorKind::Closed);
        assert!(keys.next().is_none());
    }
}
