//! What one thread reads: all extents of some partitions, one partition after the other.

use std::collections::VecDeque;
use std::mem;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle, scope};
use std::time::Duration;

use kreon_base::{Error, Result};
use kreon_device::{AlignedBuf, Device, TransferQueue, Transferred};

use crate::format::{EXTENT_BYTES, ExtentHeader};
use crate::partition::Recovery;

/// Extents that a thread has in flight or in its hands: 8 MiB of memory.
const DEPTH: usize = 8;

/// A transfer ends the wait before that.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the extents of one partition are read into.
pub trait Sink: Send {
    /// Takes in one extent: its header, and all its bytes. They come in any order.
    fn take_in(&mut self, header: &ExtentHeader, bytes: &[u8]) -> Result<()>;

    /// All were taken in. `false` if all have to be taken in once more.
    fn end(&mut self) -> Result<bool>;
}

impl Sink for Recovery {
    fn take_in(&mut self, header: &ExtentHeader, bytes: &[u8]) -> Result<()> {
        Self::take_in(self, header, bytes)
    }

    fn end(&mut self) -> Result<bool> {
        Self::end(self)
    }
}

/// Partitions that are under way while `threads` threads read so many: each thread has one that it reads, and, if it is not
/// alone, one that ends.
pub fn at_once(threads: usize, partitions: usize) -> usize {
    let readers = threads.clamp(1, partitions.max(1));
    (readers * if readers == 1 { 1 } else { 2 }).min(partitions)
}

/// What one thread reads.
pub struct Share<'a, S> {
    /// Those that end are elsewhere.
    sinks: Vec<Option<&'a mut S>>,
    /// Each with the place of its sink.
    extents: Vec<(usize, ExtentHeader)>,
    /// By place of the sink: how many extents it misses.
    missing: Vec<usize>,
    /// Places of extents that have to be read.
    left: VecDeque<usize>,
    spare: Vec<AlignedBuf>,
}

/// A sink that ends in a thread of its own: its place, itself, and whether it is complete.
type Ending<'scope, 'a, S> = ScopedJoinHandle<'scope, (usize, &'a mut S, Result<bool>)>;

impl<S> Default for Share<'_, S> {
    fn default() -> Self {
        Self {
            sinks: Vec::new(),
            extents: Vec::new(),
            missing: Vec::new(),
            left: VecDeque::new(),
            spare: Vec::new(),
        }
    }
}

impl<'a, S: Sink> Share<'a, S> {
    pub fn add_sink(&mut self, sink: &'a mut S) {
        self.sinks.push(Some(sink));
        self.missing.push(0);
    }

    /// Adds an extent of a sink that was added. They come in the order of the device.
    pub fn add_extent(&mut self, sink: usize, header: ExtentHeader) {
        self.extents.push((sink, header));
        if let Some(missing) = self.missing.get_mut(sink) {
            *missing += 1;
        }
    }

    /// Reads all extents. While one is taken in, the next ones are in flight; and, unless all is to be done `in_turn`, while
    /// one partition ends, the next one is read: else the device had nothing to do at these times.
    pub fn read(mut self, device: &Arc<dyn Device>, in_turn: bool) -> Result<()> {
        // Stable: those of one sink stay in the order of the device.
        self.extents.sort_by_key(|it| it.0);
        self.left = (0..self.extents.len()).collect();
        let mut queue = Arc::clone(device).transfer_queue(DEPTH);
        let mut ended: Vec<Transferred> = Vec::new();
        scope(|scope| {
            let mut ending: Option<Ending<'_, 'a, S>> = None;
            loop {
                self.push(&mut *queue, ended.len());
                let Some(one) = ended.pop() else {
                    if queue.in_flight() == 0 {
                        match ending.take() {
                            // Its extents may have to be read again.
                            Some(last) => self.ended(last)?,
                            None => return self.check_all_were_read(),
                        }
                    } else {
                        queue.wait(PATIENCE);
                        queue.reap(&mut ended);
                    }
                    continue;
                };
                queue.submit();
                let Some(complete) = self.take_in(one)? else {
                    continue;
                };
                if in_turn {
                    self.end_here(complete)?;
                    continue;
                }
                if let Some(before) = ending.take() {
                    self.ended(before)?;
                }
                ending = self.end_beside(scope, complete);
            }
        })
    }

    /// Takes in an extent that was read. The place of its sink, if that was the last one it missed.
    fn take_in(&mut self, one: Transferred) -> Result<Option<usize>> {
        one.outcome?;
        let extent = usize::try_from(one.tag).ok();
        let extent = extent.and_then(|at| self.extents.get(at));
        let (Some((place, header)), Some(bytes)) = (extent, one.buffer) else {
            return Ok(None);
        };
        let sink = self.sinks.get_mut(*place).and_then(Option::as_mut);
        let (Some(sink), Some(missing)) = (sink, self.missing.get_mut(*place)) else {
            return Ok(None);
        };
        sink.take_in(header, &bytes)?;
        self.spare.push(bytes);
        *missing -= 1;
        Ok((*missing == 0).then_some(*place))
    }

    fn end_here(&mut self, place: usize) -> Result<()> {
        let sink = self.sinks.get_mut(place).and_then(Option::as_mut);
        let is_complete = match sink {
            Some(sink) => sink.end()?,
            None => true,
        };
        if !is_complete {
            self.read_again(place);
        }
        Ok(())
    }

    fn end_beside<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        place: usize,
    ) -> Option<Ending<'scope, 'a, S>>
    where
        'a: 'scope,
    {
        let sink = self.sinks.get_mut(place).and_then(mem::take)?;
        Some(scope.spawn(move || {
            let outcome = sink.end();
            (place, sink, outcome)
        }))
    }

    /// Waits for the end of a sink.
    fn ended(&mut self, ending: Ending<'_, 'a, S>) -> Result<()> {
        let (place, sink, outcome) = ending.join().unwrap_or_else(|panic| resume_unwind(panic));
        if let Some(empty) = self.sinks.get_mut(place) {
            *empty = Some(sink);
        }
        if !outcome? {
            self.read_again(place);
        }
        Ok(())
    }

    /// Has all extents of a sink read once more, before those of others that are left.
    fn read_again(&mut self, place: usize) {
        let mut count = 0;
        for (at, _) in self
            .extents
            .iter()
            .enumerate()
            .filter(|it| it.1.0 == place)
            .rev()
        {
            self.left.push_front(at);
            count += 1;
        }
        if let Some(missing) = self.missing.get_mut(place) {
            *missing = count;
        }
    }

    fn check_all_were_read(&self) -> Result<()> {
        match self.missing.iter().sum::<usize>() {
            0 => Ok(()),
            // What was found of their partitions was not taken in: nothing may be opened.
            left => Err(Error::corruption(format!("{left} extents were not read"))),
        }
    }

    /// Has as many of the extents that are left in flight as there is room for beside those that have ended.
    fn push(&mut self, queue: &mut dyn TransferQueue, ended: usize) {
        for _ in ended..queue.room() {
            let Some(at) = self.left.pop_front() else {
                return;
            };
            let Some((_, header)) = self.extents.get(at) else {
                return;
            };
            let buffer = self.spare.pop();
            let buffer = buffer.unwrap_or_else(|| AlignedBuf::new(EXTENT_BYTES));
            queue.read(at as u64, header.extent.offset(), buffer, EXTENT_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kreon_format::StoreId;
    use kreon_sim::{SimDevice, SimOptions};

    use super::*;
    use crate::format::{ClassNo, ExtentNo};

    /// Counts what it takes in, and wants all of it so often.
    struct Counting {
        extents: BTreeMap<ExtentNo, usize>,
        ended: usize,
        wanted: usize,
        fails_in: usize,
    }

    impl Sink for Counting {
        fn take_in(&mut self, header: &ExtentHeader, bytes: &[u8]) -> Result<()> {
            assert_eq!(bytes[0], header.extent.0 as u8, "the bytes of this extent");
            *self.extents.entry(header.extent).or_default() += 1;
            Ok(())
        }

        fn end(&mut self) -> Result<bool> {
            self.ended += 1;
            let times = self.extents.values();
            assert!(
                times.copied().all(|it| it == self.ended),
                "all in each pass"
            );
            match self.ended == self.fails_in {
                true => Err(Error::corruption("as was wanted")),
                false => Ok(self.ended == self.wanted),
            }
        }
    }

    const SINKS: usize = 4;

    fn device() -> Arc<dyn Device> {
        let device = SimDevice::new(SimOptions::default());
        device.grow(40 << 20).expect("room");
        for number in 1..40_u64 {
            let mut page = AlignedBuf::new(4096);
            page.fill(number as u8);
            device.write_at(number << 20, &page).expect("a write");
        }
        Arc::new(device)
    }

    /// Reads with sinks that want one to four passes; one has a single extent. In which pass it fails, if in one.
    fn read(
        device: &Arc<dyn Device>,
        in_turn: bool,
        fails_in: usize,
    ) -> (Vec<Counting>, Result<()>) {
        let sink = |number: usize| Counting {
            extents: BTreeMap::new(),
            ended: 0,
            wanted: 4 - number,
            fails_in: if number == 1 { fails_in } else { 0 },
        };
        let mut sinks: Vec<Counting> = (0..SINKS).map(sink).collect();
        let mut share = Share::default();
        for sink in &mut sinks {
            share.add_sink(sink);
        }
        for number in 1..40_u32 {
            let of_three = number as usize % (SINKS - 1);
            let sink = if number == 20 { SINKS - 1 } else { of_three };
            let header = ExtentHeader {
                store: StoreId(1),
                extent: ExtentNo(number),
                partition: sink as u16,
                class: ClassNo(0),
                sequence: 1,
            };
            share.add_extent(sink, header);
        }
        let outcome = share.read(device, in_turn);
        (sinks, outcome)
    }

    #[test]
    fn each_sink_has_all_its_extents_as_often_as_it_wants() {
        let device = device();
        for in_turn in [true, false] {
            let (sinks, outcome) = read(&device, in_turn, 0);
            outcome.expect("sound reads");
            assert!(sinks.iter().all(|it| it.ended == it.wanted));
            assert_eq!(sinks.iter().map(|it| it.extents.len()).sum::<usize>(), 39);
        }
    }

    #[test]
    fn the_failure_of_a_pass_is_that_of_the_reads() {
        let device = device();
        for in_turn in [true, false] {
            for fails_in in 1..4 {
                let (_, outcome) = read(&device, in_turn, fails_in);
                assert!(outcome.is_err(), "pass {fails_in}");
            }
        }
    }
}
