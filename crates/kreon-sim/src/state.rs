//! What a simulated device holds and remembers; all under one lock.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use kreon_base::{Error, ErrorKind, PAGE_BYTES, Result};
use kreon_device::{DeviceStats, SIZE_CLASSES, TransferStats};

use crate::backed::Backed;
use crate::fault::{Call, Effect, Faults};
use crate::history::{Content, Event, History};
use crate::image::Image;
use crate::{PAST_FLUSHES, SECTOR_BYTES};

pub(crate) struct State {
    /// What a reader sees.
    pub(crate) image: Image,
    pub(crate) history: History,
    pub(crate) faults: Faults,
    pub(crate) space_bytes_max: u64,
    /// What it held at the last flushes, newest first.
    past: VecDeque<Image>,
    /// Pages with real space behind them.
    backed: Backed,
    record: bool,
    /// Numbers of the next write, flush and queue.
    next_write: u64,
    next_flush: u64,
    next_queue: u64,
    calls: HashMap<Call, u64>,
    stats: DeviceStats,
    depth_sum: u64,
}

/// Number of a write or flush that is under way; `None` for one that was lost.
pub(crate) type Begun = Option<u64>;

impl State {
    pub(crate) fn new(image: Image, record: bool, space_bytes_max: u64) -> Self {
        Self {
            history: History {
                start: image.clone(),
                events: Vec::new(),
            },
            backed: Backed::of(&image),
            image,
            past: VecDeque::new(),
            faults: Faults::default(),
            space_bytes_max,
            record,
            next_write: 0,
            next_flush: 0,
            next_queue: 0,
            calls: HashMap::new(),
            stats: DeviceStats::default(),
            depth_sum: 0,
        }
    }

    /// Reads into `buffers`, which have `len_bytes` together.
    pub(crate) fn read(
        &mut self,
        offset: u64,
        len_bytes: u64,
        buffers: &mut [&mut [u8]],
    ) -> Result<()> {
        add(&mut self.stats.reads, len_bytes);
        let effect = self.meet(Call::Read, &(offset..offset + len_bytes));
        match effect {
            None | Some(Effect::FlippedBit { .. } | Effect::Stale { .. } | Effect::Slow { .. }) => {
            }
            Some(Effect::Lost | Effect::Misdirected { .. }) => return Ok(()),
            Some(Effect::Io | Effect::Partial { .. } | Effect::OutOfSpace) => {
                return Err(injected(
                    format!("read {len_bytes} bytes at {offset}"),
                    effect,
                ));
            }
        }
        let image = match effect {
            Some(Effect::Stale { flushes }) => self.past(flushes),
            _ => &self.image,
        };
        let mut at = offset;
        for buffer in buffers.iter_mut() {
            image.read(at, buffer);
            at += buffer.len() as u64;
        }
        if let Some(Effect::FlippedBit { bit }) = effect {
            flip(
                buffers.iter_mut().flat_map(|b| b.iter_mut()),
                bit,
                len_bytes,
            );
        }
        Ok(())
    }

    /// Begins a write; when it has ended is for [`end_write`](Self::end_write) to say.
    pub(crate) fn begin_write(&mut self, offset: u64, mut bytes: Vec<u8>) -> Result<Begun> {
        let len_bytes = bytes.len() as u64;
        add(&mut self.stats.writes, len_bytes);
        let action = || format!("write {len_bytes} bytes at {offset}");
        let effect = self.meet(Call::Write, &(offset..offset + len_bytes));
        match effect {
            None | Some(Effect::Slow { .. }) => {}
            Some(Effect::FlippedBit { bit }) => flip(bytes.iter_mut(), bit, len_bytes),
            Some(Effect::Lost | Effect::Stale { .. }) => return Ok(None),
            Some(Effect::Misdirected { offset }) => return self.put(offset, bytes).map(Some),
            Some(Effect::Partial { sectors }) => {
                bytes.truncate(
                    usize::try_from(sectors)
                        .unwrap_or(usize::MAX)
                        .saturating_mul(SECTOR_BYTES),
                );
                // Begun and never ended.
                self.put(offset, bytes)?;
                return Err(injected(action(), effect));
            }
            Some(Effect::Io | Effect::OutOfSpace) => return Err(injected(action(), effect)),
        }
        self.put(offset, bytes).map(Some)
    }

    fn put(&mut self, offset: u64, bytes: Vec<u8>) -> Result<u64> {
        self.back(offset..offset + bytes.len() as u64)?;
        self.image.write(offset, &bytes);
        match self.record {
            true => Ok(self.record_write(offset, Content::Bytes(bytes.into()))),
            false => Ok(self.next_write()),
        }
    }

    fn record_write(&mut self, offset: u64, content: Content) -> u64 {
        let write = self.next_write();
        self.log(Event::WriteBegan {
            write,
            offset,
            content,
        });
        write
    }

    /// A write is reported as done.
    pub(crate) fn end_write(&mut self, write: u64) {
        self.log(Event::WriteEnded { write });
    }

    pub(crate) fn grow(&mut self, len_bytes: u64, len_bytes_max: u64) -> Result<()> {
        let action = format!("grow to {len_bytes} bytes");
        if len_bytes > len_bytes_max {
            let text = format!("{action}: the limit is {len_bytes_max}");
            return Err(Error::new(ErrorKind::OutOfSpace, text));
        }
        if self.is_due(Call::Grow, &(0..0), action)? {
            self.image.set_len(len_bytes);
            let write = self.next_write();
            self.log(Event::Grown { write, len_bytes });
        }
        Ok(())
    }

    pub(crate) fn allocate(&mut self, range: Range<u64>) -> Result<()> {
        self.stats.allocations += 1;
        let action = format!("allocate {range:?}");
        if self.is_due(Call::Allocate, &range, action)? {
            self.back(range)?;
        }
        Ok(())
    }

    pub(crate) fn discard(&mut self, range: Range<u64>) -> Result<()> {
        self.stats.discards += 1;
        let action = format!("discard {range:?}");
        if !range.is_empty() && self.is_due(Call::Discard, &range, action)? {
            let len_bytes = range.end - range.start;
            self.image.zero(range.start, len_bytes);
            let page_bytes = PAGE_BYTES as u64;
            let pages = range.start.div_ceil(page_bytes)..range.end / page_bytes;
            self.backed.remove(pages);
            let write = self.record_write(range.start, Content::Zeroes(len_bytes));
            self.end_write(write);
        }
        Ok(())
    }

    /// Begins a flush, which speaks for the writes that have ended; `None`: it will flush nothing.
    pub(crate) fn begin_flush(&mut self) -> Result<Begun> {
        self.stats.flushes += 1;
        let flush = self.next_flush;
        self.next_flush += 1;
        match self.is_due(Call::Flush, &(0..0), "flush".to_owned()) {
            Ok(true) => {
                self.log(Event::FlushBegan { flush });
                Ok(Some(flush))
            }
            Ok(false) => Ok(None),
            Err(error) => {
                self.log(Event::FlushBegan { flush });
                self.log(Event::FlushFailed { flush });
                Err(error)
            }
        }
    }

    /// A flush is reported as done.
    pub(crate) fn end_flush(&mut self, flush: u64) {
        self.log(Event::FlushEnded { flush });
        if self.record {
            self.past.push_front(self.image.clone());
            self.past.truncate(PAST_FLUSHES);
        }
    }

    /// What the device held so many flushes ago.
    pub(crate) fn past(&self, flushes: usize) -> &Image {
        let past = self.past.get(flushes.saturating_sub(1));
        past.unwrap_or(&self.history.start)
    }

    /// Counts `count` transfers that are in flight together, and with `before` others.
    pub(crate) fn saw_depth(&mut self, before: usize, count: usize) {
        let (before, count) = (before as u64, count as u64);
        let depth = u32::try_from(before + count).unwrap_or(u32::MAX);
        self.stats.depth_max = self.stats.depth_max.max(depth);
        self.depth_sum += count * before + count * (count + 1) / 2;
    }

    pub(crate) fn stats(&self) -> DeviceStats {
        let transfers = self.stats.reads.count + self.stats.writes.count;
        DeviceStats {
            depth_average: self.depth_sum as f64 / transfers.max(1) as f64,
            ..self.stats
        }
    }

    pub(crate) fn calls_of(&self, call: Call) -> u64 {
        self.calls.get(&call).copied().unwrap_or(0)
    }

    pub(crate) fn space_bytes(&self) -> u64 {
        self.backed.pages * PAGE_BYTES as u64
    }

    /// Puts real space behind a range: all of it or none.
    fn back(&mut self, range: Range<u64>) -> Result<()> {
        let page_bytes = PAGE_BYTES as u64;
        let pages = range.start / page_bytes..range.end.div_ceil(page_bytes);
        let new_pages = self.backed.missing(pages.clone());
        let free_bytes = self.space_bytes_max.saturating_sub(self.space_bytes());
        if new_pages != 0 && new_pages * page_bytes > free_bytes {
            let text = format!("no space behind {range:?}");
            return Err(Error::new(ErrorKind::OutOfSpace, text));
        }
        self.backed.insert(pages);
        Ok(())
    }

    /// Counts a call that moves no bytes: an error, or whether it is to be carried out.
    fn is_due(&mut self, call: Call, range: &Range<u64>, action: String) -> Result<bool> {
        match self.meet(call, range) {
            None | Some(Effect::FlippedBit { .. } | Effect::Slow { .. }) => Ok(true),
            Some(Effect::Lost | Effect::Misdirected { .. } | Effect::Stale { .. }) => Ok(false),
            effect => Err(injected(action, effect)),
        }
    }

    fn meet(&mut self, call: Call, range: &Range<u64>) -> Option<Effect> {
        *self.calls.entry(call).or_default() += 1;
        self.faults.meet(call, range)
    }

    fn log(&mut self, event: Event) {
        if self.record {
            self.history.events.push(event);
        }
    }

    pub(crate) fn next_queue(&mut self) -> u64 {
        self.next_queue += 1;
        self.next_queue - 1
    }

    fn next_write(&mut self) -> u64 {
        self.next_write += 1;
        self.next_write - 1
    }
}

fn add(stats: &mut TransferStats, len_bytes: u64) {
    stats.count += 1;
    stats.bytes += len_bytes;
    let class = (len_bytes.max(1).ilog2() as usize).min(SIZE_CLASSES - 1);
    stats.sizes[class] += 1;
}

/// The error that the operating system would report.
fn injected(action: String, effect: Option<Effect>) -> Error {
    const EIO: i32 = 5;
    const ENOSPC: i32 = 28;
    let code = match effect {
        Some(Effect::OutOfSpace) => ENOSPC,
        _ => EIO,
    };
    Error::io(action, std::io::Error::from_raw_os_error(code))
}

fn flip<'a>(mut bytes: impl Iterator<Item = &'a mut u8>, bit: u64, len_bytes: u64) {
    let bit = bit % (len_bytes * 8).max(1);
    if let Some(byte) = bytes.nth((bit / 8) as usize) {
        *byte ^= 1 << (bit % 8);
    }
}
