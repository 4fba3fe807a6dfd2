//! Reads an image.

use std::sync::Arc;

use kreon_base::{Error, Result};
use kreon_device::{AlignedBuf, Device, Read};

use super::image_of;
use super::write::checksum_of;
use crate::format::{
    ExtentNo, IMAGE_BLOCK_BYTES, IMAGE_HEADER_BYTES, ImageHeader, ImagePlace, Superblock,
};
use crate::opening::in_order::read_in_order;
use crate::opening::threads::in_threads;
use crate::opening::volume::extents_of;
use crate::partition::Recovery;
use crate::space::FoundExtents;

/// Blocks that a thread has in flight or in its hands: 2 MiB of memory.
const DEPTH: usize = 8;

/// Beginnings of blocks read at a time.
const BEGINNINGS: usize = 256;

/// What one thread reads: partitions by number, and the numbers of the blocks of each.
type Share<'a> = Vec<(u16, &'a mut Recovery, Vec<u32>)>;

/// A block that was read: its number and its checksum.
type Sealed = (u32, u32);

/// An image to be read.
struct Image<'a> {
    device: &'a Arc<dyn Device>,
    superblock: &'a Superblock,
    place: ImagePlace,
}

/// The partitions as the image of `superblock` tells them, and the extents; `None` if there is none, or none of use: it is for
/// other bytes of each key than `index_key_bytes`, or it does not verify, which is told.
pub fn by_image(
    device: &Arc<dyn Device>,
    superblock: &Superblock,
    (index_key_bytes, threads): (usize, usize),
    recoveries: impl Fn() -> Vec<Recovery>,
) -> Option<(Vec<Recovery>, FoundExtents)> {
    let place = image_of(superblock)?;
    let image = Image {
        device,
        superblock,
        place,
    };
    let mut restored = recoveries();
    match image.read(index_key_bytes, threads, &mut restored) {
        Ok(found) => found.map(|found| (restored, found)),
        Err(error) => {
            tracing::warn!(%error, "the image of the index is of no use: all items are read");
            None
        }
    }
}

impl Image<'_> {
    /// Reads the image into the partitions. `None` if it is for other bytes of each key; the partitions are as they were then.
    ///
    /// `Corruption` if it does not verify: the partitions hold a part of it.
    fn read(
        &self,
        index_key_bytes: usize,
        threads: usize,
        recoveries: &mut [Recovery],
    ) -> Result<Option<FoundExtents>> {
        let blocks = self.blocks()?;
        let mut first = AlignedBuf::new(IMAGE_BLOCK_BYTES);
        self.device.read_at(self.offset(0), &mut first)?;
        let (header, _, _) = ImageHeader::decode(&first, self.superblock.store, self.offset(0))?;
        if usize::from(header.index_key_bytes) != index_key_bytes {
            return Ok(None);
        }
        let by_partition = self.by_partition(blocks, recoveries.len())?;
        let mut shares: Vec<Share<'_>> = Vec::new();
        shares.resize_with(threads.clamp(1, recoveries.len().max(1)), Vec::new);
        let count = shares.len();
        for ((number, recovery), blocks) in (0_u16..).zip(recoveries.iter_mut()).zip(by_partition) {
            if let Some(share) = shares.get_mut(usize::from(number) % count) {
                share.push((number, recovery, blocks));
            }
        }
        let sealed = in_threads(shares, |share| self.read_share(share, &header))?;
        let mut checksums = vec![0; blocks as usize];
        for (number, checksum) in sealed.into_iter().flatten() {
            if let Some(place) = checksums.get_mut(number as usize) {
                *place = checksum;
            }
        }
        if checksum_of(&checksums) != self.place.checksum {
            return Err(Error::corruption(
                "the image is not the one that the superblock names",
            ));
        }
        Ok(Some(self.found(header.sequence, recoveries)))
    }

    /// How many blocks there are, one at least.
    fn blocks(&self) -> Result<u32> {
        let ImagePlace { offset, bytes, .. } = self.place;
        let blocks = u32::try_from(bytes / IMAGE_BLOCK_BYTES as u64).unwrap_or(0);
        let is_there = bytes % IMAGE_BLOCK_BYTES as u64 == 0
            && offset
                .checked_add(bytes)
                .is_some_and(|end| end <= self.device.len_bytes());
        match is_there && blocks > 0 {
            true => Ok(blocks),
            false => Err(Error::corruption("the image lies outside of the volume")),
        }
    }

    fn offset(&self, block: u32) -> u64 {
        self.place.offset + u64::from(block) * IMAGE_BLOCK_BYTES as u64
    }

    /// The blocks of each partition, as their beginnings say: what these say is verified with the blocks.
    fn by_partition(&self, blocks: u32, partitions: usize) -> Result<Vec<Vec<u32>>> {
        let mut by_partition = vec![Vec::new(); partitions];
        let begin_bytes = (self.device.block_bytes() as usize).max(IMAGE_HEADER_BYTES);
        let all: Vec<u32> = (0..blocks).collect();
        let mut begins = AlignedBuf::new(all.len().min(BEGINNINGS) * begin_bytes);
        for some in all.chunks(BEGINNINGS) {
            let parts = begins.chunks_exact_mut(begin_bytes);
            let reads = some.iter().zip(parts);
            let mut reads: Vec<Read<'_>> = reads
                .map(|(&block, begin)| Read::new(self.offset(block), begin))
                .collect();
            self.device.read(&mut reads)?;
            for (&block, begin) in some.iter().zip(begins.chunks_exact(begin_bytes)) {
                let partition = usize::from(ImageHeader::partition_told_by(begin));
                let blocks = by_partition.get_mut(partition);
                blocks.ok_or_else(mixed)?.push(block);
            }
        }
        Ok(by_partition)
    }

    /// Reads what is of some partitions. Their blocks say the same as `first`, the header of the first block of all, but for
    /// number and partition.
    fn read_share(&self, share: Share<'_>, first: &ImageHeader) -> Result<Vec<Sealed>> {
        let mut sealed = Vec::new();
        for (partition, recovery, blocks) in share {
            let offsets: Vec<u64> = blocks.iter().map(|&block| self.offset(block)).collect();
            let mut numbers = blocks.iter();
            let pieces = (offsets.as_slice(), IMAGE_BLOCK_BYTES);
            read_in_order(self.device, pieces, DEPTH, |offset, block| {
                let (header, records, checksum) =
                    ImageHeader::decode(block, self.superblock.store, offset)?;
                let number = numbers.next().copied();
                let expected = ImageHeader {
                    number: number.unwrap_or_default(),
                    partition,
                    incarnation: self.superblock.incarnation,
                    ..*first
                };
                if header != expected {
                    return Err(mixed());
                }
                sealed.push((header.number, checksum));
                recovery.restore(records)
            })?;
        }
        Ok(sealed)
    }

    /// The extents as the partitions have them. The end was set back to that of those in use.
    fn found(&self, sequence: u64, recoveries: &[Recovery]) -> FoundExtents {
        let end = self.superblock.extents_end.min(extents_of(&**self.device));
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
}

fn mixed() -> Error {
    Error::corruption("the blocks of an image do not belong together")
}
