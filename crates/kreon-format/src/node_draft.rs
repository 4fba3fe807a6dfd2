//! The entries of a node that is being built, and the exact room they take.

use std::fmt;

use kreon_base::{PAGE_BYTES, PageBytes};

use crate::heads::{HEAD_BYTES, head_of};
use crate::node::{ENTRY_FRONT_BYTES_MAX, NODE_HEADER_BYTES, SLOT_BYTES, TAG_WIDE, begin_node};
use crate::sealed;
use crate::{LONG_KEY_STORED_BYTES, NodeIdentity, PagePointer};

/// Bytes of an entry besides key and body: head, slot, tag.
const ENTRY_BYTES: usize = HEAD_BYTES + SLOT_BYTES + 1;

/// The room that three maximal entries of `body_bytes` leave in a node.
pub(crate) const fn room_of_three(body_bytes: usize) -> usize {
    let entry_bytes = HEAD_BYTES + SLOT_BYTES + ENTRY_FRONT_BYTES_MAX + body_bytes;
    let key_bytes = LONG_KEY_STORED_BYTES - HEAD_BYTES;
    (PAGE_BYTES - NODE_HEADER_BYTES).saturating_sub(3 * (entry_bytes + key_bytes))
}

/// Entries in order, with their common prefix and the room they take kept up to date.
#[derive(Default)]
pub(crate) struct NodeDraft {
    /// Key and body of each entry.
    bytes: Vec<u8>,
    entries: Vec<DraftEntry>,
    prefix_bytes: usize,
    /// Room of all entries' lengths and rests of keys, given `prefix_bytes`.
    keys_bytes: usize,
    bodies_bytes: usize,
}

#[derive(Clone, Copy)]
struct DraftEntry {
    at: usize,
    key_bytes: u16,
    body_bytes: u16,
    tag: u8,
}

/// What a draft becomes with one more entry.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    prefix_bytes: usize,
    keys_bytes: usize,
    /// Bytes of the page in use, but for an index node's first child.
    pub(crate) used_bytes: usize,
}

impl NodeDraft {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of the page in use, but for an index node's first child.
    pub(crate) fn used_bytes(&self) -> usize {
        self.room(
            self.len(),
            self.prefix_bytes,
            self.keys_bytes,
            self.bodies_bytes,
        )
    }

    pub(crate) fn first_key(&self) -> Option<&[u8]> {
        self.entries.first().map(|entry| self.key(entry))
    }

    /// Key and tag of the last entry.
    pub(crate) fn last(&self) -> Option<(&[u8], u8)> {
        let entry = self.entries.last()?;
        Some((self.key(entry), entry.tag))
    }

    /// What one more entry, whose key is not below the last, makes of the draft.
    pub(crate) fn plan(&self, key: &[u8], body_bytes: usize) -> Plan {
        let (prefix_bytes, keys_bytes) = match self.first_key() {
            None => (key.len(), 0),
            Some(first) => {
                let common = &first[..self.prefix_bytes];
                if key.starts_with(common) {
                    (self.prefix_bytes, self.keys_bytes)
                } else {
                    let shorter = common_prefix_bytes(common, key);
                    let keys = self.entries.iter();
                    let room = keys.map(|entry| key_room(entry.key_bytes.into(), shorter));
                    (shorter, room.sum())
                }
            }
        };
        let keys_bytes = keys_bytes + key_room(key.len(), prefix_bytes);
        let bodies_bytes = self.bodies_bytes + body_bytes;
        Plan {
            prefix_bytes,
            keys_bytes,
            used_bytes: self.room(self.len() + 1, prefix_bytes, keys_bytes, bodies_bytes),
        }
    }

    /// Adds the entry that `plan` was made for.
    pub(crate) fn push(&mut self, plan: Plan, key: &[u8], tag: u8, body: [&[u8]; 2]) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        for part in body {
            self.bytes.extend_from_slice(part);
        }
        let body_bytes = body[0].len() + body[1].len();
        self.entries.push(DraftEntry {
            at,
            key_bytes: key.len() as u16,
            body_bytes: body_bytes as u16,
            tag,
        });
        self.prefix_bytes = plan.prefix_bytes;
        self.keys_bytes = plan.keys_bytes;
        self.bodies_bytes += body_bytes;
    }

    /// Writes the node into `page`, sealed, with `top` between entries and prefix, and empties the
    /// draft.
    pub(crate) fn finish(
        &mut self,
        identity: &NodeIdentity,
        count: usize,
        top: &[u8],
        page: &mut PageBytes,
    ) -> PagePointer {
        let front_bytes = NODE_HEADER_BYTES + self.len() * (HEAD_BYTES + SLOT_BYTES);
        let heap_start = PAGE_BYTES - (self.used_bytes() + top.len() - front_bytes);
        begin_node(page, identity, count, self.prefix_bytes, heap_start);
        if let Some(first) = self.first_key() {
            page[PAGE_BYTES - self.prefix_bytes..].copy_from_slice(&first[..self.prefix_bytes]);
        }
        let top_at = PAGE_BYTES - self.prefix_bytes - top.len();
        page[top_at..][..top.len()].copy_from_slice(top);
        let heap_end = self.write_entries(page, top_at);
        debug_assert_eq!(heap_end, heap_start);
        self.clear();
        PagePointer {
            page: identity.page,
            epoch: identity.epoch,
            checksum: sealed::seal(page, identity.store, identity.page),
        }
    }

    /// Writes heads and slots from the front, entries downward from `heap`; returns where they start.
    fn write_entries(&self, page: &mut PageBytes, mut heap: usize) -> usize {
        let slots_at = NODE_HEADER_BYTES + self.len() * HEAD_BYTES;
        for (index, entry) in self.entries.iter().enumerate() {
            let key = self.key(entry);
            let remainder = &key[self.prefix_bytes..];
            let rest = remainder.get(HEAD_BYTES..).unwrap_or_default();
            let body = &self.bytes[entry.at + key.len()..][..usize::from(entry.body_bytes)];
            let front = Front::new(entry.tag, remainder.len());

            heap -= front.bytes + rest.len() + body.len();
            let (to, _) = page[heap..].split_at_mut(front.bytes + rest.len() + body.len());
            to[..front.bytes].copy_from_slice(&front.array[..front.bytes]);
            to[front.bytes..][..rest.len()].copy_from_slice(rest);
            to[front.bytes + rest.len()..].copy_from_slice(body);
            page[NODE_HEADER_BYTES + index * HEAD_BYTES..][..HEAD_BYTES]
                .copy_from_slice(&head_of(remainder));
            page[slots_at + index * SLOT_BYTES..][..SLOT_BYTES]
                .copy_from_slice(&(heap as u16).to_le_bytes());
        }
        heap
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.prefix_bytes = 0;
        self.keys_bytes = 0;
        self.bodies_bytes = 0;
    }

    fn key(&self, entry: &DraftEntry) -> &[u8] {
        &self.bytes[entry.at..][..usize::from(entry.key_bytes)]
    }

    fn room(&self, count: usize, prefix: usize, keys: usize, bodies: usize) -> usize {
        NODE_HEADER_BYTES + prefix + count * ENTRY_BYTES + keys + bodies
    }
}

impl fmt::Debug for NodeDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries, {} bytes", self.len(), self.used_bytes())
    }
}

/// Tag and key length of an entry.
struct Front {
    array: [u8; ENTRY_FRONT_BYTES_MAX],
    bytes: usize,
}

impl Front {
    fn new(tag: u8, length: usize) -> Self {
        let [low, high] = (length as u16).to_le_bytes();
        if high == 0 {
            Self {
                array: [tag, low, 0],
                bytes: 2,
            }
        } else {
            Self {
                array: [tag | TAG_WIDE, low, high],
                bytes: 3,
            }
        }
    }
}

/// Bytes that a key takes in its entry: its length, and what follows prefix and head.
fn key_room(key_bytes: usize, prefix_bytes: usize) -> usize {
    let length = key_bytes - prefix_bytes;
    let width = if length > usize::from(u8::MAX) { 2 } else { 1 };
    width + length.saturating_sub(HEAD_BYTES)
}

/// Length of what both begin with.
pub(crate) fn common_prefix_bytes(left: &[u8], right: &[u8]) -> usize {
    let (left_words, _) = left.as_chunks::<8>();
    let (right_words, _) = right.as_chunks::<8>();
    let pairs = left_words.iter().zip(right_words);
    let same_words = pairs.take_while(|(left, right)| left == right).count();
    let tails = left.iter().zip(right).skip(same_words * 8);
    same_words * 8 + tails.take_while(|(left, right)| left == right).count()
}
