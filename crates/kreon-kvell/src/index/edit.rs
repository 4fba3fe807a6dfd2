//! Changes of one node.

use super::key::Key;
use super::location::LOCATION_BYTES;
use super::node::{
    COUNT_AT, HEADER_BYTES, LEVEL_AT, NEXT_AT, NODE_BYTES_MAX, Node, PREFIX_AT, PREVIOUS_AT,
    SLOT_BYTES, Slot, head_of, payload_bytes, slot, slot_meta,
};

/// A node to change.
pub(super) struct NodeMut<'a> {
    bytes: &'a mut [u8],
}

impl<'a> NodeMut<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        debug_assert!(bytes.len() <= NODE_BYTES_MAX);
        Self { bytes }
    }

    fn read(&self) -> Node<'_> {
        Node::new(self.bytes)
    }

    /// An empty node of a level; its links stay.
    pub(super) fn clear(&mut self, level: u8) {
        self.write_u16(COUNT_AT, 0);
        self.write_u16(PREFIX_AT, 0);
        self.bytes[LEVEL_AT] = level;
    }

    /// Sets what all keys begin with; the node is empty.
    pub(super) fn set_prefix(&mut self, parts: [&[u8]; 2]) {
        debug_assert_eq!(self.read().count(), 0);
        self.write_u16(PREFIX_AT, (parts[0].len() + parts[1].len()) as u16);
        let (first, second) = self.bytes[HEADER_BYTES..].split_at_mut(parts[0].len());
        first.copy_from_slice(parts[0]);
        second[..parts[1].len()].copy_from_slice(parts[1]);
    }

    pub(super) fn set_previous(&mut self, node: u32) {
        self.bytes[PREVIOUS_AT..][..4].copy_from_slice(&node.to_le_bytes());
    }

    pub(super) fn set_next(&mut self, node: u32) {
        self.bytes[NEXT_AT..][..4].copy_from_slice(&node.to_le_bytes());
    }

    pub(super) fn set_child(&mut self, slot: usize, child: u32) {
        let start = self.bytes.len() - self.read().end(slot + 1) + LOCATION_BYTES;
        self.bytes[start..][..4].copy_from_slice(&child.to_le_bytes());
    }

    pub(super) fn set_at(&mut self, slot: usize, at: u64) {
        let start = self.bytes.len() - self.read().end(slot + 1);
        self.bytes[start..][..LOCATION_BYTES].copy_from_slice(&at.to_le_bytes()[..LOCATION_BYTES]);
    }

    /// Inserts an entry at a slot. `false`, and nothing is changed, if it does not begin with the prefix or there is no
    /// room.
    pub(super) fn insert(&mut self, slot: usize, key: &Key<'_>, child: u32) -> bool {
        let Some(suffix) = key.bytes.strip_prefix(self.read().prefix()) else {
            return false;
        };
        self.insert_suffix(slot, [suffix, &[]], key, child)
    }

    /// As [`Self::insert`], of a key whose bytes behind the prefix come in two parts. `key.bytes` is not looked at.
    pub(super) fn insert_suffix(
        &mut self,
        at_slot: usize,
        parts: [&[u8]; 2],
        key: &Key<'_>,
        child: u32,
    ) -> bool {
        let node = self.read();
        let (count, level, length) = (node.count(), node.level(), self.bytes.len());
        let (first, second) = if parts[0].is_empty() {
            (parts[1], parts[0])
        } else {
            (parts[0], parts[1])
        };
        let (mut head, mut head_len, first) = head_of(first);
        let taken = second.len().min(head.len() - head_len);
        head[head_len..head_len + taken].copy_from_slice(&second[..taken]);
        head_len += taken;
        let second = &second[taken..];
        let payload = payload_bytes(level);
        let record = payload + first.len() + second.len();
        if node.used_bytes() + SLOT_BYTES + record > length {
            return false;
        }
        let (before, total) = (node.end(at_slot), node.end(count));
        let slots = HEADER_BYTES + node.prefix().len();

        self.bytes
            .copy_within(length - total..length - before, length - total - record);
        let target = &mut self.bytes[length - before - record..length - before];
        target[..LOCATION_BYTES].copy_from_slice(&key.at.to_le_bytes()[..LOCATION_BYTES]);
        if level > 0 {
            target[LOCATION_BYTES..payload].copy_from_slice(&child.to_le_bytes());
        }
        let (front, back) = target[payload..].split_at_mut(first.len());
        front.copy_from_slice(first);
        back.copy_from_slice(second);

        let start = slots + at_slot * SLOT_BYTES;
        self.bytes
            .copy_within(start..slots + count * SLOT_BYTES, start + SLOT_BYTES);
        self.write_u16(COUNT_AT, (count + 1) as u16);
        let entries = self.slots_from(at_slot);
        for entry in &mut entries[1..] {
            let [low, high] = (slot_meta(*entry) + record as u16).to_le_bytes();
            (entry[4], entry[5]) = (low, high);
        }
        entries[0] = slot(head, head_len, key.truncated, before + record);
        true
    }

    /// Removes the entry of a slot.
    pub(super) fn remove(&mut self, slot: usize) {
        let node = self.read();
        let (count, length) = (node.count(), self.bytes.len());
        let (before, end, total) = (node.end(slot), node.end(slot + 1), node.end(count));
        let slots = HEADER_BYTES + node.prefix().len();
        let record = end - before;
        self.bytes
            .copy_within(length - total..length - end, length - total + record);
        let start = slots + slot * SLOT_BYTES;
        self.bytes
            .copy_within(start + SLOT_BYTES..slots + count * SLOT_BYTES, start);
        self.write_u16(COUNT_AT, (count - 1) as u16);
        for entry in self.slots_from(slot) {
            let [low, high] = (slot_meta(*entry) - record as u16).to_le_bytes();
            (entry[4], entry[5]) = (low, high);
        }
    }

    fn slots_from(&mut self, slot: usize) -> &mut [Slot] {
        let node = self.read();
        let (count, start) = (node.count(), HEADER_BYTES + node.prefix().len());
        &mut self.bytes[start..].as_chunks_mut().0[slot..count]
    }

    fn write_u16(&mut self, at: usize, value: u16) {
        self.bytes[at..][..2].copy_from_slice(&value.to_le_bytes());
    }
}
