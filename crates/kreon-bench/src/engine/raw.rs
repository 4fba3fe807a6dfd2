//! The device itself: what a durable write costs without a store. Each put is a direct write of one block behind the
//! one before, and a flush. It cannot read.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};
use kreon_device::AlignedBuf;
use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::Engine;
use super::tuning::Means;

struct Raw {
    file: File,
    block: AlignedBuf,
    /// As many bytes as a call of [`Engine::write_buffered`] writes.
    call: AlignedBuf,
    next: AtomicU64,
    is_sync: bool,
}

const BLOCK_BYTES: usize = 4096;

const CALL_BYTES: usize = 256 << 10;

/// Length of the file; behind its end writes begin anew.
const FILE_BYTES: u64 = 256 << 20;

/// Makes the file in `dir`. Its blocks are written once before, or only reserved: then the file system has to note
/// with each flush that they hold data now.
pub fn open(dir: &Path, means: &Means, is_written: bool) -> anyhow::Result<Box<dyn Engine>> {
    let path = dir.join("raw");
    let file = File::options()
        .create_new(true)
        .write(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(&path)
        .with_context(|| format!("open {} for direct writes", path.display()))?;
    fallocate(&file, FallocateFlags::empty(), 0, FILE_BYTES).context("reserve blocks")?;
    if is_written {
        let chunk = AlignedBuf::new(1 << 20);
        for offset in (0..FILE_BYTES).step_by(chunk.len()) {
            file.write_all_at(&chunk, offset)?;
        }
    }
    file.sync_all()?;
    let mut block = AlignedBuf::new(BLOCK_BYTES);
    block.fill(0x5a);
    let is_sync = means.is_sync;
    Ok(Box::new(Raw {
        file,
        block,
        call: AlignedBuf::new(CALL_BYTES),
        next: AtomicU64::new(0),
        is_sync,
    }))
}

impl Engine for Raw {
    fn put(&self, _key: &[u8], _value: &[u8]) -> anyhow::Result<()> {
        let offset = self.next.fetch_add(BLOCK_BYTES as u64, Ordering::Relaxed) % FILE_BYTES;
        self.file.write_all_at(&self.block, offset)?;
        if self.is_sync {
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn get(&self, _key: &[u8], _show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        bail!("the bare device only takes loads");
    }

    fn scan(
        &self,
        _start: &[u8],
        _count: usize,
        _show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize> {
        bail!("the bare device only takes loads");
    }

    /// In calls of the length that stores write their logs with.
    fn write_buffered(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> anyhow::Result<()> {
        let bytes: usize = pairs
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        for _ in 0..bytes.div_ceil(self.call.len()) {
            let len = self.call.len() as u64;
            let offset = self.next.fetch_add(len, Ordering::Relaxed) % FILE_BYTES;
            self.file
                .write_all_at(&self.call, offset.min(FILE_BYTES - len))?;
        }
        Ok(())
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(self.file.sync_data()?)
    }
}
