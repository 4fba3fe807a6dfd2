//! How fast the device reads what lies in a row.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Context;
use kreon_device::AlignedBuf;
use rustix::fs::OFlags;

/// Of each read.
const CHUNK_BYTES: usize = 1 << 20;

/// Of the file that is read.
const FILE_BYTES: u64 = 512 << 20;

/// Bytes a second of direct reads of a MiB each, one behind the other, with so many of them in flight.
///
/// # Errors
/// Of the file system, or if it has no direct I/O.
pub fn read_rates(dir: &Path, depths: &[usize]) -> anyhow::Result<Vec<f64>> {
    let path = dir.join("sequential");
    let file = File::options()
        .create_new(true)
        .read(true)
        .write(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(&path)
        .with_context(|| format!("open {} for direct reads", path.display()))?;
    let mut chunk = AlignedBuf::new(CHUNK_BYTES);
    for (n, offset) in (0..).zip((0..FILE_BYTES).step_by(CHUNK_BYTES)) {
        crate::keys::fill(n, &mut chunk);
        file.write_all_at(&chunk, offset)?;
    }
    file.sync_all()?;
    let rates = depths.iter().map(|depth| rate(&file, *depth)).collect();
    std::fs::remove_file(&path)?;
    rates
}

fn rate(file: &File, depth: usize) -> anyhow::Result<f64> {
    let (next, started) = (AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let readers: Vec<_> = (0..depth)
            .map(|_| {
                scope.spawn(|| -> std::io::Result<()> {
                    let mut chunk = AlignedBuf::new(CHUNK_BYTES);
                    loop {
                        let offset = next.fetch_add(CHUNK_BYTES as u64, Ordering::Relaxed);
                        if offset >= FILE_BYTES {
                            return Ok(());
                        }
                        file.read_exact_at(&mut chunk, offset)?;
                    }
                })
            })
            .collect();
        for reader in readers {
            let ended = reader.join();
            ended.map_err(|_| anyhow::anyhow!("a reader panicked"))??;
        }
        Ok(())
    })?;
    Ok(FILE_BYTES as f64 / started.elapsed().as_secs_f64())
}
