//! Reads at depth.

use std::time::Duration;

use kreon_base::Result;
use kreon_device::{AlignedBuf, TransferQueue, Transferred};

use super::volume::Volume;

/// Longest sleep at a time. A queue wakes who waits for it, so it does not decide the rate.
const PATIENCE: Duration = Duration::from_secs(1);

/// A queue for reads alone. Those of the workers are theirs.
pub struct Reads {
    queue: Box<dyn TransferQueue>,
    depth: usize,
}

impl Reads {
    /// A queue on the device of `volume`.
    pub fn new(volume: &Volume<'_>) -> Self {
        let depth = volume.depth.max(1);
        Self {
            queue: std::sync::Arc::clone(&volume.device).transfer_queue(depth),
            depth,
        }
    }

    /// Reads all `places`, which are offsets and lengths in bytes, in any order. `each` gets the number of a place and what
    /// the device said; its first failure ends the work, when what is in flight has ended.
    pub fn run(
        &mut self,
        places: impl IntoIterator<Item = (u64, usize)>,
        mut each: impl FnMut(usize, Result<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        let mut places = places.into_iter().enumerate();
        let mut outcome = Ok(());
        let mut ended: Vec<Transferred> = Vec::new();
        let mut spare: Vec<AlignedBuf> = Vec::new();
        loop {
            while outcome.is_ok()
                && self.queue.in_flight() < self.depth
                && let Some((number, (offset, len_bytes))) = places.next()
            {
                let fits = spare.pop().filter(|buffer| buffer.len() == len_bytes);
                let buffer = fits.unwrap_or_else(|| AlignedBuf::new(len_bytes));
                self.queue.read(number as u64, offset, buffer, len_bytes);
            }
            if self.queue.in_flight() == 0 {
                return outcome;
            }
            self.queue.wait(PATIENCE);
            self.queue.reap(&mut ended);
            for Transferred {
                tag,
                outcome: said,
                buffer,
            } in ended.drain(..)
            {
                let bytes = said.map(|()| buffer.as_deref().unwrap_or_default());
                if outcome.is_ok() {
                    outcome = each(tag as usize, bytes);
                }
                spare.extend(buffer);
            }
        }
    }

    /// Reads one place.
    pub fn one(&mut self, offset: u64, len_bytes: usize) -> Result<Vec<u8>> {
        let mut read = Vec::new();
        self.run([(offset, len_bytes)], |_, bytes| {
            read.extend_from_slice(bytes?);
            Ok(())
        })?;
        Ok(read)
    }
}
