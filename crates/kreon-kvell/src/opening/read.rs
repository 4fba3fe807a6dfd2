//! Reads all extents in use: their headers first, so that it is known which partition each belongs to, then the extents as
//! a whole, at depth, by several threads that each see to partitions of their own, one partition after the other: what a
//! partition needs until it is complete is needed for few of them.

use std::sync::Arc;

use kreon_base::{Error, Result};
use kreon_device::{AlignedBuf, Device, Read};

use super::share::{Share, Sink};
use super::threads::in_threads;
use super::volume::extents_of;
use crate::format::{EXTENT_HEADER_BYTES, ExtentHeader, ExtentNo, FoundExtent, ItemSeal};
use crate::space::FoundExtents;

/// Headers read at a time.
const HEADERS: usize = 256;

/// Reads the extents before `end`, each into the one of `sinks` that stands for its partition, by up to `threads` threads
/// with 8 MiB of memory each. If there are several, each has another beside it, for the ends of partitions.
pub fn read_extents<S: Sink>(
    device: &Arc<dyn Device>,
    seal: ItemSeal,
    end: u32,
    threads: usize,
    sinks: &mut [S],
) -> Result<FoundExtents> {
    let (found, headers) = read_headers(&**device, seal, end)?;
    let threads = threads.clamp(1, sinks.len().max(1));
    let partitions = sinks.len();
    let mut shares: Vec<Share<'_, S>> = Vec::new();
    shares.resize_with(threads, Share::default);
    for (partition, sink) in sinks.iter_mut().enumerate() {
        if let Some(share) = shares.get_mut(partition % threads) {
            share.add_sink(sink);
        }
    }
    for header in headers {
        let partition = usize::from(header.partition);
        if partition >= partitions {
            let extent = header.extent;
            return Err(Error::corruption(format!(
                "{extent} belongs to no partition"
            )));
        }
        if let Some(share) = shares.get_mut(partition % threads) {
            share.add_extent(partition / threads, header);
        }
    }
    // Alone, a thread does all in turn.
    let in_turn = threads == 1;
    in_threads(shares, |share| share.read(device, in_turn))?;
    Ok(found)
}

/// Reads the headers of the extents before `end`. Those in use, in the order of the device.
fn read_headers(
    device: &dyn Device,
    seal: ItemSeal,
    end: u32,
) -> Result<(FoundExtents, Vec<ExtentHeader>)> {
    let mut found = FoundExtents {
        end: 1,
        ..FoundExtents::default()
    };
    let mut headers = Vec::new();
    let block_bytes = (device.block_bytes() as usize).max(EXTENT_HEADER_BYTES);
    let all: Vec<ExtentNo> = (1..extents_of(device).min(end)).map(ExtentNo).collect();
    let mut blocks = AlignedBuf::new(all.len().clamp(1, HEADERS) * block_bytes);
    for extents in all.chunks(HEADERS) {
        let mut reads: Vec<Read<'_>> = extents
            .iter()
            .zip(blocks.chunks_exact_mut(block_bytes))
            .map(|(extent, block)| Read::new(extent.offset(), block))
            .collect();
        device.read(&mut reads)?;
        for (&extent, block) in extents.iter().zip(blocks.chunks_exact(block_bytes)) {
            let Some(sector) = block.first_chunk::<EXTENT_HEADER_BYTES>() else {
                continue;
            };
            match ExtentHeader::decode(sector, seal.store, extent) {
                FoundExtent::Bad(error) => return Err(error),
                FoundExtent::Blank => {
                    found.free.insert(extent);
                }
                FoundExtent::Header(header) => {
                    found.end = extent.0 + 1;
                    found.sequence = found.sequence.max(header.sequence);
                    headers.push(header);
                }
            }
        }
    }
    let in_use = found.end;
    found.free.retain(|extent| extent.0 < in_use);
    Ok((found, headers))
}
