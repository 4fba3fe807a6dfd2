//! What was read of a socket, cut into packets.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;

use kreon_wire::limits::HEADER_BYTES;
use kreon_wire::{Header, Role, Violation};

use super::transfer::{Moved, read};
use crate::bytes::Bytes;

/// Whole packets that fill less than this part of a buffer are copied out, so that few bytes do not keep many.
const COPIED_PART: usize = 4;

/// Buffers that are kept for reuse until their packets are dropped.
const LENT_MAX: usize = 4;

/// What was read of a socket, cut into packets.
///
/// Most of what is read is not copied again: a buffer with whole packets is handed out as it is, and only the beginning of
/// a packet at its end goes into the next one. A long packet gets memory as its bytes arrive, not as its header says.
pub(super) struct Inbox {
    role: Role,
    /// Begins with a packet.
    buffer: Vec<u8>,
    /// Buffers that were handed out.
    lent: VecDeque<Arc<Vec<u8>>>,
    /// Bytes that the packet at the start of `buffer` has, as far as is known.
    needed_bytes: usize,
}

impl Inbox {
    pub(super) fn new(role: Role) -> Self {
        Self {
            role,
            buffer: Vec::new(),
            lent: VecDeque::new(),
            needed_bytes: HEADER_BYTES,
        }
    }

    /// What comes from now on belongs to a link of this role.
    pub(super) fn set_role(&mut self, role: Role) {
        self.role = role;
    }

    /// Whether it ends in the middle of a packet.
    pub(super) fn is_within_packet(&self) -> bool {
        !self.buffer.is_empty()
    }

    fn buffer_bytes(&self) -> usize {
        match self.role {
            Role::BeforeProof => 4 << 10,
            Role::PeerStream => 128 << 10,
            Role::Client | Role::PeerControl => 64 << 10,
        }
    }

    /// Whether the last read could have taken more.
    pub(super) fn has_space(&self) -> bool {
        self.buffer.len() < self.buffer.capacity()
    }

    /// Reads once. [`take`](Self::take) must have been called since.
    pub(super) fn fill(&mut self, socket: impl AsFd) -> Moved {
        let have = self.buffer.len();
        // Twice of what is there, at most what is needed: a header alone takes no memory.
        let wanted = self.needed_bytes.min(2 * have).max(self.buffer_bytes());
        if self.buffer.capacity() < wanted {
            self.buffer.reserve_exact(wanted - have);
        }
        read(socket, &mut self.buffer)
    }

    /// Moves the whole packets to `out`. After a violation nothing that follows can be understood.
    pub(super) fn take(&mut self, out: &mut Vec<Bytes>) -> Result<(), Violation> {
        let mut ends = Vec::new();
        let mut end = 0;
        let outcome = loop {
            match self.packet_at(end) {
                Ok(Some(bytes)) => {
                    end += bytes;
                    ends.push(end);
                }
                Ok(None) => break Ok(()),
                Err(violation) => break Err(violation),
            }
        };
        if end > 0 {
            let whole = self.part(end);
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let ranges = starts.zip(ends.iter().copied());
            out.extend(ranges.filter_map(|(from, to)| Bytes::part(&whole, from..to)));
        }
        outcome
    }

    /// Takes the first packet alone.
    pub(super) fn take_one(&mut self) -> Result<Option<Vec<u8>>, Violation> {
        let bytes = self.packet_at(0)?;
        Ok(bytes.map(|bytes| self.buffer.drain(..bytes).collect()))
    }

    /// Length of the packet at `at`, if it is whole.
    fn packet_at(&mut self, at: usize) -> Result<Option<usize>, Violation> {
        let rest = &self.buffer[at..];
        self.needed_bytes = HEADER_BYTES;
        if rest.len() < HEADER_BYTES {
            return Ok(None);
        }
        let header = Header::decode(rest, self.role)?;
        self.needed_bytes = HEADER_BYTES + header.body_bytes as usize;
        Ok((rest.len() >= self.needed_bytes).then_some(self.needed_bytes))
    }

    /// Cuts off the first `end` bytes.
    fn part(&mut self, end: usize) -> Arc<Vec<u8>> {
        if end < self.buffer.capacity() / COPIED_PART {
            let copy = Arc::new(self.buffer[..end].to_vec());
            self.buffer.drain(..end);
            return copy;
        }
        let mut next = self.unused();
        next.extend_from_slice(&self.buffer[end..]);
        let full = Arc::new(std::mem::replace(&mut self.buffer, next));
        if full.capacity() <= 2 * self.buffer_bytes() && self.lent.len() < LENT_MAX {
            self.lent.push_back(full.clone());
        }
        full
    }

    /// A buffer that nobody has any more, or a new one.
    fn unused(&mut self) -> Vec<u8> {
        for _ in 0..self.lent.len() {
            match self.lent.pop_front().map(Arc::try_unwrap) {
                Some(Ok(mut buffer)) => {
                    buffer.clear();
                    return buffer;
                }
                Some(Err(shared)) => self.lent.push_back(shared),
                None => {}
            }
        }
        Vec::with_capacity(self.buffer_bytes())
    }
}
