//! The data file that a backup writes: pages, one behind the other.

use std::sync::Arc;

use kreon_base::{PAGE_BYTES, PageNo, Result};
use kreon_device::{AlignedBuf, Device, Read, Write};
use kreon_format::BackupPlace;

use super::shelf::{Access, Name, Shelf};

/// Pages of one write.
const BUFFER_PAGES: usize = 256;

/// Appends pages to a data file that is made with the first of them.
pub struct DataFile<'a> {
    shelf: &'a dyn Shelf,
    number: u32,
    device: Option<Arc<dyn Device>>,
    buffer: AlignedBuf,
    /// Pages in the buffer.
    filled: usize,
    /// Pages before those.
    written: u64,
}

impl<'a> DataFile<'a> {
    pub fn new(shelf: &'a dyn Shelf, number: u32) -> Self {
        Self {
            shelf,
            number,
            device: None,
            buffer: AlignedBuf::new(BUFFER_PAGES * PAGE_BYTES),
            filled: 0,
            written: 0,
        }
    }

    /// Where the next page goes.
    pub fn next(&self) -> BackupPlace {
        BackupPlace {
            file: self.number,
            page: self.written + self.filled as u64,
        }
    }

    /// Appends whole pages.
    ///
    /// # Errors
    /// `OutOfSpace`, `Io`: the file is of no use.
    pub fn append(&mut self, pages: &[u8]) -> Result<()> {
        for page in pages.as_chunks::<PAGE_BYTES>().0 {
            if self.filled == BUFFER_PAGES {
                self.write_out()?;
            }
            let at = self.filled * PAGE_BYTES;
            if let Some(room) = self.buffer.get_mut(at..at + PAGE_BYTES) {
                room.copy_from_slice(page);
            }
            self.filled += 1;
        }
        Ok(())
    }

    /// Makes all of it durable. Returns its length in pages.
    ///
    /// # Errors
    /// `OutOfSpace`, `Io`: the file is of no use.
    pub fn finish(mut self) -> Result<u64> {
        self.write_out()?;
        if let Some(device) = &self.device {
            device.flush()?;
        }
        Ok(self.written)
    }

    fn write_out(&mut self) -> Result<()> {
        if self.filled == 0 {
            return Ok(());
        }
        let name = Name::Data(self.number).text();
        let device = match &self.device {
            Some(device) => device,
            None => self.device.insert(self.shelf.open(&name, Access::Write)?),
        };
        let bytes = self
            .buffer
            .get(..self.filled * PAGE_BYTES)
            .unwrap_or_default();
        let offset = self.written * PAGE_BYTES as u64;
        let write = || {
            device.grow(offset + bytes.len() as u64)?;
            device.write_at(offset, bytes)
        };
        write().map_err(|error| error.within(format!("backup, {name}")))?;
        self.written += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}

/// Reads a page for each of `pages` into `buffer`, neighbours at once.
///
/// # Errors
/// `Io`, `InvalidArgument` behind the end.
pub fn read_runs(device: &dyn Device, pages: &[PageNo], buffer: &mut [u8]) -> Result<()> {
    let (mut reads, mut rest) = (Vec::new(), buffer);
    for run in pages.chunk_by(|one, other| one.0 + 1 == other.0) {
        let (room, behind) = rest
            .split_at_mut_checked(run.len() * PAGE_BYTES)
            .unwrap_or_default();
        rest = behind;
        if let Some(first) = run.first() {
            reads.push(Read::new(first.offset_bytes(), room));
        }
    }
    device.read(&mut reads)
}

/// Writes `buffer`, a page for each of `pages`, neighbours at once.
///
/// # Errors
/// `OutOfSpace`, `Io`.
pub fn write_runs(device: &dyn Device, pages: &[PageNo], buffer: &[u8]) -> Result<()> {
    let (mut writes, mut rest) = (Vec::new(), buffer);
    for run in pages.chunk_by(|one, other| one.0 + 1 == other.0) {
        let (bytes, behind) = rest
            .split_at_checked(run.len() * PAGE_BYTES)
            .unwrap_or_default();
        rest = behind;
        if let Some(first) = run.first() {
            writes.push(Write::new(first.offset_bytes(), bytes));
        }
    }
    device.write(&writes)
}
