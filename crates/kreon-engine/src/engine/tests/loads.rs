//! Loads whose trees cannot be made one.

use super::*;

/// Pairs with the keys of [`Bench::filled`].
struct Load {
    next: u32,
    key: Vec<u8>,
}

impl Pairs for Load {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let number = self.next;
        self.next += 1;
        self.key = name(number);
        Ok((number < KEYS).then_some((&self.key, b"loaded")))
    }
}

impl Bench {
    fn load(&self, region: &RegionState) {
        let (next, key) = (0, Vec::new());
        let mut load = Load { next, key };
        assert_eq!(self.engine.ingest(region, &mut load).unwrap(), 3000);
    }

    /// How many trees region "r" has.
    fn trees(&self) -> usize {
        let region = self.engine.existing_region("r").unwrap();
        let view = self.engine.core().parts.views.load();
        view.levels.of(region.id).len()
    }
}

#[test]
fn trees_that_cannot_be_folded_never_become_too_many_for_the_catalogue() {
    let bench = Bench::filled();
    let damaged = bench.tree_page();
    // Opened anew, nothing of the tree is in memory.
    let bench = Bench::open(bench.closed(), options()).unwrap();
    bench.device.flip_bit(damaged.offset_bytes() + 2000, 3);
    let region = bench.engine.region("r").unwrap();
    bench.load(&region);
    for key in 0..40 {
        bench.put(&region, &name(key), b"newer").unwrap();
        let error = bench.engine.checkpoint().unwrap_err();
        assert_eq!(error.kind(), kreon_base::ErrorKind::Corruption);
    }
    let after = Bench::open(bench.device.image(), options()).unwrap();
    let region = after.engine.region("r").unwrap();
    for (key, expected) in [(0, &b"newer"[..]), (39, b"newer"), (40, b"loaded")] {
        let found = after.get(&region, &name(key)).unwrap();
        assert_eq!(found.as_deref(), Some(expected));
    }
    let trees = bench.trees();
    assert!((2..=16).contains(&trees), "{trees}");
}
