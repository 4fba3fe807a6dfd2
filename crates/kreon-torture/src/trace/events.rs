//! From a log of writes to a history.

use std::collections::BTreeMap;
use std::ops::Range;

use kreon_sim::{Content, Event, History, Image};

use super::log::Entry;
use super::mark::{MARK_BYTES, Mark};

/// A thread had so much acknowledged as durable before event number `event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The event that came next.
    pub event: usize,
    /// The thread.
    pub thread: usize,
    /// Its units.
    pub units: usize,
    /// Its changes of regions.
    pub region_changes: usize,
}

/// A history and what was known in its course.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// What was done to the volume.
    pub history: History,
    /// In order.
    pub known: Vec<Known>,
    /// Writes to the volume.
    pub writes: u64,
    /// Bytes of these.
    pub written_bytes: u64,
    /// Discards.
    pub discards: u64,
    /// Flushes of the store that the log shows.
    pub flushes: u64,
    /// Flushes of the store that the log does not show: nothing was flushed.
    pub flushes_missing: u64,
}

/// What a flush does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushes {
    /// What it must.
    Work,
    /// Nothing, as on a device that lies: what the store knows to be durable is not.
    AreLost,
}

/// Makes a history of the `entries` of `log`. The volume ends at `volume_bytes`; behind it are marks.
///
/// A flush covers what stands before the mark of its begin, and it ends at the mark of its end, if
/// the log shows that there was one in between.
///
/// # Errors
/// If the log has entries that no traced store makes.
pub fn trace(
    log: &[u8],
    entries: &[Entry],
    volume_bytes: u64,
    flushes: Flushes,
) -> Result<Trace, String> {
    let mut maker = Maker {
        trace: Trace::default(),
        volume_bytes,
        flushes,
        next_write: 0,
        open: BTreeMap::new(),
    };
    maker.trace.history.start = Image::new(volume_bytes);
    for (number, entry) in entries.iter().enumerate() {
        maker
            .take(log, entry)
            .map_err(|what| format!("entry {number} of the log, {entry:?}: {what}"))?;
    }
    Ok(maker.trace)
}

struct Maker {
    trace: Trace,
    volume_bytes: u64,
    flushes: Flushes,
    next_write: u64,
    /// Flushes of the store that have begun, and whether the log showed one since.
    open: BTreeMap<u64, bool>,
}

impl Maker {
    fn take(&mut self, log: &[u8], entry: &Entry) -> Result<(), String> {
        match entry {
            Entry::Write { offset, bytes, .. } => self.take_write(log, *offset, bytes),
            Entry::Discard { offset, len_bytes } => {
                self.trace.discards += 1;
                self.check_end(*offset, *len_bytes)?;
                self.change(*offset, Content::Zeroes(*len_bytes));
                Ok(())
            }
            Entry::Flush => {
                self.open.values_mut().for_each(|is_shown| *is_shown = true);
                Ok(())
            }
            Entry::Mark(_) => Err("a mark that is not ours".to_owned()),
        }
    }

    fn take_write(&mut self, log: &[u8], offset: u64, bytes: &Range<usize>) -> Result<(), String> {
        let bytes = log
            .get(bytes.clone())
            .ok_or("its bytes are not in the log")?;
        if offset >= self.volume_bytes {
            let mark = (bytes.len() == MARK_BYTES).then(|| Mark::decode(bytes));
            let mark = mark.flatten().ok_or("no mark, but behind the volume")?;
            return self.take_mark(mark);
        }
        self.check_end(offset, bytes.len() as u64)?;
        self.trace.writes += 1;
        self.trace.written_bytes += bytes.len() as u64;
        self.change(offset, Content::Bytes(bytes.into()));
        Ok(())
    }

    fn check_end(&self, offset: u64, len_bytes: u64) -> Result<(), String> {
        match offset + len_bytes <= self.volume_bytes {
            true => Ok(()),
            false => Err("it goes over the end of the volume".to_owned()),
        }
    }

    fn change(&mut self, offset: u64, content: Content) {
        let write = self.next_write;
        self.next_write += 1;
        let began = Event::WriteBegan {
            write,
            offset,
            content,
        };
        let events = &mut self.trace.history.events;
        events.push(began);
        events.push(Event::WriteEnded { write });
    }

    fn take_mark(&mut self, mark: Mark) -> Result<(), String> {
        let events = &mut self.trace.history.events;
        match mark {
            Mark::FlushBegan(flush) => {
                self.open.insert(flush, false);
                events.push(Event::FlushBegan { flush });
            }
            Mark::FlushEnded(flush) => {
                let is_shown = self.open.remove(&flush).ok_or("it never began")?;
                self.trace.flushes += u64::from(is_shown);
                self.trace.flushes_missing += u64::from(!is_shown);
                if is_shown && self.flushes == Flushes::Work {
                    events.push(Event::FlushEnded { flush });
                }
            }
            Mark::Durable {
                thread,
                units,
                region_changes,
            } => {
                let event = events.len();
                let of = |number: u64| usize::try_from(number).map_err(|error| error.to_string());
                self.trace.known.push(Known {
                    event,
                    thread: of(thread)?,
                    units: of(units)?,
                    region_changes: of(region_changes)?,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kreon_sim::Keep;

    const VOLUME_BYTES: u64 = 64 << 10;

    /// A log without its format: what was written, and where.
    #[derive(Default)]
    struct Log {
        bytes: Vec<u8>,
        entries: Vec<Entry>,
    }

    impl Log {
        fn write(&mut self, offset: u64, bytes: &[u8]) {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            self.entries.push(Entry::Write {
                offset,
                bytes: start..self.bytes.len(),
                is_forced: false,
            });
        }

        fn mark(&mut self, mark: Mark) {
            let mut block = [0; MARK_BYTES];
            mark.encode(&mut block);
            self.write(VOLUME_BYTES, &block);
        }

        fn trace(&self, flushes: Flushes) -> Result<Trace, String> {
            trace(&self.bytes, &self.entries, VOLUME_BYTES, flushes)
        }

        fn survives(&self, flushes: Flushes) -> [bool; 2] {
            let trace = self.trace(flushes).unwrap();
            let image = trace.history.crash().image(&mut Keep::Nothing);
            [0, 4096].map(|offset| image.bytes(offset, 1) == [7])
        }
    }

    /// One write before the flush was called, one that was completed while it was under way.
    fn overlapping(is_shown: bool) -> Log {
        let mut log = Log::default();
        log.write(0, &[7; 512]);
        log.mark(Mark::FlushBegan(0));
        log.write(4096, &[7; 512]);
        if is_shown {
            log.entries.push(Entry::Flush);
        }
        log.mark(Mark::FlushEnded(0));
        log.mark(Mark::Durable {
            thread: 1,
            units: 5,
            region_changes: 2,
        });
        log
    }

    #[test]
    fn a_flush_covers_what_was_completed_before_it_was_called() {
        let log = overlapping(true);
        assert_eq!(log.survives(Flushes::Work), [true, false]);
        let trace = log.trace(Flushes::Work).unwrap();
        assert_eq!(
            (trace.writes, trace.flushes, trace.flushes_missing),
            (2, 1, 0)
        );
        let known = Known {
            event: trace.history.events.len(),
            thread: 1,
            units: 5,
            region_changes: 2,
        };
        assert_eq!(trace.known, [known]);
    }

    #[test]
    fn a_flush_that_the_log_does_not_show_covers_nothing() {
        let log = overlapping(false);
        assert_eq!(log.survives(Flushes::Work), [false, false]);
        assert_eq!(log.trace(Flushes::Work).unwrap().flushes_missing, 1);
        assert_eq!(overlapping(true).survives(Flushes::AreLost), [false, false]);
    }

    #[test]
    fn discards_are_writes_of_zeroes() {
        let mut log = overlapping(true);
        log.entries.push(Entry::Discard {
            offset: 0,
            len_bytes: 512,
        });
        assert_eq!(log.survives(Flushes::Work), [true, false]);
        let trace = log.trace(Flushes::Work).unwrap();
        let image = trace.history.crash().image(&mut Keep::All);
        assert_eq!((image.bytes(0, 1), trace.discards), (vec![0], 1));
    }

    #[test]
    fn what_no_traced_store_does_is_refused() {
        let mut behind = Log::default();
        behind.write(VOLUME_BYTES, &[0; MARK_BYTES]);
        let mut over = Log::default();
        over.write(VOLUME_BYTES - 512, &[0; 1024]);
        let mut unbegun = Log::default();
        unbegun.mark(Mark::FlushEnded(3));
        let mut foreign = Log::default();
        foreign.entries.push(Entry::Mark(vec![1]));
        for log in [behind, over, unbegun, foreign] {
            assert!(log.trace(Flushes::Work).is_err(), "{:?}", log.entries);
        }
    }
}
