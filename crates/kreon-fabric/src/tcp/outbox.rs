//! Bytes that wait to be written to a socket.

use std::collections::VecDeque;
use std::io::IoSlice;

use super::transfer::PARTS_MAX;

/// Small packets share buffers of this size, so that many go into one write.
const BUFFER_BYTES: usize = 64 << 10;

/// Bytes that wait to be written to a socket, in order.
#[derive(Default)]
pub(super) struct Outbox {
    buffers: VecDeque<Vec<u8>>,
    /// Of the first buffer, what was written.
    written: usize,
    /// An empty buffer, for the next.
    spare: Option<Vec<u8>>,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// Puts the bytes of a packet behind all others, without its first `skip` bytes.
    pub(super) fn push(&mut self, parts: &[IoSlice<'_>], mut skip: usize) {
        for part in parts {
            let from = skip.min(part.len());
            skip -= from;
            self.push_bytes(&part[from..]);
        }
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let has_room = |buffer: &Vec<u8>| buffer.capacity() - buffer.len() >= bytes.len();
        match self.buffers.back_mut().filter(|buffer| has_room(buffer)) {
            Some(buffer) => buffer.extend_from_slice(bytes),
            None => {
                let spare = self.spare.take().filter(|spare| has_room(spare));
                let capacity = bytes.len().max(BUFFER_BYTES);
                let mut buffer = spare.unwrap_or_else(|| Vec::with_capacity(capacity));
                buffer.extend_from_slice(bytes);
                self.buffers.push_back(buffer);
            }
        }
    }

    /// What one write takes.
    pub(super) fn parts(&self) -> Vec<IoSlice<'_>> {
        let parts = self.buffers.iter().enumerate().take(PARTS_MAX);
        let from = |number| if number == 0 { self.written } else { 0 };
        parts
            .map(|(number, buffer)| IoSlice::new(&buffer[from(number)..]))
            .collect()
    }

    /// Forgets the first `bytes`, which were written.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.written += bytes;
        while let Some(first) = self.buffers.front()
            && self.written >= first.len()
        {
            self.written -= first.len();
            if let Some(mut buffer) = self.buffers.pop_front()
                && buffer.capacity() == BUFFER_BYTES
            {
                buffer.clear();
                self.spare = Some(buffer);
            }
        }
    }

    /// Puts `earlier`, which was taken out before, in front again.
    pub(super) fn put_before(&mut self, mut earlier: Self) {
        if earlier.is_empty() {
            self.spare = self.spare.take().or(earlier.spare);
            return;
        }
        // Nothing of what came later was written.
        earlier.buffers.append(&mut self.buffers);
        self.buffers = earlier.buffers;
        self.written = earlier.written;
    }

    /// Takes all out. The empty buffer stays for what comes meanwhile: to free one and to make another for each write costs
    /// more than the write's own work.
    pub(super) fn take(&mut self) -> Self {
        Self {
            buffers: std::mem::take(&mut self.buffers),
            written: std::mem::take(&mut self.written),
            spare: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(outbox: &mut Outbox, steps: &[usize]) -> Vec<u8> {
        let mut written = Vec::new();
        for step in steps.iter().cycle() {
            let parts = outbox.parts();
            let all: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
            let bytes = (*step).min(all.len());
            written.extend_from_slice(&all[..bytes]);
            outbox.advance(bytes);
            if outbox.is_empty() {
                break;
            }
        }
        written
    }

    #[test]
    fn bytes_leave_in_the_order_in_which_they_came() {
        let mut outbox = Outbox::default();
        let mut expected = Vec::new();
        for length in [1, 70_000, 64, 65_536, 3, 200_000, 17] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let (front, back) = bytes.split_at(length / 3);
            outbox.push(&[IoSlice::new(front), IoSlice::new(back)], length / 2);
            expected.extend_from_slice(&bytes[length / 2..]);
        }
        assert_eq!(drain(&mut outbox, &[1, 4096, 77_777]), expected);
    }

    #[test]
    fn two_buffers_are_enough_for_bytes_that_come_during_writes() {
        let mut outbox = Outbox::default();
        let mut met = std::collections::BTreeSet::new();
        outbox.push(&[IoSlice::new(b"first")], 0);
        for _ in 0..10 {
            let mut taken = outbox.take();
            outbox.push(&[IoSlice::new(b"meanwhile")], 0);
            met.extend(taken.buffers.iter().map(|buffer| buffer.as_ptr() as usize));
            let bytes = taken.parts().iter().map(|part| part.len()).sum();
            taken.advance(bytes);
            outbox.put_before(taken);
        }
        assert!(met.len() <= 2, "{} buffers", met.len());
    }

    #[test]
    fn what_was_not_written_goes_before_what_came_later() {
        let mut outbox = Outbox::default();
        outbox.push(&[IoSlice::new(b"abcdef")], 0);
        let mut taken = outbox.take();
        outbox.push(&[IoSlice::new(b"ghi")], 0);
        taken.advance(2);
        outbox.put_before(taken);
        let mut nothing = outbox.take();
        nothing.advance(0);
        outbox.put_before(nothing);
        assert_eq!(drain(&mut outbox, &[100]), b"cdefghi");
    }
}
