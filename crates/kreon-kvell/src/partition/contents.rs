//! Contents of cells, in the memory that a transfer has brought them in.

use std::ops::Deref;

use kreon_device::AlignedBuf;

/// Most buffers that are kept for later transfers, and the longest of them, in bytes: for a partition at depth, and little
/// beside its memory.
const SPARES_MAX: usize = 16;
const SPARE_BYTES_MAX: usize = 8 << 10;

/// The content of a cell with I/O under way.
pub struct Content {
    /// As it was read, if nothing has changed it.
    read: Option<AlignedBuf>,
    /// Otherwise.
    changed: Vec<u8>,
}

impl Content {
    pub fn of_read(buffer: AlignedBuf) -> Self {
        Self {
            read: Some(buffer),
            changed: Vec::new(),
        }
    }

    pub fn of_change(changed: Vec<u8>) -> Self {
        Self {
            read: None,
            changed,
        }
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        if let Some(read) = self.read.take() {
            self.changed = read.to_vec();
        }
        &mut self.changed
    }

    /// The buffer that it was read into, if nothing has changed it.
    pub fn into_buffer(self) -> Option<AlignedBuf> {
        self.read
    }
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.read.as_deref().unwrap_or(&self.changed)
    }
}

/// Buffers of transfers that have ended: a new one costs as much as the search for its content.
#[derive(Default)]
pub struct Spares(Vec<AlignedBuf>);

impl Spares {
    /// A buffer of `len_bytes`, with any content.
    pub fn take(&mut self, len_bytes: usize) -> AlignedBuf {
        let fits = |buffer: &AlignedBuf| buffer.len() == len_bytes;
        match self.0.iter().rposition(fits) {
            Some(at) => self.0.swap_remove(at),
            None => AlignedBuf::new(len_bytes),
        }
    }

    /// Keeps a buffer, if there is room.
    pub fn keep(&mut self, buffer: Option<AlignedBuf>) {
        let small = buffer.filter(|buffer| buffer.len() <= SPARE_BYTES_MAX);
        if self.0.len() < SPARES_MAX {
            self.0.extend(small);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spare_is_taken_by_its_length() {
        let mut spares = Spares::default();
        let mut buffer = AlignedBuf::new(1024);
        buffer.fill(7);
        spares.keep(Some(buffer));
        assert!(spares.take(512).iter().all(|&byte| byte == 0));
        assert!(spares.take(1024).iter().all(|&byte| byte == 7));
        assert!(spares.take(1024).iter().all(|&byte| byte == 0));
    }

    #[test]
    fn few_spares_are_kept_and_no_long_ones() {
        let mut spares = Spares::default();
        spares.keep(Some(AlignedBuf::new(SPARE_BYTES_MAX + 512)));
        assert!(spares.0.is_empty());
        for _ in 0..2 * SPARES_MAX {
            spares.keep(Some(AlignedBuf::new(512)));
        }
        assert_eq!(spares.0.len(), SPARES_MAX);
    }
}
