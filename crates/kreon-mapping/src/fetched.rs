//! Records that were brought from the device into memory of their reader's own.

use kreon_base::PAGE_BYTES;

use crate::prefetch::TRANSFER_PAGES_MAX;
use crate::spare::Spare;

/// Longest gap between two records that is read along to make one transfer of two.
pub(crate) const GAP_BYTES_MAX: u64 = 2 * PAGE_BYTES as u64;

/// What [`Mapping::fetch`](crate::Mapping::fetch) brought.
#[derive(Default)]
pub struct Fetched {
    pub(crate) memory: Option<Spare>,
    /// Records that were kept already.
    pub(crate) copies: Vec<u8>,
    /// Sorted by their offsets.
    pub(crate) places: Vec<Place>,
    /// Reads at the device.
    pub(crate) transfers: usize,
    /// It may take so much memory. None: as much as it takes.
    room_bytes: Option<usize>,
}

/// Where a record is.
pub(crate) struct Place {
    pub(crate) offset: u64,
    pub(crate) len: usize,
    /// Its first byte.
    pub(crate) at: usize,
    pub(crate) is_copy: bool,
}

impl Fetched {
    /// The bytes, if they were brought.
    pub fn get(&self, offset_bytes: u64, len_bytes: usize) -> Option<&[u8]> {
        let found = self
            .places
            .binary_search_by_key(&offset_bytes, |place| place.offset);
        let place = self.places.get(found.ok()?)?;
        let memory = match place.is_copy {
            true => self.copies.as_slice(),
            false => self.memory.as_deref()?,
        };
        memory.get(place.at..place.at + place.len)?.get(..len_bytes)
    }

    /// How many reads at the device it took, those into frames left out.
    pub fn transfers(&self) -> usize {
        self.transfers
    }

    /// Whether the record at `offset_bytes` came from the device.
    pub fn was_read(&self, offset_bytes: u64) -> bool {
        let found = self
            .places
            .binary_search_by_key(&offset_bytes, |place| place.offset);
        let place = found.ok().and_then(|at| self.places.get(at));
        place.is_some_and(|place| !place.is_copy)
    }

    /// How many reads records take that are together: their offsets and lengths, sorted.
    pub fn transfers_of(records: &[(u64, usize)]) -> usize {
        Self::runs_of(records).count()
    }

    /// Which of such records one read takes: how many by the first, the second...
    pub fn runs_of(records: &[(u64, usize)]) -> impl Iterator<Item = usize> {
        let mut rest = records.iter().peekable();
        std::iter::from_fn(move || {
            let (start, len) = *rest.next()?;
            let (mut end, mut count) = (start + len as u64, 1);
            while let Some((offset, len)) =
                rest.next_if(|(offset, len)| joins(start, end, *offset, offset + *len as u64))
            {
                end = end.max(offset + *len as u64);
                count += 1;
            }
            Some(count)
        })
    }

    /// Adds a copy of a record. Before the first [`get`](Self::get) they are to be added in the order of their offsets.
    pub fn add(&mut self, offset_bytes: u64, bytes: &[u8]) {
        self.places.push(Place {
            offset: offset_bytes,
            len: bytes.len(),
            at: self.copies.len(),
            is_copy: true,
        });
        self.copies.extend_from_slice(bytes);
    }

    /// Forgets all and gives the memory back, but for what it may need again.
    pub fn clear(&mut self) {
        self.transfers = 0;
        self.memory = None;
        self.copies.clear();
        self.places.clear();
        if self.memory_bytes() > self.room() / 2 {
            (self.copies, self.places) = Default::default();
        }
    }

    /// From the next fetch on it takes so much memory at the most: what does not fit is left to the read that needs it.
    pub fn set_room(&mut self, bytes: usize) {
        self.room_bytes = Some(bytes);
    }

    fn room(&self) -> usize {
        self.room_bytes.unwrap_or(usize::MAX)
    }

    /// What it may take beside the copies that it has.
    pub(crate) fn room_left(&self) -> usize {
        self.room().saturating_sub(self.copies.len())
    }

    /// The memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        let memory = self.memory.as_ref().map_or(0, |memory| memory.len());
        let places = self.places.capacity() * size_of::<Place>();
        memory + self.copies.capacity() + places
    }
}

/// Whether one read takes the bytes from `next_start` to `next_end` along with those from `start` to `end` before them.
pub(crate) fn joins(start: u64, end: u64, next_start: u64, next_end: u64) -> bool {
    next_start <= end + GAP_BYTES_MAX
        && next_end - start <= (TRANSFER_PAGES_MAX * PAGE_BYTES) as u64
}
