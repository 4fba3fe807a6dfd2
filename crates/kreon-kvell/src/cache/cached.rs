//! The content of a cell as its reader sees it.

use std::ops::Range;

use super::blocks::Blocks;
use super::cell::BLOCK_BYTES;
use super::slab::BlockNo;

/// A cell of the cache. Its bytes lie in one piece if there was such a place when it came in, else in several.
#[derive(Clone, Copy)]
pub struct Cached<'a> {
    blocks: &'a Blocks,
    head: BlockNo,
}

impl<'a> Cached<'a> {
    pub(super) fn new(blocks: &'a Blocks, head: BlockNo) -> Cached<'a> {
        Cached { blocks, head }
    }

    /// Size of the cell, a multiple of [`BLOCK_BYTES`]. It walks the pieces.
    pub fn len_bytes(&self) -> usize {
        self.blocks.count(self.head) * BLOCK_BYTES
    }

    /// All bytes as one slice; `None` if the cell lies in several pieces.
    pub fn whole(&self) -> Option<&'a [u8]> {
        self.blocks
            .run(self.head)
            .next
            .is_none()
            .then(|| self.blocks.bytes(self.head))
    }

    /// The pieces of a part of the cell, in order. What lies past the end of the cell is left out.
    pub fn chunks(&self, part: Range<usize>) -> Chunks<'a> {
        let left = part.end.saturating_sub(part.start);
        Chunks {
            blocks: self.blocks,
            next: Some(self.head),
            skipped: part.start,
            left,
        }
    }

    /// Appends a part of the cell to `target`. What lies past the end of the cell is left out.
    pub fn copy_to(&self, target: &mut Vec<u8>, part: Range<usize>) {
        self.chunks(part)
            .for_each(|chunk| target.extend_from_slice(chunk));
    }
}

/// The pieces of a part of a cell, none of them empty.
#[derive(Clone)]
pub struct Chunks<'a> {
    blocks: &'a Blocks,
    next: Option<BlockNo>,
    /// Bytes before the part, from `next` on.
    skipped: usize,
    /// Bytes of the part to come.
    left: usize,
}

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while self.left > 0 {
            let block = self.next?;
            let run = self.blocks.bytes(block);
            self.next = self.blocks.run(block).next;
            if let Some(rest) = run.get(self.skipped..).filter(|rest| !rest.is_empty()) {
                let chunk = &rest[..rest.len().min(self.left)];
                self.skipped = 0;
                self.left -= chunk.len();
                return Some(chunk);
            }
            self.skipped -= run.len();
        }
        None
    }
}
