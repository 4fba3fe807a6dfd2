//! The memory of all nodes: chunks without holes.

use std::hint::black_box;

use super::edit::NodeMut;
use super::node::{NONE, Node};

/// Bytes of a line of the processor's caches.
const LINE_BYTES: usize = 64;

/// Lines of the header, the prefix and the slots of most nodes: leaves have some 40 slots, inner nodes some 80.
const SLOT_LINES: usize = 8;

/// Nodes of a chunk, the unit in which memory is taken and given back.
const CHUNK_NODES: usize = 32;

/// Least growth of the list of chunks.
const CHUNKS_MIN: usize = 8;

/// Nodes by number. The numbers in use are those below [`Self::count`].
pub(super) struct Nodes {
    chunks: Vec<Box<[u8]>>,
    node_bytes: usize,
    count: u32,
}

impl Nodes {
    pub(super) fn new(node_bytes: usize) -> Self {
        Self {
            chunks: Vec::new(),
            node_bytes,
            count: 0,
        }
    }

    pub(super) fn node_bytes(&self) -> usize {
        self.node_bytes
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Heap memory in bytes, without what the allocator adds.
    pub(super) fn memory_bytes(&self) -> usize {
        self.chunks.len() * self.chunk_bytes() + self.chunks.capacity() * size_of::<Box<[u8]>>()
    }

    /// What [`Self::memory_bytes`] grows by at most when so many nodes are added.
    pub(super) fn growth_bytes(&self, nodes: usize) -> usize {
        let chunks = (self.count as usize + nodes).div_ceil(CHUNK_NODES);
        let Some(more @ 1..) = chunks.checked_sub(self.chunks.len()) else {
            return 0;
        };
        let listed = if chunks > self.chunks.capacity() {
            self.list_growth(more) * size_of::<Box<[u8]>>()
        } else {
            0
        };
        more * self.chunk_bytes() + listed
    }

    /// A new node without entries or neighbours. Its number is [`Self::count`] before.
    pub(super) fn add(&mut self, level: u8) -> u32 {
        let node = self.count;
        debug_assert!(node < NONE, "2^32 - 1 nodes are 8 TiB");
        if node as usize == self.chunks.len() * CHUNK_NODES {
            if self.chunks.len() == self.chunks.capacity() {
                self.chunks.reserve_exact(self.list_growth(1));
            }
            self.chunks
                .push(vec![0; self.chunk_bytes()].into_boxed_slice());
        }
        self.count += 1;
        let mut fresh = self.get_mut(node);
        fresh.clear(level);
        fresh.set_previous(NONE);
        fresh.set_next(NONE);
        node
    }

    /// Copies the last node over another one and takes it away. The caller corrects what refers to the last node.
    pub(super) fn swap_remove(&mut self, node: u32) {
        debug_assert!(node < self.count);
        self.count -= 1;
        if node != self.count {
            let (chunk, start) = self.place(self.count);
            let (target_chunk, target) = self.place(node);
            let length = self.node_bytes;
            if let Ok([from, to]) = self.chunks.get_disjoint_mut([chunk, target_chunk]) {
                to[target..][..length].copy_from_slice(&from[start..][..length]);
            } else {
                self.chunks[chunk].copy_within(start..start + length, target);
            }
        }
        if self.count == 0 {
            self.chunks = Vec::new();
        } else {
            self.chunks
                .truncate((self.count as usize).div_ceil(CHUNK_NODES));
        }
    }

    #[inline]
    pub(super) fn get(&self, node: u32) -> Node<'_> {
        let (chunk, start) = self.place(node);
        Node::new(&self.chunks[chunk][start..start + self.node_bytes])
    }

    /// As [`Self::get`], for a search: has the processor load all lines where the slots of a node mostly are. Without it the
    /// steps of the binary search wait for memory one after the other.
    #[inline]
    pub(super) fn get_to_search(&self, node: u32) -> Node<'_> {
        let (chunk, start) = self.place(node);
        let bytes = &self.chunks[chunk][start..start + self.node_bytes];
        for line in bytes.chunks(LINE_BYTES).take(SLOT_LINES) {
            black_box(line[0]);
        }
        Node::new(bytes)
    }

    pub(super) fn get_mut(&mut self, node: u32) -> NodeMut<'_> {
        let (chunk, start) = self.place(node);
        NodeMut::new(&mut self.chunks[chunk][start..start + self.node_bytes])
    }

    fn place(&self, node: u32) -> (usize, usize) {
        (
            node as usize / CHUNK_NODES,
            node as usize % CHUNK_NODES * self.node_bytes,
        )
    }

    fn chunk_bytes(&self) -> usize {
        CHUNK_NODES * self.node_bytes
    }

    /// How much the full list of chunks grows for so many more.
    fn list_growth(&self, chunks: usize) -> usize {
        chunks.max(self.chunks.capacity()).max(CHUNKS_MIN)
    }
}
