//! A queue of bytes in frames: first in, first out.

use std::collections::VecDeque;

use kreon_base::PAGE_BYTES;

use crate::well::{FrameSpace, FreeFrame};

const PAGE: u64 = PAGE_BYTES as u64;

/// Entries start at multiples of this, so that a header lies in one frame.
pub(super) const ALIGNMENT: u64 = 16;

/// Positions only grow; position `p` is in the frame that was added as number `p / PAGE`.
#[derive(Default)]
pub(super) struct FrameRing {
    frames: VecDeque<FreeFrame>,
    start: u64,
    end: u64,
}

impl FrameRing {
    pub(super) fn frames(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The position of the oldest entry.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// The position of the next entry.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Frames to be added before `bytes` more bytes fit.
    pub(super) fn frames_lacking(&self, bytes: u64) -> usize {
        let limit = (self.start / PAGE + self.frames.len() as u64) * PAGE;
        (self.end + bytes).saturating_sub(limit).div_ceil(PAGE) as usize
    }

    pub(super) fn add(&mut self, frame: FreeFrame) {
        self.frames.push_back(frame);
    }

    /// Appends bytes, for which there are frames.
    pub(super) fn push(&mut self, space: &FrameSpace, bytes: &[u8]) {
        debug_assert_eq!(self.frames_lacking(bytes.len() as u64), 0);
        self.write(space, self.end, bytes);
        self.end += bytes.len() as u64;
    }

    /// Writes bytes from a position on.
    pub(super) fn write(&mut self, space: &FrameSpace, mut position: u64, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = (position % PAGE) as usize;
            let (part, later) = rest.split_at(rest.len().min(PAGE_BYTES - within));
            let i = self.frame(position);
            space.bytes_mut(&mut self.frames[i])[within..within + part.len()].copy_from_slice(part);
            position += part.len() as u64;
            rest = later;
        }
    }

    /// Leaves a gap up to the next multiple of the alignment.
    pub(super) fn align(&mut self) {
        self.end = self.end.next_multiple_of(ALIGNMENT);
    }

    /// Appends `len` bytes from a position on to `into`.
    pub(super) fn read(
        &self,
        space: &FrameSpace,
        mut position: u64,
        len: usize,
        into: &mut Vec<u8>,
    ) {
        let mut left = len;
        while left > 0 {
            let within = (position % PAGE) as usize;
            let part = left.min(PAGE_BYTES - within);
            let frame = &self.frames[self.frame(position)];
            into.extend_from_slice(&space.bytes(frame)[within..within + part]);
            position += part as u64;
            left -= part;
        }
    }

    /// The 16 bytes of a header.
    pub(super) fn header(&self, space: &FrameSpace, position: u64) -> [u8; ALIGNMENT as usize] {
        let within = (position % PAGE) as usize;
        let bytes = space.bytes(&self.frames[self.frame(position)]);
        std::array::from_fn(|i| bytes[within + i])
    }

    /// Removes bytes from the start; frames that are empty then go to `freed`.
    pub(super) fn advance(&mut self, bytes: u64, freed: &mut Vec<FreeFrame>) {
        let before = self.start / PAGE;
        self.start += bytes;
        debug_assert!(self.start <= self.end, "more bytes leave than there are");
        for _ in before..self.start / PAGE {
            freed.extend(self.frames.pop_front());
        }
    }

    /// Takes the last frame of an empty ring.
    pub(super) fn take_rest(&mut self, freed: &mut Vec<FreeFrame>) {
        debug_assert!(self.is_empty());
        let rest = self.start.next_multiple_of(PAGE) - self.start;
        self.end += rest;
        self.advance(rest, freed);
    }

    fn frame(&self, position: u64) -> usize {
        (position / PAGE - self.start / PAGE) as usize
    }
}
