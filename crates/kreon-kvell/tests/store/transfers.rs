//! What requests ask of the device.

use kvell::Durability::{Buffered, Sync};
use kvell::Options;

use crate::world::{open, options, simulated};

/// More than the memory of the store in [`a_change_of_a_key_that_stands_whole_in_the_index_reads_nothing`] has room for.
const RECORDS: u64 = 2000;

#[test]
fn a_change_of_a_key_that_stands_whole_in_the_index_reads_nothing() {
    let device = simulated(1 << 40);
    let options = Options {
        memory_bytes: 1 << 20,
        ..options()
    };
    let store = open(&device, &options);
    let region = store.region("r").expect("a region");
    let reads_of = |key_bytes: usize| {
        let key = |number: u64| format!("{number:0key_bytes$}");
        let changes: Vec<_> = (0..RECORDS)
            .map(|number| (key(number), Some(vec![1; 1000])))
            .collect();
        region.write_many(&changes, Buffered).expect("puts");
        store.sync().expect("a sync");
        let before = store.stats().device.reads.count;
        region.write_many(&changes, Buffered).expect("changes");
        region.delete(key(0), Sync).expect("a deletion");
        store.stats().device.reads.count - before
    };
    assert_eq!(reads_of(options.index_key_bytes), 0);
    // One byte more, and items have to be looked at.
    assert!(reads_of(options.index_key_bytes + 1) > RECORDS / 2);
}
