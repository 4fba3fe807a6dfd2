//! A full volume.

use kreon_base::ErrorKind;
use kvell::Durability::{Buffered, Sync};

use crate::world::{open, options, simulated};

#[test]
fn a_full_volume_refuses_puts_and_goes_on_after_deletions() {
    for durability in [Sync, Buffered] {
        let device = simulated(12 << 20);
        let store = open(&device, &options());
        let region = store.region("r").expect("a region");
        let mut count = 0_u32;
        let refused = loop {
            match region.put(count.to_be_bytes(), vec![1; 3000], durability) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), ErrorKind::OutOfSpace);
        let report = store.verify().expect("a verification");
        assert!(report.is_clean(), "{:?}", report.damage);
        assert!(count > 300, "{count} items in 11 MiB");
        for number in 0..count {
            assert!(region.get(number.to_be_bytes()).expect("a get").is_some());
            let deletion = region.delete(number.to_be_bytes(), durability);
            deletion.expect("a deletion");
        }
        // Of another class of sizes: whole extents have to change hands.
        for number in 0..10_u32 {
            let put = region.put(number.to_be_bytes(), vec![2; 100_000], durability);
            put.expect("a put");
        }
        for number in 0..10_u32 {
            let value = region.get(number.to_be_bytes()).expect("a get");
            assert_eq!(value, Some(vec![2; 100_000]));
        }
    }
}
