//! Incremental readers for long values.

use std::fmt;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::sync::Arc;

use kreon_engine::{Engine, OpenSnapshot, RegionState};

use crate::{Error, Result};

/// A reader for a value that need not fit in memory. Made by [`Region::get_reader`](crate::Region::get_reader).
///
/// It reads the value as it was when the reader was made, like a [snapshot](crate::Snapshot). All bytes that it returns
/// have passed their checksum. Between calls it holds up to 2 MiB of the value, no lock and no page.
///
/// Errors are those of [`Region::get`](crate::Region::get); `Read`, `BufRead` and `Seek` return them as the source of
/// an [`io::Error`].
pub struct ValueReader {
    reader: kreon_engine::ValueReader,
    position: u64,
    /// Keeps the store open.
    _engine: Arc<Engine>,
}

impl ValueReader {
    pub(crate) fn open(
        engine: &Arc<Engine>,
        region: &Arc<RegionState>,
        key: &[u8],
        snapshot: Arc<OpenSnapshot>,
    ) -> Result<Option<Self>> {
        let reader = engine.value_reader(region, key, snapshot)?;
        Ok(reader.map(|reader| Self {
            reader,
            position: 0,
            _engine: Arc::clone(engine),
        }))
    }

    /// Length of the value in bytes.
    pub fn len_bytes(&self) -> u64 {
        u64::from(self.reader.len_bytes())
    }

    /// The bytes from the current position on, as many as are buffered; empty only at the end of the value. Like
    /// [`BufRead::fill_buf`] with Kreon's error type.
    ///
    /// # Errors
    /// As [`Region::get`](crate::Region::get).
    pub fn bytes(&mut self) -> Result<&[u8]> {
        self.reader
            .bytes_from(u32::try_from(self.position).unwrap_or(u32::MAX))
    }
}

fn io_error(error: Error) -> io::Error {
    io::Error::other(error)
}

impl Read for ValueReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.read(into)?;
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for ValueReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.bytes().map_err(io_error)
    }

    fn consume(&mut self, bytes: usize) {
        self.position = self.position.saturating_add(bytes as u64);
    }
}

impl Seek for ValueReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.len_bytes().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or_else(|| {
            let text = "a seek before the start of a value";
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        Ok(self.position)
    }
}

impl fmt::Debug for ValueReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueReader")
            .field("len_bytes", &self.len_bytes())
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
