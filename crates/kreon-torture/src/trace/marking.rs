//! The device under a traced store: a real one, and behind the volume a place for marks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use std::sync::{Mutex, PoisonError};

use kreon_base::Result;
use kreon_device::{AlignedBuf, Device, DeviceStats, FileDevice, Read, Write};

use super::mark::{MARK_BYTES, MARKS_BYTES, Mark};

/// Less than the kernel hands on in one request.
const REQUEST_BYTES_MAX: usize = 512 << 10;

/// A file, less the room for marks at its end. Each flush stands between two marks.
///
/// The log orders requests by their completion. A write that was completed while a flush was under
/// way stands before it, and is yet not covered by it: the first mark tells these apart.
///
/// To the file go no two requests that change it at once, and none that the kernel would split: the
/// FUSE export of QEMU up to 10.0 keeps the data of all requests in one buffer, and mixes up those of
/// two writes that overlap in time.
pub struct Marking {
    file: FileDevice,
    one_at_a_time: Mutex<()>,
    flushes: AtomicU64,
    marks: AtomicU64,
}

impl Marking {
    /// On a file that is long enough.
    pub fn new(file: FileDevice) -> Self {
        Self {
            file,
            one_at_a_time: Mutex::new(()),
            flushes: AtomicU64::new(0),
            marks: AtomicU64::new(0),
        }
    }

    /// The file.
    pub fn file(&self) -> &FileDevice {
        &self.file
    }

    fn alone<R>(&self, change: impl FnOnce(&FileDevice) -> R) -> R {
        let _alone = self
            .one_at_a_time
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        change(&self.file)
    }

    /// Leaves a mark.
    ///
    /// # Errors
    /// Those of the write.
    pub fn mark(&self, mark: Mark) -> Result<()> {
        // Marks in flight at once go to different blocks.
        let slots = MARKS_BYTES / MARK_BYTES as u64;
        let slot = self.marks.fetch_add(1, Relaxed) % slots;
        let mut block = AlignedBuf::new(MARK_BYTES);
        mark.encode(&mut block);
        let offset = self.len_bytes() + slot * MARK_BYTES as u64;
        self.alone(|file| file.write_at(offset, &block))
    }
}

impl Device for Marking {
    fn block_bytes(&self) -> u32 {
        self.file.block_bytes()
    }

    fn len_bytes(&self) -> u64 {
        self.file.len_bytes().saturating_sub(MARKS_BYTES)
    }

    fn len_bytes_max(&self) -> u64 {
        self.len_bytes()
    }

    fn grow(&self, len_bytes: u64) -> Result<()> {
        match len_bytes <= self.len_bytes() {
            true => Ok(()),
            false => {
                let text = format!("cannot grow to {len_bytes} bytes");
                Err(kreon_base::Error::new(
                    kreon_base::ErrorKind::OutOfSpace,
                    text,
                ))
            }
        }
    }

    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.alone(|file| file.allocate(offset, len_bytes))
    }

    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.alone(|file| file.discard(offset, len_bytes))
    }

    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        self.file.read(reads)
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        let pieces: Vec<_> = writes.iter().flat_map(split).collect();
        self.alone(|file| file.write(&pieces))
    }

    fn flush(&self) -> Result<()> {
        let flush = self.flushes.fetch_add(1, Relaxed);
        self.mark(Mark::FlushBegan(flush))?;
        self.alone(FileDevice::flush)?;
        self.mark(Mark::FlushEnded(flush))
    }

    fn stats(&self) -> DeviceStats {
        self.file.stats()
    }

    fn unlock(&self) -> Result<()> {
        self.file.unlock()
    }
}

/// A write in pieces that are one request each.
fn split<'a>(write: &Write<'a>) -> Vec<Write<'a>> {
    let mut pieces: Vec<Write<'a>> = Vec::new();
    let mut offset = write.offset;
    for buffer in &write.buffers {
        for part in buffer.chunks(REQUEST_BYTES_MAX) {
            match pieces.last_mut() {
                Some(piece) if piece.len_bytes() as usize + part.len() <= REQUEST_BYTES_MAX => {
                    piece.buffers.push(part);
                }
                _ => pieces.push(Write::new(offset, part)),
            }
            offset += part.len() as u64;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_small_and_are_the_whole_write() {
        let bytes: Vec<u8> = (0..3 * REQUEST_BYTES_MAX + 4096)
            .map(|n| (n / 512) as u8)
            .collect();
        let (head, tail) = bytes.split_at(8192);
        let pieces = split(&Write::vectored(4096, vec![head, tail]));
        let mut offset = 4096;
        for piece in &pieces {
            assert_eq!(piece.offset, offset);
            assert!(piece.len_bytes() as usize <= REQUEST_BYTES_MAX);
            offset += piece.len_bytes();
        }
        let whole: Vec<u8> = pieces.iter().flat_map(|p| p.buffers.concat()).collect();
        assert!(whole == bytes);
    }
}
