//! Reads all extents in use: their headers first, so that it is known which partition each belongs to, then the extents as
//! a whole, at depth, by several threads that each see to partitions of their own, one partition after the other: what a
//! partition needs until it is complete is needed for as many as there are threads.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, Result};
use kreon_device::{AlignedBuf, Device, Read, TransferQueue, Transferred};

use super::threads::in_threads;
use super::volume::extents_of;
use crate::format::{
    EXTENT_BYTES, EXTENT_HEADER_BYTES, ExtentHeader, ExtentNo, FoundExtent, ItemSeal,
};
use crate::partition::Recovery;
use crate::space::FoundExtents;

/// Extents that a thread has in flight or in its hands: 8 MiB of memory.
const DEPTH: usize = 8;

/// Headers read at a time.
const HEADERS: usize = 256;

/// A transfer ends the wait before that.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the extents of one partition are read into.
pub trait Sink: Send {
    /// Takes in one extent: its header, and all its bytes. They come in any order.
    fn take_in(&mut self, header: &ExtentHeader, bytes: &[u8]) -> Result<()>;

    /// All were taken in.
    fn end(&mut self) -> Result<()>;
}

impl Sink for Recovery {
    fn take_in(&mut self, header: &ExtentHeader, bytes: &[u8]) -> Result<()> {
        Self::take_in(self, header, bytes)
    }

    fn end(&mut self) -> Result<()> {
        Self::end(self)
    }
}

/// What one thread reads.
struct Share<'a, S> {
    sinks: Vec<&'a mut S>,
    /// Each with the place of its sink; those of one sink together, in the order of the device.
    extents: Vec<(usize, ExtentHeader)>,
}

/// Reads the extents before `end`, each into the one of `sinks` that stands for its partition, by up to `threads` threads
/// with 8 MiB of memory each.
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
    shares.resize_with(threads, || Share {
        sinks: Vec::new(),
        extents: Vec::new(),
    });
    for (partition, sink) in sinks.iter_mut().enumerate() {
        if let Some(share) = shares.get_mut(partition % threads) {
            share.sinks.push(sink);
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
            share.extents.push((partition / threads, header));
        }
    }
    in_threads(shares, |share| share.read(device))?;
    Ok(found)
}

impl<S: Sink> Share<'_, S> {
    /// Reads all extents. While one is taken in, the next ones are in flight.
    fn read(mut self, device: &Arc<dyn Device>) -> Result<()> {
        // Stable: they stay in the order of the device.
        self.extents.sort_by_key(|it| it.0);
        let mut missing = vec![0_usize; self.sinks.len()];
        for (sink, _) in &self.extents {
            if let Some(count) = missing.get_mut(*sink) {
                *count += 1;
            }
        }
        let mut queue = Arc::clone(device).transfer_queue(DEPTH);
        let mut left = 0..self.extents.len();
        let mut spare = Vec::new();
        let mut ended: Vec<Transferred> = Vec::new();
        loop {
            self.push(&mut *queue, &mut left, &mut spare, ended.len());
            let Some(one) = ended.pop() else {
                if queue.in_flight() == 0 {
                    return match missing.iter().sum::<usize>() {
                        0 => Ok(()),
                        // What was found of their partitions was not taken in: nothing may be opened.
                        left => Err(Error::corruption(format!("{left} extents were not read"))),
                    };
                }
                queue.wait(PATIENCE);
                queue.reap(&mut ended);
                continue;
            };
            queue.submit();
            one.outcome?;
            let extent = usize::try_from(one.tag).ok();
            let extent = extent.and_then(|at| self.extents.get(at));
            if let (Some((sink, header)), Some(bytes)) = (extent, one.buffer)
                && let (Some(missing), Some(sink)) =
                    (missing.get_mut(*sink), self.sinks.get_mut(*sink))
            {
                sink.take_in(header, &bytes)?;
                spare.push(bytes);
                *missing -= 1;
                if *missing == 0 {
                    sink.end()?;
                }
            }
        }
    }

    /// Has as many of the extents that are left in flight as there is room for beside those that have ended.
    fn push(
        &self,
        queue: &mut dyn TransferQueue,
        left: &mut Range<usize>,
        spare: &mut Vec<AlignedBuf>,
        ended: usize,
    ) {
        for _ in ended..queue.room() {
            let Some(at) = left.next() else {
                return;
            };
            let Some((_, header)) = self.extents.get(at) else {
                return;
            };
            let buffer = spare.pop();
            let buffer = buffer.unwrap_or_else(|| AlignedBuf::new(EXTENT_BYTES));
            queue.read(at as u64, header.extent.offset(), buffer, EXTENT_BYTES);
        }
    }
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
