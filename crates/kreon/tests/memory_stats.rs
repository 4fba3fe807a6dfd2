//! The memory figures of a store.

use kreon::Store;

fn key(number: u32) -> Vec<u8> {
    format!("key {number:08}").into_bytes()
}

#[test]
fn the_classes_of_memory_sum_up_to_the_budget_whatever_the_store_does() {
    const MEMORY_BYTES: u64 = 16 << 20;
    let dir = tempfile::tempdir().expect("a folder");
    let options = Store::options().memory_bytes(MEMORY_BYTES as usize);
    let store = options.open(dir.path().join("store.kreon")).expect("open");
    let region = store.region("main").expect("a region");
    let check = || {
        let stats = store.stats();
        assert_eq!(stats.memory.sum_bytes(), MEMORY_BYTES, "{:?}", stats.memory);
        stats
    };
    let empty = check();
    assert_eq!(
        (empty.memory.leaf_bytes, empty.memory.log_page_bytes),
        (0, 0)
    );
    // One and a half times the memory, so that pages are evicted.
    for number in 0..24_000 {
        region.put(key(number), [number as u8; 1000]).expect("put");
        if number % 4000 == 0 {
            check();
        }
    }
    store.checkpoint().expect("checkpoint");
    let before = check();
    for number in (0..24_000).step_by(3) {
        let found = region.get(key(number)).expect("get").expect("a value");
        assert_eq!(found[..], [number as u8; 1000]);
    }
    let after = check();
    assert!(after.memory.leaf_bytes > 0 && after.memory.index_bytes > 0);
    let of_log = after.memory.log_page_bytes + after.memory.record_bytes;
    assert!(of_log > MEMORY_BYTES / 4, "{:?}", after.memory);
    assert!(after.mapping.hits > before.mapping.hits);
    assert!(after.mapping.misses > before.mapping.misses);
    assert!(after.mapping.pages_written > 0);
    let reads_by_size: u64 = after.device.reads.sizes.iter().sum();
    assert_eq!(reads_by_size, after.device_reads);
    assert!(after.device.depth_max >= 1);
    let text = after.to_string();
    for name in [
        "leaves",
        "records",
        "log buffers",
        "L0",
        "page misses",
        "queue depth",
    ] {
        assert!(text.contains(name), "{name} is missing in {text}");
    }
}
