//! The end of loads that nobody waits for in a call.

use std::time::Duration;

use kreon_base::{PageNo, Result, wake};
use kreon_device::Read;

use crate::background::{BackgroundReads, Cargo, Wanted};
use crate::load::{End, Load};
use crate::mapping::Mapping;
use crate::ticket::Stub;
use crate::well::Landed;

/// How long [`Mapping::quiesce`] sleeps at a time.
const QUIESCE_PATIENCE: Duration = Duration::from_millis(10);

/// A load that failed keeps its page marked until all that came with it is published.
type Failed<'a> = Vec<Load<'a>>;

impl Mapping {
    /// Publishes what has come in the background and wakes who waits for it; false if nothing has come.
    pub(crate) fn land(&self, reads: &BackgroundReads) -> bool {
        let landed = reads.flights.land();
        if landed.is_empty() {
            return false;
        }
        let (mut wakers, mut failed, mut pages) = (Vec::new(), Failed::new(), Vec::new());
        for flight in landed {
            let (stub, outcome) = self.end_flight(flight, &mut failed, &mut pages);
            wakers.extend(stub.end(outcome));
        }
        // Not before all is published: whoever is woken may look at any of it.
        drop(failed);
        for page in pages {
            self.waiters.take(page, &mut wakers);
        }
        reads.take_waiting_for_room(&mut wakers);
        wakers.into_iter().for_each(wake);
        true
    }

    fn end_flight<'a>(
        &'a self,
        flight: Landed<Cargo>,
        failed: &mut Failed<'a>,
        pages: &mut Vec<PageNo>,
    ) -> (Stub, Result<()>) {
        let Cargo { what, stub } = flight.cargo;
        let (first, priority, check, needed) = match what {
            Wanted::Pages {
                first,
                priority,
                check,
                needed,
            } => (first, priority, check, needed),
            Wanted::Record {
                offset_bytes,
                len_bytes,
                within,
                generation,
            } => {
                if flight.is_whole {
                    let place = (offset_bytes, generation);
                    self.keep_landed(flight.frames, place, within, len_bytes);
                } else {
                    // The task tries again, and in the end waits for the device, which tells what is wrong.
                    self.put_all(flight.frames);
                }
                return (stub, Ok(()));
            }
        };
        let mut loads: Vec<_> = (first.0..)
            .zip(flight.frames)
            .map(|(page, frame)| Load::resume(self, PageNo(page), priority, frame))
            .collect();
        let read = match flight.is_whole {
            true => vec![Ok(()); loads.len()],
            false => self.read_again(&mut loads),
        };
        let arrived = read.iter().filter(|outcome| outcome.is_ok()).count();
        self.counters.pages_read.add(arrived as u64);
        let mut outcome = Ok(());
        for (load, read) in loads.into_iter().zip(read) {
            let checked = match (read, &check, load.bytes()) {
                (Err(error), ..) => Err(error),
                (Ok(()), Some(check), Some(bytes)) => check(bytes),
                (Ok(()), ..) => Ok(()),
            };
            match checked {
                Ok(()) => {
                    pages.push(load.page());
                    if let End::Cancelled(load) = load.end() {
                        // It looks absent; who wants it loads it anew.
                        drop(load);
                    }
                }
                Err(error) => {
                    // A page that was discarded meanwhile may have come as anything.
                    if load.is_wanted() && needed.contains(&load.page().0) {
                        outcome = outcome.and(Err(error));
                    }
                    failed.push(load);
                }
            }
        }
        (stub, outcome)
    }

    /// Reads consecutive pages the ordinary way, after a read that failed or came to an early end: this
    /// tells what is wrong with which page, or goes on where that can be done. It waits for the device, which
    /// happens so seldom that it does not matter in whose poll.
    #[cold]
    fn read_again(&self, loads: &mut [Load<'_>]) -> Vec<Result<()>> {
        let first = loads.first().map(Load::page).unwrap_or_default();
        let buffers = loads.iter_mut().filter_map(Load::bytes_mut);
        let buffers = buffers.map(|bytes| bytes.as_mut_slice()).collect();
        let mut reads = [Read::vectored(first.offset_bytes(), buffers)];
        if self.device.read(&mut reads).is_ok() {
            return vec![Ok(()); loads.len()];
        }
        let read_alone = |load: &mut Load<'_>| {
            let offset_bytes = load.page().offset_bytes();
            let bytes = load.bytes_mut();
            bytes.map_or(Ok(()), |bytes| self.device.read_at(offset_bytes, bytes))
        };
        loads.iter_mut().map(read_alone).collect()
    }

    /// Waits for all that is in flight in the background and wakes who waits for it.
    pub fn quiesce(&self) {
        let Some(Some(reads)) = self.background.get() else {
            return;
        };
        let queue = reads.flights.queue();
        while queue.in_flight() > 0 {
            queue.wait(1, QUIESCE_PATIENCE);
            self.land(reads);
        }
    }
}
