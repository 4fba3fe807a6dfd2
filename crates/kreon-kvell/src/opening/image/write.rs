//! Writes an image.

use std::sync::atomic::{AtomicBool, Ordering};

use kreon_base::{Checksum, Error, ErrorKind, Result};
use kreon_device::{AlignedBuf, Device};
use parking_lot::Mutex;

use crate::format::{
    EXTENT_BYTES, ExtentNo, IMAGE_BLOCK_BYTES, IMAGE_HEADER_BYTES, ImageHeader, ImagePlace,
    ImageRecord, State, Superblock, Timestamp,
};
use crate::partition::Parts;
use crate::space::{Extents, Superblocks};

/// Writes an image. Several threads may add partitions at a time.
pub struct ImageWriter<'a> {
    device: &'a dyn Device,
    /// Of each block, besides its number, its partition and the bytes of a key.
    header: ImageHeader,
    start: u64,
    /// Of the blocks by their numbers; of one that is being written any.
    checksums: Mutex<Vec<u32>>,
    /// There is no room for it, or a partition's slots are not all accounted for.
    is_given_up: AtomicBool,
}

/// The block of a partition that is being filled.
struct Block<'a> {
    image: &'a ImageWriter<'a>,
    header: ImageHeader,
    bytes: AlignedBuf,
    /// Bytes of records.
    used_bytes: usize,
    record: Vec<u8>,
}

impl<'a> ImageWriter<'a> {
    fn new(device: &'a dyn Device, superblock: &Superblock, sequence: u64) -> Self {
        Self {
            device,
            header: ImageHeader {
                store: superblock.store,
                number: 0,
                partition: 0,
                index_key_bytes: 0,
                incarnation: superblock.incarnation,
                sequence,
            },
            start: ExtentNo(superblock.extents_end).offset(),
            checksums: Mutex::default(),
            is_given_up: AtomicBool::new(false),
        }
    }

    /// Adds a partition. Nothing may be under way in it.
    pub fn add(&self, partition: usize, parts: &Parts) -> Result<()> {
        if self.is_given_up() || !parts.adds_up() {
            return self.give_up();
        }
        let header = ImageHeader {
            partition: partition as u16,
            index_key_bytes: parts.index.key_bytes_max() as u16,
            ..self.header
        };
        let mut block = Block {
            image: self,
            header,
            bytes: AlignedBuf::new(IMAGE_BLOCK_BYTES),
            used_bytes: 0,
            record: Vec::new(),
        };
        parts.records(|record| block.push(record))?;
        block.end().map(drop)
    }

    /// There will be no image.
    pub fn give_up(&self) -> Result<()> {
        self.is_given_up.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// The number of the next block, whose place is there then. `OutOfSpace` without room for it.
    fn next_block(&self) -> Result<u32> {
        let mut checksums = self.checksums.lock();
        let number = checksums.len() as u32;
        grow(self.device, self.offset(number) + IMAGE_BLOCK_BYTES as u64)?;
        checksums.push(0);
        Ok(number)
    }

    fn offset(&self, block: u32) -> u64 {
        self.start + u64::from(block) * IMAGE_BLOCK_BYTES as u64
    }

    /// Where the image is, if there is one. It is durable with the next flush.
    fn place(self) -> Option<ImagePlace> {
        let is_given_up = self.is_given_up();
        let checksums = self.checksums.into_inner();
        (!is_given_up && !checksums.is_empty()).then(|| ImagePlace {
            offset: self.start,
            bytes: (checksums.len() * IMAGE_BLOCK_BYTES) as u64,
            checksum: checksum_of(&checksums),
        })
    }
}

impl Block<'_> {
    /// Adds the record; `false` if there is no room for it on the device.
    fn push(&mut self, record: &ImageRecord<'_>) -> Result<bool> {
        self.record.clear();
        record.encode(&mut self.record);
        let end = IMAGE_HEADER_BYTES + self.used_bytes + self.record.len();
        if end > IMAGE_BLOCK_BYTES && !self.end()? {
            return Ok(false);
        }
        let at = IMAGE_HEADER_BYTES + self.used_bytes;
        if let Some(to) = self.bytes.get_mut(at..at + self.record.len()) {
            to.copy_from_slice(&self.record);
        }
        self.used_bytes += self.record.len();
        Ok(true)
    }

    /// Writes the block, if it has records.
    fn end(&mut self) -> Result<bool> {
        if self.used_bytes == 0 || self.image.is_given_up() {
            return Ok(!self.image.is_given_up());
        }
        match self.write() {
            Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                self.image.give_up()?;
                return Ok(false);
            }
            outcome => outcome?,
        }
        self.used_bytes = 0;
        Ok(true)
    }

    fn write(&mut self) -> Result<()> {
        let number = self.image.next_block()?;
        self.header.number = number;
        let offset = self.image.offset(number);
        let checksum = self.header.seal(&mut self.bytes, offset, self.used_bytes);
        self.image.device.write_at(offset, &self.bytes)?;
        if let Some(place) = self.image.checksums.lock().get_mut(number as usize) {
            *place = checksum;
        }
        Ok(())
    }
}

/// The checksum of an image: over those of its blocks in their order.
pub fn checksum_of(checksums: &[u32]) -> u32 {
    let each = checksums.iter().map(|checksum| checksum.to_le_bytes());
    each.fold(Checksum::new(), |sum, bytes| sum.with(&bytes))
        .finish()
}

/// Makes the device reach up to `end`.
fn grow(device: &dyn Device, end: u64) -> Result<()> {
    let most = device.len_bytes_max();
    if end > most {
        return Err(Error::new(ErrorKind::OutOfSpace, "no room for an image"));
    }
    if end > device.len_bytes() {
        device.grow(end.next_multiple_of(EXTENT_BYTES as u64).min(most))?;
    }
    Ok(())
}

/// Writes the image and the last superblock of an opening, durably. Nothing is under way, and all is durable up to `marks`.
/// `add` adds all partitions.
///
/// A failure leaves the store as after a power cut. Without room for the image it is left out.
pub fn write_last(
    device: &dyn Device,
    superblocks: &Superblocks,
    extents: &Extents,
    marks: &[Timestamp],
    add: impl FnOnce(&ImageWriter<'_>) -> Result<()>,
) -> Result<()> {
    let (end, sequence) = extents.end();
    let room = device
        .len_bytes_max()
        .saturating_sub(ExtentNo(end).offset());
    if room < IMAGE_BLOCK_BYTES as u64 {
        return superblocks.write_marks(State::Clean, marks);
    }
    if end < superblocks.extents_end() {
        superblocks.write(|superblock| superblock.extents_end = end)?;
    }
    let writer = ImageWriter::new(device, &superblocks.newest(), sequence);
    add(&writer)?;
    let place = writer.place();
    if place.is_some() {
        superblocks.flush()?;
    } else {
        tracing::info!("no image of the index: the next opening reads everything");
    }
    superblocks.write(|superblock| {
        superblock.state = State::Clean;
        superblock.image = place;
        superblock.raise(marks);
    })
}
