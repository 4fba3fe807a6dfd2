//! Long batches, scans between them, and reused log segments.
#![forbid(unsafe_code)]

use kreon::{Durability, Result, Store, WriteBatch};

/// A batch longer than a segment has records that continue in another segment. A scan must not prefetch beyond the end
/// of a segment: the bytes there were kept in memory, and were stale after that segment had been written.
#[test]
fn scans_between_batches_longer_than_a_segment_read_what_was_written() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::options()
        .memory_bytes(96 << 20)
        .l0_bytes(1 << 14)
        .open(folder.path().join("store"))?;
    let region = store.region("r")?;
    for round in 0..80_u32 {
        let mut batch = WriteBatch::new();
        for n in 0..45_u32 {
            let len_bytes = 50_000 + (n * 37 + round * 101) as usize % 9000;
            let key = (n + 45 * (round % 3)).to_be_bytes();
            batch.put(&region, key, vec![(round + n) as u8; len_bytes]);
        }
        store.write(batch, Durability::Buffered)?;
        for pair in region.iter() {
            pair?;
        }
        if round % 2 == 0 {
            store.checkpoint()?;
        }
    }
    Ok(())
}
