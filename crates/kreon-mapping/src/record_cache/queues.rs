//! The two queues of a shard, and what moves between them.

use super::ring::{ALIGNMENT, FrameRing};
use super::slots::{Slots, tag};
use crate::well::{FrameSpace, FreeFrame};

/// The small queue may have one frame in this many.
const SMALL_SHARE: usize = 10;

/// Most reads that are counted of a record. The main queue gives a chance for each.
const VISITS_MAX: u8 = 3;

/// Chances given in a row; after them even records that were read leave, which bounds the wait.
const CHANCES_MAX: usize = 64;

/// Spare frames of a shard: with fewer, a record that has a chance may find no place.
const SPARE_FRAMES: usize = 2;

/// A shard with this many frames has a place for the record that was read last, where the task finds it.
const FRAMES_MIN: usize = 3;

/// A place has the position in units, modulo this: rings are far shorter.
const UNITS: u64 = 1 << 31;

const MAIN: u32 = 1 << 31;

/// The identity of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordId {
    pub offset: u64,
    pub generation: u32,
}

/// The header in front of a record's bytes.
pub(super) struct Header {
    record: RecordId,
    len: usize,
    visits: u8,
}

/// Records of one shard.
pub(super) struct Queues {
    slots: Slots,
    small: FrameRing,
    main: FrameRing,
    /// Frames that are in no ring.
    pub spare: Vec<FreeFrame>,
    moved: Vec<u8>,
    /// Records found.
    pub hits: u64,
}

impl Header {
    fn encode(&self) -> [u8; ALIGNMENT as usize] {
        let last = (self.len as u32) << 8 | u32::from(self.visits);
        let id = u128::from(self.record.offset) | u128::from(self.record.generation) << 64;
        (id | u128::from(last) << 96).to_le_bytes()
    }

    fn decode(bytes: [u8; ALIGNMENT as usize]) -> Self {
        let word = u128::from_le_bytes(bytes);
        let last = (word >> 96) as u32;
        Self {
            record: RecordId {
                offset: word as u64,
                generation: (word >> 64) as u32,
            },
            len: (last >> 8) as usize,
            visits: last as u8,
        }
    }
}

/// Bytes of a whole entry.
fn entry_bytes(len: usize) -> u64 {
    ALIGNMENT + (len as u64).next_multiple_of(ALIGNMENT)
}

/// The place of a position.
fn place(position: u64, queue: u32) -> u32 {
    (position / ALIGNMENT % UNITS) as u32 | queue
}

impl Queues {
    pub(super) fn new(table_bytes: usize) -> Self {
        Self {
            slots: Slots::new(table_bytes),
            small: FrameRing::default(),
            main: FrameRing::default(),
            spare: Vec::new(),
            moved: Vec::new(),
            hits: 0,
        }
    }

    /// Whether a record of this length would evict another.
    pub(super) fn lacks_frames(&self, len: usize) -> bool {
        self.small.frames_lacking(entry_bytes(len)) + SPARE_FRAMES > self.spare.len()
    }

    /// Whether it has so few frames that a record may find no place.
    pub(super) fn is_bare(&self) -> bool {
        self.small.frames() + self.main.frames() + self.spare.len() < FRAMES_MIN
    }

    /// The place of a record that has at least `len` bytes.
    pub(super) fn find(
        &self,
        space: &FrameSpace,
        wanted: RecordId,
        len: usize,
    ) -> Option<(u32, Header)> {
        let places = self.slots.places(tag(wanted.offset));
        let mut found = places.map(|place| (place, self.header(space, place)));
        found.find(|(_, header)| header.record == wanted && header.len >= len)
    }

    /// Appends a record to `into`, if it is there and current.
    pub(super) fn get(
        &mut self,
        space: &FrameSpace,
        record: RecordId,
        len: usize,
        into: &mut Vec<u8>,
    ) -> bool {
        let Some((place, mut header)) = self.find(space, record, len) else {
            return false;
        };
        let position = self.position(place);
        self.hits += 1;
        self.ring(place)
            .read(space, position + ALIGNMENT, len, into);
        if header.visits < VISITS_MAX {
            header.visits += 1;
            self.ring_mut(place)
                .write(space, position, &header.encode());
        }
        true
    }

    /// Adds a record. Records that are not `is_current` get no chance.
    pub(super) fn insert(
        &mut self,
        space: &FrameSpace,
        record: RecordId,
        bytes: &[u8],
        is_current: impl Fn(&RecordId) -> bool,
    ) {
        let tag = tag(record.offset);
        if self.find(space, record, bytes.len()).is_some() {
            return;
        }
        let queue = if self.slots.recall(tag) { MAIN } else { 0 };
        let mut chances = CHANCES_MAX;
        while self.slots.is_full() || !self.has_room(queue, bytes.len()) {
            if !self.evict(space, &mut chances, &is_current) {
                return;
            }
        }
        let header = Header {
            record,
            len: bytes.len(),
            visits: 0,
        };
        self.push(space, queue, &header, bytes);
    }

    /// Frees a frame, evicting records if need be. `None` if there is none.
    pub(super) fn give_up(
        &mut self,
        space: &FrameSpace,
        is_current: impl Fn(&RecordId) -> bool,
    ) -> Option<FreeFrame> {
        let mut chances = CHANCES_MAX;
        while self.spare.is_empty() && self.evict(space, &mut chances, &is_current) {}
        if self.small.is_empty() && self.main.is_empty() {
            // The last frames of empty rings.
            self.small.take_rest(&mut self.spare);
            self.main.take_rest(&mut self.spare);
        }
        self.spare.pop()
    }

    /// Evicts the oldest record of a queue, or moves it to the main queue. False if there is none.
    fn evict(
        &mut self,
        space: &FrameSpace,
        chances: &mut usize,
        is_current: &impl Fn(&RecordId) -> bool,
    ) -> bool {
        let frames = self.small.frames() + self.main.frames();
        let from_small = self.main.is_empty() || self.small.frames() * SMALL_SHARE > frames;
        let queue = if from_small && !self.small.is_empty() {
            0
        } else {
            MAIN
        };
        if self.ring(queue).is_empty() {
            return false;
        }
        let position = self.ring(queue).start();
        let header = Header::decode(self.ring(queue).header(space, position));
        let tag = tag(header.record.offset);
        self.slots.remove(tag, place(position, queue));
        let stays = header.visits > 0 && *chances > 0 && is_current(&header.record);
        let mut moved = std::mem::take(&mut self.moved);
        moved.clear();
        if stays {
            self.ring(queue)
                .read(space, position + ALIGNMENT, header.len, &mut moved);
        }
        let mut spare = std::mem::take(&mut self.spare);
        self.ring_mut(queue)
            .advance(entry_bytes(header.len), &mut spare);
        self.spare = spare;
        if stays && self.has_room(MAIN, header.len) {
            *chances -= 1;
            let visits = if queue == MAIN { header.visits - 1 } else { 0 };
            self.push(space, MAIN, &Header { visits, ..header }, &moved);
        } else if queue == 0 {
            self.slots.remember(tag);
        }
        self.moved = moved;
        true
    }

    fn has_room(&self, queue: u32, len: usize) -> bool {
        self.ring(queue).frames_lacking(entry_bytes(len)) <= self.spare.len()
    }

    fn push(&mut self, space: &FrameSpace, queue: u32, header: &Header, bytes: &[u8]) {
        for _ in 0..self.ring(queue).frames_lacking(entry_bytes(header.len)) {
            if let Some(frame) = self.spare.pop() {
                self.ring_mut(queue).add(frame);
            }
        }
        let ring = self.ring_mut(queue);
        let position = ring.end();
        ring.push(space, &header.encode());
        ring.push(space, bytes);
        ring.align();
        self.slots
            .insert(tag(header.record.offset), place(position, queue));
    }

    fn header(&self, space: &FrameSpace, place: u32) -> Header {
        Header::decode(self.ring(place).header(space, self.position(place)))
    }

    /// The position of a place: the first from the start on that has its low bits.
    fn position(&self, place: u32) -> u64 {
        let start = self.ring(place).start() / ALIGNMENT;
        let ahead = u64::from(place & !MAIN).wrapping_sub(start) % UNITS;
        (start + ahead) * ALIGNMENT
    }

    fn ring(&self, place: u32) -> &FrameRing {
        if place & MAIN == 0 {
            &self.small
        } else {
            &self.main
        }
    }

    fn ring_mut(&mut self, place: u32) -> &mut FrameRing {
        if place & MAIN == 0 {
            &mut self.small
        } else {
            &mut self.main
        }
    }
}
