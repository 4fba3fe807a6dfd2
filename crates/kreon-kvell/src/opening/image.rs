//! The image of the index: what a recovery would find, written at a clean close, so that the next opening reads only that.
//!
//! It lies behind the end of the extents in use, where everything else takes what it finds for nothing. So the end is set
//! back to that place first, durably; then the image becomes durable, and then the superblock that names it. A power cut
//! in between leaves a store without an image.

use std::sync::Arc;

use kreon_base::{Checksum, Error, ErrorKind, Result};
use kreon_device::{AlignedBuf, Device, Read};

use super::volume::extents_of;
use crate::format::{
    EXTENT_BYTES, ExtentNo, IMAGE_BLOCK_BYTES, IMAGE_HEADER_BYTES, ImageHeader, ImagePlace, State,
    Superblock, Timestamp,
};
use crate::partition::{Parts, Recovery};
use crate::space::{Extents, FoundExtents, Superblocks};

/// Blocks read at a time: 2 MiB of memory.
const BLOCKS: usize = 8;

/// Writes an image, block by block.
pub struct ImageWriter<'a> {
    device: &'a dyn Device,
    /// Of the block that is being filled.
    header: ImageHeader,
    block: AlignedBuf,
    /// Bytes of records in the block.
    used_bytes: usize,
    start: u64,
    /// Blocks written.
    blocks: u32,
    /// Over the checksums of all blocks.
    checksum: Checksum,
    /// There is no room for it, or a partition's slots are not all accounted for.
    is_given_up: bool,
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
            block: AlignedBuf::new(IMAGE_BLOCK_BYTES),
            used_bytes: 0,
            start: ExtentNo(superblock.extents_end).offset(),
            blocks: 0,
            checksum: Checksum::new(),
            is_given_up: false,
            record: Vec::new(),
        }
    }

    /// Adds a partition. Nothing may be under way in it.
    pub fn add(&mut self, partition: usize, parts: &Parts) -> Result<()> {
        if self.is_given_up || !parts.adds_up() {
            return self.give_up();
        }
        self.header.partition = partition as u16;
        self.header.index_key_bytes = parts.index.key_bytes_max() as u16;
        parts.records(|record| {
            self.record.clear();
            record.encode(&mut self.record);
            self.push()
        })?;
        self.end_block().map(drop)
    }

    /// There will be no image.
    pub fn give_up(&mut self) -> Result<()> {
        self.is_given_up = true;
        Ok(())
    }

    /// Adds the record; `false` if there is no room for it on the device.
    fn push(&mut self) -> Result<bool> {
        let end = IMAGE_HEADER_BYTES + self.used_bytes + self.record.len();
        if end > IMAGE_BLOCK_BYTES && !self.end_block()? {
            return Ok(false);
        }
        let at = IMAGE_HEADER_BYTES + self.used_bytes;
        if let Some(to) = self.block.get_mut(at..at + self.record.len()) {
            to.copy_from_slice(&self.record);
        }
        self.used_bytes += self.record.len();
        Ok(true)
    }

    /// Writes the block, if it has records.
    fn end_block(&mut self) -> Result<bool> {
        if self.used_bytes == 0 || self.is_given_up {
            return Ok(!self.is_given_up);
        }
        let offset = self.start + self.bytes();
        self.header.number = self.blocks;
        let checksum = self.header.seal(&mut self.block, offset, self.used_bytes);
        let written = put(self.device, offset, &self.block);
        match written {
            Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                self.is_given_up = true;
                return Ok(false);
            }
            outcome => outcome?,
        }
        let checksums = std::mem::take(&mut self.checksum);
        self.checksum = checksums.with(&checksum.to_le_bytes());
        self.blocks += 1;
        self.used_bytes = 0;
        Ok(true)
    }

    fn bytes(&self) -> u64 {
        u64::from(self.blocks) * IMAGE_BLOCK_BYTES as u64
    }

    /// Where the image is, if there is one. It is durable with the next flush.
    fn place(self) -> Option<ImagePlace> {
        (!self.is_given_up && self.blocks > 0).then(|| ImagePlace {
            offset: self.start,
            bytes: self.bytes(),
            checksum: self.checksum.finish(),
        })
    }
}

/// Writes behind the extents, where the device may have to grow.
fn put(device: &dyn Device, offset: u64, block: &[u8]) -> Result<()> {
    let end = offset + block.len() as u64;
    if end > device.len_bytes_max() {
        return Err(Error::new(ErrorKind::OutOfSpace, "no room for an image"));
    }
    if end > device.len_bytes() {
        device.grow(
            end.next_multiple_of(EXTENT_BYTES as u64)
                .min(device.len_bytes_max()),
        )?;
    }
    device.write_at(offset, block)
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
    add: impl FnOnce(&mut ImageWriter<'_>) -> Result<()>,
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
    let mut writer = ImageWriter::new(device, &superblocks.newest(), sequence);
    add(&mut writer)?;
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

/// The place of the image, if there is one: behind the end of the extents.
pub fn image_of(superblock: &Superblock) -> Option<ImagePlace> {
    let start = ExtentNo(superblock.extents_end).offset();
    let is_clean = superblock.state == State::Clean;
    superblock
        .image
        .filter(|place| is_clean && place.offset == start)
}

/// Reads the image that `superblock` names into the partitions. `None` if there is none, or it is for other bytes of each key
/// than `index_key_bytes`; the partitions are as they were then.
///
/// `Corruption` if it does not verify: the partitions hold a part of it.
pub fn read_image(
    device: &dyn Device,
    superblock: &Superblock,
    index_key_bytes: usize,
    recoveries: &mut [Recovery],
) -> Result<Option<FoundExtents>> {
    let Some(place) = image_of(superblock) else {
        return Ok(None);
    };
    let blocks = place.bytes / IMAGE_BLOCK_BYTES as u64;
    let is_there = place.bytes % IMAGE_BLOCK_BYTES as u64 == 0
        && place
            .offset
            .checked_add(place.bytes)
            .is_some_and(|end| end <= device.len_bytes());
    if !is_there {
        return Err(Error::corruption("the image lies outside of the volume"));
    }
    let mut checksum = Checksum::new();
    let mut sequence = 0;
    let mut bytes = AlignedBuf::new(BLOCKS * IMAGE_BLOCK_BYTES);
    for first in (0..blocks).step_by(BLOCKS) {
        let offsets = (first..blocks.min(first + BLOCKS as u64))
            .map(|number| place.offset + number * IMAGE_BLOCK_BYTES as u64);
        let parts = bytes.chunks_exact_mut(IMAGE_BLOCK_BYTES);
        let reads = offsets.clone().zip(parts);
        let mut reads: Vec<Read<'_>> = reads.map(|(at, part)| Read::new(at, part)).collect();
        device.read(&mut reads)?;
        for ((offset, block), number) in offsets
            .zip(bytes.chunks_exact(IMAGE_BLOCK_BYTES))
            .zip(first..)
        {
            let (header, records, sealed) = ImageHeader::decode(block, superblock.store, offset)?;
            let is_next =
                u64::from(header.number) == number && header.incarnation == superblock.incarnation;
            if is_next && usize::from(header.index_key_bytes) != index_key_bytes && number == 0 {
                return Ok(None);
            }
            let recovery = recoveries.get_mut(usize::from(header.partition));
            let Some(recovery) = recovery.filter(|_| is_next) else {
                return Err(Error::corruption(
                    "the blocks of an image do not belong together",
                ));
            };
            recovery.restore(records)?;
            checksum = checksum.with(&sealed.to_le_bytes());
            sequence = header.sequence;
        }
    }
    if checksum.finish() != place.checksum {
        return Err(Error::corruption(
            "the image is not the one that the superblock names",
        ));
    }
    Ok(Some(found(device, superblock, sequence, recoveries)))
}

/// The extents as the partitions have them. The end was set back to that of those in use.
fn found(
    device: &dyn Device,
    superblock: &Superblock,
    sequence: u64,
    recoveries: &[Recovery],
) -> FoundExtents {
    let end = superblock.extents_end.min(extents_of(device));
    let mut found = FoundExtents {
        free: (1..end).map(ExtentNo).collect(),
        end,
        sequence,
    };
    for extent in recoveries.iter().flat_map(Recovery::extents) {
        found.free.remove(&extent);
    }
    found
}

/// As [`read_image`], over `device`; an image that does not verify is told, and given up.
pub fn by_image(
    device: &Arc<dyn Device>,
    superblock: &Superblock,
    index_key_bytes: usize,
    recoveries: impl Fn() -> Vec<Recovery>,
) -> Option<(Vec<Recovery>, FoundExtents)> {
    let mut restored = recoveries();
    match read_image(&**device, superblock, index_key_bytes, &mut restored) {
        Ok(found) => found.map(|found| (restored, found)),
        Err(error) => {
            tracing::warn!(%error, "the image of the index is of no use: all items are read");
            None
        }
    }
}
