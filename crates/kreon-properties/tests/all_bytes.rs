//! Every property on its stored corpus and on random bytes.
//!
//! `KREON_FUZZ_CASES=N` multiplies the number of random cases by N, `KREON_FUZZ_SEED` changes them.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use kreon_properties::{Randomness, TARGETS, Target, canary, named, random_input};

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut files: Vec<_> = fs::read_dir(folder.join(name))
        .unwrap_or_else(|error| panic!("the corpus of {name}: {error}"))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |text| text.parse().unwrap())
}

/// Runs a property; names the input if it fails.
fn try_input(target: &Target, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        panic!("{} fails for {input:?}", target.name);
    }
}

fn holds(name: &str) {
    let target = named(name).unwrap();
    let known = corpus(name);
    assert!(!known.is_empty(), "{name} has no corpus");
    for input in &known {
        try_input(&target, input);
    }
    let mut random = Randomness::new(setting("KREON_FUZZ_SEED", 1));
    let cases = u64::from(target.cases) * setting("KREON_FUZZ_CASES", 1);
    for _ in 0..cases {
        let input = random_input(&mut random, &known, target.input_bytes_max);
        try_input(&target, &input);
    }
}

macro_rules! tests {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            holds(stringify!($name));
        })*

        #[test]
        fn every_target_has_a_test() {
            let tested = [$(stringify!($name)),*];
            let targets: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(targets, tested);
        }
    };
}

tests!(
    superblock,
    bitmap_block,
    segment_header,
    catalogue,
    catalogue_pages,
    log_fragments,
    leaf,
    index_node,
    store_file,
    operations,
    input,
    packet,
    cluster_node,
    client_message,
    kvell_superblock,
    kvell_extent,
    kvell_item,
    kvell_large,
    kvell_image,
    tucana_superblock,
    tucana_leaf,
    tucana_index,
    commands,
    requests
);

/// The bytes by which `store_file` reads one forged number.
fn forged(page: u8, at: u8, value: u64) -> Vec<u8> {
    let mut input = vec![0, 0xff, 0xff, 0xff, 0xff, page, at];
    input.extend(value.to_le_bytes());
    input
}

/// Of the numbers in the front of every structure so many are left out: `KREON_FUZZ_CASES` includes them.
const STRIDE: u64 = 40;

#[test]
fn forged_numbers_bring_no_store_down() {
    let target = named("store_file").unwrap();
    let stride = (STRIDE / setting("KREON_FUZZ_CASES", 1)).max(1) as usize;
    let values = [
        0,
        1,
        u64::MAX,
        1 << 40,
        0xffff_ffff,
        1 << 63,
        0x0101_0101_0101_0101,
    ];
    let places = (0..26).flat_map(|page| (0..90).map(move |at| (page, at)));
    let numbers = places.flat_map(|(page, at)| values.map(|value| (page, at, value)));
    for (page, at, value) in numbers.step_by(stride) {
        try_input(&target, &forged(page, at, value));
    }
}

#[test]
fn random_bytes_find_the_canary() {
    let known = corpus("leaf");
    let mut random = Randomness::new(1);
    let found = (0..100_000).any(|_| {
        let input = random_input(&mut random, &known, 2048);
        catch_unwind(|| canary(&input)).is_err()
    });
    assert!(found, "a planted fault was not found");
}

#[test]
fn the_corpus_stays_small() {
    let bytes: usize = TARGETS
        .iter()
        .flat_map(|target| corpus(target.name))
        .map(|input| input.len())
        .sum();
    assert!(bytes < 300 << 10, "{bytes} bytes");
}
