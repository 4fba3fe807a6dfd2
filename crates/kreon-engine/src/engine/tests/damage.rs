//! What damage on the device does to calls that need the damaged part.

use kreon_base::{ErrorKind, PageNo};
use kreon_sim::{Call, Effect, Fault};

use super::*;

/// Where `needle` stands on the device; it must be there once at least.
fn place_of(image: &Image, needle: &[u8]) -> u64 {
    let bytes = image.bytes(0, image.len_bytes() as usize);
    let found = bytes.windows(needle.len()).position(|part| part == needle);
    found.unwrap() as u64
}

#[test]
fn a_record_that_only_l0_points_at_is_verified_too() {
    let bench = Bench::open(Image::default(), options()).unwrap();
    let region = bench.engine.region("r").unwrap();
    let long = b"a value that stands in the log only".repeat(20);
    bench.put(&region, b"a", &long).unwrap();
    bench.put(&region, b"b", b"short").unwrap();
    let image = bench.closed();
    let place = place_of(&image, &long);

    let bench = Bench::open(image, options()).unwrap();
    assert!(bench.problems().is_empty());
    bench.device.flip_bit(place + 100, 0);
    // Nothing of the page may be left from before.
    bench
        .engine
        .subsystems
        .storage
        .mapping
        .discard(PageNo(0), 1 << 12);
    let problems = bench.problems();
    // Once for the next open, which replays the record, and once for whoever reads it now.
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems
            .iter()
            .any(|line| line.contains("the log is damaged")),
        "{problems:?}"
    );
    assert!(
        problems
            .iter()
            .any(|line| line.starts_with("region \"r\": ")),
        "{problems:?}"
    );
    let region = bench.engine.existing_region("r").unwrap();
    let error = bench.get(&region, b"a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(bench.get(&region, b"b").unwrap().unwrap(), b"short");
}

#[test]
fn a_region_whose_index_is_damaged_is_not_dropped_and_stays() {
    let image = Bench::filled().closed();
    let bench = Bench::open(image, options()).unwrap();
    let page = bench.tree_page();
    bench.device.flip_bit(page.offset_bytes() + 2000, 5);
    let error = bench.engine.drop_region("r").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains("cannot be dropped"), "{error}");

    // The store goes on, the region too, but for what is damaged.
    let region = bench.engine.existing_region("r").unwrap();
    bench.put(&region, b"new", b"value").unwrap();
    let (mut right, mut damaged) = (0, 0);
    for key in 0..KEYS {
        match bench.get(&region, &name(key)) {
            Ok(found) => {
                assert_eq!(found.unwrap(), value(key));
                right += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption);
                damaged += 1;
            }
        }
    }
    assert!(right > 0 && damaged > 0, "{right} right, {damaged} damaged");
}

#[test]
fn a_read_that_fails_while_opening_is_told_and_harms_nothing() {
    let bench = Bench::filled();
    let region = bench.engine.existing_region("r").unwrap();
    for key in 0..200 {
        bench
            .put(&region, &name(key), b"behind the marker")
            .unwrap();
    }
    let image = bench.closed();
    for n in 1.. {
        let device = Arc::new(SimDevice::from_image(image.clone(), SimOptions::default()));
        device.inject(Fault::nth(n, Call::Read, Effect::Io));
        let open = || Engine::open(Arc::clone(&device) as Arc<dyn Device>, options());
        let first = open();
        if device.faults_met() == 0 {
            assert!(n > 5, "an open reads more than that");
            return;
        }
        if let Err(error) = first {
            assert_eq!(error.kind(), ErrorKind::Io, "read {n}: {error}");
            assert_eq!(device.calls(Call::Write), 0, "read {n}");
        }
        device.clear_faults();
        let engine = open().unwrap();
        let region = engine.existing_region("r").unwrap();
        for key in [0, 199, 200, KEYS - 1] {
            let found = engine
                .get(&region, &name(key), None, <[u8]>::to_vec)
                .unwrap();
            let expected = if key < 200 {
                b"behind the marker".to_vec()
            } else {
                value(key)
            };
            assert_eq!(found.unwrap(), expected, "read {n}, key {key}");
        }
    }
}
