//! Beginning to read a record for a task: past the table, if it is to be kept by itself.

use std::sync::Arc;
use std::task::Waker;

use kreon_base::{PAGE_BYTES, Priority, Result};

use crate::background::{Cargo, Wanted};
use crate::begin::{Begun, PagesWanted};
use crate::fetch::FinalBytes;
use crate::hot::{Generation, Hot};
use crate::mapping::Mapping;
use crate::ticket::Ticket;
use crate::well::FreeFrame;

impl Mapping {
    /// [`begin`](Self::begin) for bytes of the log: as long as frames are plenty their pages are loaded, with what is
    /// around them, else they are read and kept as a record.
    ///
    /// # Errors
    /// `InvalidArgument` if the volume cannot have them.
    pub fn begin_bytes(
        self: &Arc<Self>,
        bytes: &FinalBytes,
        priority: Priority,
        waker: &Waker,
    ) -> Result<Begun> {
        self.check_range(bytes.offset_bytes, bytes.len_bytes)?;
        if let Some(hot) = self.hot_for(bytes) {
            return Ok(self.begin_record(hot, bytes, priority, waker));
        }
        let (first, count) = self.widened(bytes);
        let wanted = PagesWanted {
            first,
            count,
            priority,
            check: None,
        };
        let (first, count) = bytes.pages();
        self.begin_pages(&wanted, first.0..first.0 + u64::from(count), waker)
    }

    fn begin_record(
        self: &Arc<Self>,
        hot: &Hot,
        bytes: &FinalBytes,
        priority: Priority,
        waker: &Waker,
    ) -> Begun {
        let Some(reads) = self.background() else {
            return Begun::Refused;
        };
        if reads.is_full() && reads.wait_for_room(waker) {
            return Begun::Pending(None);
        }
        let block_bytes = u64::from(self.device.block_bytes());
        let within = (bytes.offset_bytes % block_bytes) as usize;
        let span = (within + bytes.len_bytes).next_multiple_of(block_bytes as usize);
        let generation = hot.generation(bytes.offset_bytes);
        let wanted = span.div_ceil(PAGE_BYTES);
        let frames = self.take_frames(wanted);
        if frames.len() < wanted {
            self.put_all(frames);
            return Begun::Refused;
        }
        self.counters.misses.add(priority, 1);
        let ticket = Ticket::new(waker);
        let what = Wanted::Record {
            offset_bytes: bytes.offset_bytes,
            len_bytes: bytes.len_bytes,
            within,
            generation,
        };
        let stub = ticket.stub();
        let start = bytes.offset_bytes - within as u64;
        let cargo = Cargo { what, stub };
        let begun = reads
            .flights
            .begin(&self.pages.space, start, span, frames, cargo);
        let is_begun = begun.is_ok();
        if let Err((frames, cargo)) = begun {
            self.put_all(frames);
            drop(cargo.stub.end(Ok(())));
        }
        self.see_off(reads, is_begun, ticket, waker)
    }

    /// Keeps a record that has come: behind `within` bytes in `frames`, which are free again. Who waits for it looks for it
    /// among the records, and reads it anew if it is not there.
    pub(crate) fn keep_landed(
        &self,
        frames: Vec<FreeFrame>,
        (offset_bytes, generation): (u64, Generation),
        within: usize,
        len_bytes: usize,
    ) {
        self.counters.pages_read.add(frames.len() as u64);
        if let Some(hot) = &self.hot {
            let space = &self.pages.space;
            match &frames[..] {
                [only] => {
                    let bytes = &space.bytes(only)[within..within + len_bytes];
                    self.keep(hot, offset_bytes, generation, bytes);
                }
                several => {
                    let all = several.iter().flat_map(|frame| space.bytes(frame));
                    let bytes: Vec<u8> = all.skip(within).take(len_bytes).copied().collect();
                    self.keep(hot, offset_bytes, generation, &bytes);
                }
            }
        }
        self.put_all(frames);
    }

    pub(crate) fn put_all(&self, frames: Vec<FreeFrame>) {
        for frame in frames {
            self.pool.put(frame);
        }
    }
}
